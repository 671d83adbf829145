#!/usr/bin/env bash
# Makes sure that a Postgres server is installed; says what it does.
set -euo pipefail

have() {
  command -v initdb >/dev/null && command -v postgres >/dev/null && return 0
  compgen -G '/usr/lib/postgresql/*/bin/initdb' >/dev/null && return 0
  compgen -G '/opt/homebrew/opt/postgresql@*/bin/initdb' >/dev/null && return 0
  compgen -G '/usr/local/opt/postgresql@*/bin/initdb' >/dev/null && return 0
  return 1
}

have && exit 0

as_root() {
  if [ "$(id -u)" -eq 0 ]; then "$@"; else sudo "$@"; fi
}

if command -v apt-get >/dev/null; then
  echo "installing the Postgres server (apt-get) ..."
  as_root env DEBIAN_FRONTEND=noninteractive apt-get update -qq
  as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends postgresql >/dev/null
elif command -v brew >/dev/null; then
  echo "installing the Postgres server (brew) ..."
  brew install --quiet postgresql@16
else
  echo "no Postgres server found, and neither apt-get nor brew to install one; install Postgres 14 or newer, with initdb and postgres on PATH" >&2
  exit 1
fi

have || { echo "Postgres was installed but initdb was not found; put it on PATH" >&2; exit 1; }

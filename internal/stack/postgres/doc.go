// Package postgres runs a private Postgres cluster for one machine: no TCP,
// a Unix socket in a directory of mode 0700, durable by default. The server has
// a session of its own, so that neither Ctrl-C nor the end of the terminal or
// of the program that started it ends it; Stop does.
//
// Postgres refuses to run as root. Started by root it runs as the user
// "postgres", else "nobody". If that user cannot reach Config.Dir, which is so
// below a home directory of mode 0700, the cluster lies in
// /var/lib/kandev/<hash of Dir>/postgres instead.
package postgres

package postgres

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// settingsFile lies in the data directory and is written at every start.
const settingsFile = "kandev.conf"

const durable = `
logging_collector = on
log_directory = %s
log_filename = 'postgresql-%%a.log'
log_truncate_on_rotation = on
log_rotation_age = 1d
log_rotation_size = 0
`

const fastAndLossy = `
fsync = off
synchronous_commit = off
full_page_writes = off
wal_level = minimal
max_wal_senders = 0
shared_buffers = 32MB
`

// settings is the server's configuration. Its own log is bounded: one file per
// day of the week, begun anew after a week.
func settings(where place, socket string, fast bool) string {
	var b strings.Builder
	fmt.Fprintf(&b, "listen_addresses = ''\nport = %d\n", port)
	fmt.Fprintf(&b, "unix_socket_directories = %s\nunix_socket_permissions = 0700\n", quote(`"`+strings.ReplaceAll(socket, `"`, `""`)+`"`))
	b.WriteString("max_connections = 200\ntimezone = 'UTC'\nlog_timezone = 'UTC'\n")
	if fast {
		b.WriteString(fastAndLossy)
	} else {
		fmt.Fprintf(&b, durable, quote(filepath.Join(where.base, "log")))
	}
	return b.String()
}

func quote(value string) string {
	return "'" + strings.ReplaceAll(strings.ReplaceAll(value, `\`, `\\`), "'", "''") + "'"
}

func appendLine(path, line string) error {
	file, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = file.WriteString("\n" + line + "\n")
	if closeErr := file.Close(); err == nil {
		err = closeErr
	}
	return err
}

const tailBytes = 2000

// tail returns the end of a log for an error message, or "".
func tail(path string) string {
	text, err := os.ReadFile(path)
	if err != nil || len(text) == 0 {
		return ""
	}
	if len(text) > tailBytes {
		text = text[len(text)-tailBytes:]
	}
	return "\n" + strings.TrimSpace(string(text))
}

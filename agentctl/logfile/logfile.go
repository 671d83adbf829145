// Package logfile is a process's own log: a rotating file under the home
// directory. The control server's can be written whether or not a backend lives
// (S-001.3); the backend has another. The bounds are fixed, and nothing
// configures them.
package logfile

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"gopkg.in/natefinch/lumberjack.v2"
)

// Bounds of the log: megabytes a file, rotated files kept, days kept.
const (
	MaxMegabytes = 16
	MaxBackups   = 10
	MaxDays      = 14
)

const (
	directoryMode = 0o700
	fileMode      = 0o600
)

// Path is where a control server of that home writes its log. Two servers that
// live at once have different names: each rotates its own file. An empty name
// means "agentctl".
func Path(home, name string) string {
	return filepath.Join(home, "logs", cmp.Or(name, "agentctl")+".log")
}

// Log is an open log file.
type Log struct {
	// Logger writes to the file, a line of JSON an entry.
	Logger *zap.Logger
	file   *lumberjack.Logger
}

// Open opens the log for appending, readable by its owner only.
func Open(path string) (*Log, error) {
	if err := prepare(path); err != nil {
		return nil, err
	}
	file := &lumberjack.Logger{
		Filename:   path,
		MaxSize:    MaxMegabytes,
		MaxBackups: MaxBackups,
		MaxAge:     MaxDays,
	}
	encoding := zap.NewProductionEncoderConfig()
	encoding.TimeKey = "time"
	encoding.EncodeTime = zapcore.RFC3339NanoTimeEncoder
	core := zapcore.NewCore(zapcore.NewJSONEncoder(encoding), zapcore.AddSync(file), zap.InfoLevel)
	return &Log{Logger: zap.New(core), file: file}, nil
}

// prepare makes the file, so that its mode is ours from the first byte on;
// rotated files keep the mode of the one before.
func prepare(path string) error {
	if err := os.MkdirAll(filepath.Dir(path), directoryMode); err != nil {
		return fmt.Errorf("make log directory: %w", err)
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, fileMode)
	if err != nil {
		return fmt.Errorf("open log file: %w", err)
	}
	if err := errors.Join(file.Chmod(fileMode), file.Close()); err != nil {
		return fmt.Errorf("restrict log file: %w", err)
	}
	return nil
}

// Close closes the file. Entries written later open it again.
func (l *Log) Close() error {
	if err := l.file.Close(); err != nil {
		return fmt.Errorf("close log file: %w", err)
	}
	return nil
}

package postgres

import (
	"errors"
	"os"
	"syscall"
)

type owner struct{}

// choosePlace: a private cluster needs Unix users and modes to be private.
func choosePlace(string) (place, error) {
	return place{}, errors.New("a private Postgres cluster is not supported on Windows; set database.dsn to a running server")
}

func (owner) attributes() *syscall.SysProcAttr { return nil }
func (owner) own(string) error                 { return nil }
func (owner) shortDir() string                 { return os.TempDir() }

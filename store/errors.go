package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/kandev/recovery/recovery"
)

// Errors of the store. They are tested with errors.Is.
var (
	// ErrUnavailable: Postgres did not answer, or it is not known whether it
	// did what was asked. Repeating the call is safe. It is never an absence.
	ErrUnavailable = errors.New("the database did not answer")
	// ErrSchemaNewer: the database was migrated by a newer program.
	ErrSchemaNewer = errors.New("the database schema is newer than this program; run the newest version of the program on it, or restore a backup from before the upgrade")
	// ErrInvalidText: a value that Postgres text cannot hold (a NUL character
	// or bytes that are no UTF-8).
	ErrInvalidText = errors.New("text holds a NUL character or invalid UTF-8")

	ErrNoInstallation = errors.New("no such installation")
	ErrNoProfile      = errors.New("no such profile")
	ErrNoSession      = errors.New("no such session")
	ErrNoTurn         = errors.New("no such turn")
	// ErrNoRecord: the row was looked for, and is not there.
	ErrNoRecord = errors.New("nothing is recorded")
	// ErrConflict: see ConflictError.
	ErrConflict = errors.New("the session is not in a state that allows this")
	// ErrTurnOpen: another turn of the session has not ended.
	ErrTurnOpen = errors.New("another turn of the session is open")
	// ErrExecutionReplaced: the inventory names another execution than the
	// caller, or the caller's has ended.
	ErrExecutionReplaced = errors.New("the session's current execution is another one")
	// ErrRotationStale: a newer rotation of the same server is recorded (O-002.6).
	ErrRotationStale = errors.New("a newer rotation is recorded")
	// ErrSecretMissing: the store answered that there is no such secret (O-001.9).
	ErrSecretMissing = errors.New("no such secret")
	// ErrSecretSealed: the secret is there and cannot be unsealed (O-001.9).
	ErrSecretSealed = errors.New("the secret cannot be unsealed")
	// ErrEventGap: see EventGapError.
	ErrEventGap = errors.New("events are missing before this batch")
)

// ConflictError is a compare-and-set that lost: the session's state is Current.
type ConflictError struct {
	SessionID string
	Current   recovery.SessionState
}

// Error implements error.
func (e *ConflictError) Error() string {
	return fmt.Sprintf("session %s is in state %s", e.SessionID, e.Current)
}

// Is makes errors.Is(err, ErrConflict) hold.
func (e *ConflictError) Is(target error) bool { return target == ErrConflict }

// EventGapError says that a batch does not continue at the cursor. Nothing of
// the batch was written (B-1).
type EventGapError struct {
	Cursor int64 // newest committed number of the instance
	Got    int64 // first number that does not follow
}

// Error implements error.
func (e *EventGapError) Error() string {
	return fmt.Sprintf("event %d does not follow event %d", e.Got, e.Cursor)
}

// Is makes errors.Is(err, ErrEventGap) hold.
func (e *EventGapError) Is(target error) bool { return target == ErrEventGap }

// failure wraps an error of the database. Its text omits how the database was
// reached, because that names a path of the host.
type failure struct {
	op          string
	unavailable bool
	err         error
}

func (f *failure) Error() string {
	var pg *pgconn.PgError
	switch {
	case errors.As(f.err, &pg):
		return fmt.Sprintf("%s: %s (SQLSTATE %s)", f.op, pg.Message, pg.Code)
	case f.unavailable:
		return f.op + ": " + ErrUnavailable.Error()
	default:
		return f.op + ": " + f.err.Error()
	}
}

func (f *failure) Unwrap() error { return f.err }

func (f *failure) Is(target error) bool { return target == ErrUnavailable && f.unavailable }

// SQLSTATEs and classes that this package decides by.
const (
	sqlForeignKeyViolation = "23503"
	classConnection        = "08"
	classResources         = "53"
	classOperator          = "57" // shutdown, crash, cancelled by an operator
	classTransactionLost   = "40" // serialization failure, deadlock
)

// wrap adds what was being done, and tells what is known not to have happened
// from what is not known. The package's own errors pass unchanged in kind.
func wrap(op string, err error) error {
	if err == nil {
		return nil
	}
	return &failure{op: op, unavailable: undetermined(err), err: err}
}

func undetermined(err error) bool {
	var connect *pgconn.ConnectError
	if errors.As(err, &connect) {
		return true
	}
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		for _, class := range []string{classConnection, classResources, classOperator, classTransactionLost} {
			if strings.HasPrefix(pg.Code, class) {
				return true
			}
		}
		return false
	}
	var network net.Error
	if errors.As(err, &network) || pgconn.Timeout(err) || pgconn.SafeToRetry(err) {
		return true
	}
	for _, lost := range []error{
		context.DeadlineExceeded, context.Canceled, pgx.ErrTxCommitRollback, pgx.ErrTxClosed,
		net.ErrClosed, io.EOF, io.ErrUnexpectedEOF, pgconn.ErrConnClosed,
	} {
		if errors.Is(err, lost) {
			return true
		}
	}
	return false
}

func hasCode(err error, code string) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && pg.Code == code
}

func hasConstraint(err error, name string) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && pg.ConstraintName == name
}

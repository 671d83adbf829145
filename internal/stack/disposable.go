package stack

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// Disposable is a stack with its backend below a temporary directory: what a
// run needs that leaves nothing behind. Its fields are nil until they run.
type Disposable struct {
	Dir     string // everything lies below it; no symbolic link is part of its name
	Stack   *Stack
	Backend *Backend
}

// NewDisposable makes the directory.
func NewDisposable(name string) (_ *Disposable, err error) {
	d := &Disposable{}
	if d.Dir, err = os.MkdirTemp("", "kandev-"+name+"-"); err != nil {
		return nil, fmt.Errorf("create the directory of the run: %w", err)
	}
	// Symbolic links of the temporary directory must not make two names of one
	// workspace.
	if d.Dir, err = filepath.EvalSymlinks(d.Dir); err != nil {
		return nil, fmt.Errorf("resolve the directory of the run: %w", err)
	}
	// As root, Postgres runs as another user, who must get to its cluster.
	if err = os.Chmod(d.Dir, 0o755); err != nil {
		return nil, fmt.Errorf("open the directory of the run: %w", err)
	}
	return d, nil
}

// Home is the home directory of the installation.
func (d *Disposable) Home() string { return filepath.Join(d.Dir, "home") }

// Start starts the stack in the directory, whatever place the options name. All
// of it ends with this process, where the platform can.
func (d *Disposable) Start(ctx context.Context, opts Options) (err error) {
	opts.Home, opts.Data, opts.EndWithParent = d.Home(), d.Dir, true
	d.Stack, err = Start(ctx, opts)
	return err
}

// StartBackend starts a backend; an earlier one must have ended.
func (d *Disposable) StartBackend(ctx context.Context) error {
	backend, err := d.Stack.StartBackend(ctx)
	if err == nil {
		d.Backend = backend
	}
	return err
}

// Close ends every process and removes the directory, whatever came before. A
// reader's Ctrl-C is a reason to clean up, not to leave it: the end of ctx cuts
// nothing off.
func (d *Disposable) Close(ctx context.Context) error {
	ctx = context.WithoutCancel(ctx)
	var errs []error
	if d.Backend != nil {
		errs = append(errs, d.Backend.Stop(ctx))
	}
	if d.Stack != nil {
		errs = append(errs, d.Stack.Stop(ctx))
	}
	return errors.Join(append(errs, os.RemoveAll(d.Dir))...)
}

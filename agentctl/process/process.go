package process

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"

	"github.com/kandev/recovery/agentctl/wire"
)

// Errors of Start that the caller can put right.
var (
	// ErrCommandNotFound: the command does not exist or is not executable.
	ErrCommandNotFound = errors.New("command not found or not executable")
	// ErrWorkspace: the working directory is not an accessible directory.
	ErrWorkspace = errors.New("working directory is not a directory")
)

// Spec says what to start.
type Spec struct {
	Argv   []string // Argv[0] is looked up in the PATH of Env
	Env    []string // KEY=VALUE; the whole environment but for the marker (B-14)
	Dir    string   // absolute working directory
	Marker string   // unguessable; tells this tree from every other
}

// Process is one started process and its tree. Its methods may be used from
// several goroutines.
type Process struct {
	child  *os.Process
	tree   *tree
	stdin  *inputPipe
	stdout *outputPipe
	stderr *outputPipe
	start  string // start identity
	exited chan struct{}

	// Written before exited is closed.
	exitCode   int
	exitSignal string
}

// Start starts the process in a session of its own, with exactly the given
// environment plus its marker. It returns ErrWorkspace or ErrCommandNotFound if
// the directory or the command is at fault.
func Start(spec Spec) (*Process, error) {
	if err := checkDirectory(spec.Dir); err != nil {
		return nil, err
	}
	path, err := findCommand(spec)
	if err != nil {
		return nil, err
	}
	ends, err := openPipes()
	if err != nil {
		return nil, err
	}
	cmd := &exec.Cmd{
		Path: path, Args: spec.Argv, Dir: spec.Dir,
		Env:   append(slices.Clone(spec.Env), wire.EnvInstanceMarker+"="+spec.Marker),
		Stdin: ends.childIn, Stdout: ends.childOut, Stderr: ends.childErr,
		SysProcAttr: ownSession(),
	}
	err = spawn(cmd)
	ends.closeChild()
	if err != nil {
		ends.closeParent()
		return nil, startError(err)
	}
	return adopt(cmd.Process, spec.Marker, ends)
}

// adopt wraps a process that has just been started. Without a start identity
// it could never be stopped safely, so it is ended at once if that is unreadable.
func adopt(child *os.Process, marker string, ends *pipes) (*Process, error) {
	root, start, err := identifyChild(child.Pid)
	if err != nil {
		killErr := child.Kill()
		wait(child)
		ends.closeParent()
		return nil, fmt.Errorf("identify started process: %w", errors.Join(err, killErr))
	}
	p := &Process{
		child: child, start: start, exited: make(chan struct{}),
		tree:   newTree(root, marker),
		stdin:  &inputPipe{file: ends.in},
		stdout: &outputPipe{file: ends.out},
		stderr: &outputPipe{file: ends.err},
	}
	go p.await()
	return p, nil
}

// await ends when the process does, whatever holds its pipes.
func (p *Process) await() {
	holdExit(p.PID())
	p.tree.remember()
	p.exitCode, p.exitSignal = exitStatus(wait(p.child))
	p.stdout.processEnded()
	p.stderr.processEnded()
	close(p.exited)
}

// Stdin returns the process's standard input.
func (p *Process) Stdin() io.WriteCloser { return p.stdin }

// Stdout returns the process's standard output. After the process has ended,
// reading goes on to the end of what is there; a descendant that keeps the pipe
// open and silent delays the end by drainIdle at most.
func (p *Process) Stdout() io.ReadCloser { return p.stdout }

// Stderr returns the process's standard error, with the same end as Stdout.
func (p *Process) Stderr() io.ReadCloser { return p.stderr }

// PID returns the process id.
func (p *Process) PID() int { return p.child.Pid }

// StartIdentity returns what Identity answered for this process at its start.
func (p *Process) StartIdentity() string { return p.start }

// Exited is closed when the process itself has ended and been collected. Its
// descendants may still run and hold its pipes.
func (p *Process) Exited() <-chan struct{} { return p.exited }

// ExitStatus waits for the end of the process and returns its exit code, or the
// name of the signal that ended it. The code is -1 if there is none.
func (p *Process) ExitStatus() (code int, signal string) {
	<-p.exited
	return p.exitCode, p.exitSignal
}

// Close lets go of the pipes. It does not end the process; Stop does.
func (p *Process) Close() {
	p.stdin.end()
	closeFiles(p.stdout.file, p.stderr.file)
}

// SurvivorError says that processes of a tree were still there when a stop's
// time was over (B-6).
type SurvivorError struct {
	PIDs []int
	Err  error // why signals failed, if they did
}

func (e *SurvivorError) Error() string {
	return fmt.Sprintf("processes survived the stop: %v", e.PIDs)
}

func (e *SurvivorError) Unwrap() error { return e.Err }

func checkDirectory(dir string) error {
	info, err := os.Stat(dir)
	switch {
	case errors.Is(err, os.ErrNotExist), errors.Is(err, os.ErrPermission), isNotDirectory(err):
		return ErrWorkspace
	case err != nil:
		return fmt.Errorf("look at working directory: %w", withoutPath(err))
	case !info.IsDir():
		return ErrWorkspace
	}
	return nil
}

// withoutPath keeps the host's paths out of errors, which may be logged.
func withoutPath(err error) error {
	var at *os.PathError
	if errors.As(err, &at) {
		return at.Err
	}
	return err
}

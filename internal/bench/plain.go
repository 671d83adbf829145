package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/sync/errgroup"

	"github.com/kandev/recovery/agentctl/wire"
)

// Bounds of one batch, as those of the event stream.
const (
	batchEvents = 512
	batchBytes  = 1 << 20
)

// plain is the baseline: a program that reads the pipes of the same scripted
// agents, parses the JSON and inserts into the same table. It reads while it
// commits, as the product does. Nothing of it survives anything.
type plain struct {
	db     *pgxpool.Pool
	agents []*plainAgent

	opened  time.Time // when the agents began
	timed   bool      // how long updates and commits took is kept
	mu      sync.Mutex
	updates []sample // each from its write to after its commit
	commits []sample
}

// sample is how long something took that began at a time.
type sample struct {
	began time.Time
	took  float64 // seconds
}

// of returns what samples took that began in the window.
func (w window) of(samples []sample) (took []float64) {
	for _, s := range samples {
		if !s.began.Before(w.from) && s.began.Before(w.to) {
			took = append(took, s.took)
		}
	}
	return took
}

// newPlain starts n agents and opens a session with each. Their rows get the
// name, which is used once.
func (w *world) newPlain(ctx context.Context, db *pgxpool.Pool, name string, n int) (*plain, error) {
	p := &plain{db: db}
	state := filepath.Join(w.Dir, "plain-agents")
	for i := range n {
		a := &plainAgent{name: fmt.Sprintf("%s-%d", name, i)}
		if err := a.start(ctx, w.agent, state); err != nil {
			return nil, errors.Join(err, p.close())
		}
		p.agents = append(p.agents, a)
		if err := a.open(w.Dir); err != nil {
			return nil, errors.Join(err, p.close())
		}
	}
	return p, nil
}

// row is one event of the table.
type row struct {
	at      time.Time
	payload string
}

// round has every agent run the script behind the gate, and returns the time
// from its opening until everything was committed.
func (p *plain) round(ctx context.Context, script func(agent int) string, size int, open func() error) (time.Duration, error) {
	for i, a := range p.agents {
		if err := a.prompt(script(i)); err != nil {
			return 0, err
		}
	}
	if err := open(); err != nil {
		return 0, err
	}
	p.opened = time.Now()
	work, ctx := errgroup.WithContext(ctx)
	for _, a := range p.agents {
		rows := make(chan row, max(1, min(batchEvents, batchBytes/size)))
		work.Go(func() error {
			defer close(rows)
			return a.read(ctx, rows)
		})
		work.Go(func() error { return p.commit(ctx, a, rows) })
	}
	err := work.Wait()
	return time.Since(p.opened), err
}

// read passes updates on until the turn has ended.
func (a *plainAgent) read(ctx context.Context, rows chan<- row) error {
	for {
		m, err := a.next()
		if err != nil || m.Method == "" {
			return err
		}
		select {
		case rows <- row{time.Now(), string(m.Params)}:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// commit inserts what is there, as one batch, until there will be no more.
func (p *plain) commit(ctx context.Context, a *plainAgent, rows <-chan row) error {
	for first := range rows {
		batch, size := []row{first}, len(first.payload)
	collect:
		for len(batch) < batchEvents && size < batchBytes {
			select {
			case r, ok := <-rows:
				if !ok {
					break collect
				}
				batch, size = append(batch, r), size+len(r.payload)
			default:
				break collect
			}
		}
		began := time.Now()
		if err := insert(ctx, p.db, a.name, a.seq, batch); err != nil {
			return err
		}
		a.seq += int64(len(batch))
		if err := p.note(batch, began); err != nil {
			return err
		}
	}
	return nil
}

// note keeps how long a batch took whose commit began at that time, and its
// updates.
func (p *plain) note(batch []row, began time.Time) error {
	if !p.timed {
		return nil
	}
	now := time.Now()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.commits = append(p.commits, sample{began, now.Sub(began).Seconds()})
	for _, r := range batch {
		written, err := writtenAt(r.payload)
		if err != nil {
			return err
		}
		p.updates = append(p.updates, sample{written, now.Sub(written).Seconds()})
	}
	return nil
}

// insert writes rows in one transaction, which is durable when it returns.
func insert(ctx context.Context, db *pgxpool.Pool, name string, after int64, rows []row) error {
	seqs, ats, payloads := make([]int64, len(rows)), make([]time.Time, len(rows)), make([]string, len(rows))
	for i, r := range rows {
		seqs[i], ats[i], payloads[i] = after+int64(i)+1, r.at, r.payload
	}
	_, err := db.Exec(ctx, `
		INSERT INTO agent_events (installation_id, session_id, position, instance_id, seq, kind, turn_id, at, payload)
		SELECT 'plain', $1, u.seq, $1, u.seq, $2, '', u.at, u.payload
		FROM unnest($3::bigint[], $4::timestamptz[], $5::text[]) AS u (seq, at, payload)`,
		name, string(wire.EventUpdate), seqs, ats, payloads)
	if err != nil {
		return fmt.Errorf("insert: %w", err)
	}
	return nil
}

// close ends the agents, which end with their input.
func (p *plain) close() error {
	var errs []error
	for _, a := range p.agents {
		errs = append(errs, a.stdin.Close())
	}
	for _, a := range p.agents {
		_, err := io.Copy(io.Discard, a.stdout)
		errs = append(errs, err, a.cmd.Wait())
	}
	return errors.Join(errs...)
}

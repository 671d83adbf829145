package pump

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/cenkalti/backoff/v5"
	"go.uber.org/zap"

	"github.com/kandev/recovery/agentctl/client"
	"github.com/kandev/recovery/agentctl/wire"
	"github.com/kandev/recovery/internal/backend/owner"
	"github.com/kandev/recovery/internal/crashpoint"
	"github.com/kandev/recovery/store"
)

// pump carries the events of one instance.
type pump struct {
	cfg      Config
	together *together
	session  string
	instance string
	log      *zap.Logger
	cancel   context.CancelFunc
	done     chan struct{} // closed when nothing is committed any more

	server string            // identity of the server that has the instance, once known
	exit   *wire.AgentExited // the committed end of the agent
}

func (p *pump) stop() {
	p.cancel()
	<-p.done
}

// pump follows the instance's events across lost connections and outages of
// either peer. It returns how the instance ended, or nil when it is not this
// pump's business any more.
func (p *pump) pump(ctx context.Context) *Ending {
	delays := p.delays()
	end, err := retry(ctx, p, delays, "event stream interrupted", func() (*Ending, error) {
		return p.follow(ctx, delays)
	})
	switch {
	case err == nil:
		return end
	case ctx.Err() != nil:
		p.log.Debug("event pump stopped")
	default:
		p.log.Warn("event pump ended", zap.Error(err))
	}
	return nil
}

// follow attaches once and pumps until that stream ends. A progress resets the
// delays, so that the next interruption is met at once again.
func (p *pump) follow(ctx context.Context, delays backoff.BackOff) (*Ending, error) {
	c, server, err := p.cfg.Source.Client()
	if err != nil {
		return nil, backoff.Permanent(err)
	}
	if p.server != "" && p.server != server.Identity {
		return nil, backoff.Permanent(errOtherServer)
	}
	p.server = server.Identity
	after, err := p.cfg.Journal.Cursor(ctx, p.cfg.Installation, p.instance)
	if err != nil {
		return nil, fmt.Errorf("read the event cursor: %w", err)
	}
	stream, err := c.Events(ctx, p.instance, after)
	if err == nil {
		err = p.drain(ctx, stream, after, delays)
		if closeErr := stream.Close(); closeErr != nil {
			p.log.Debug("event stream did not close cleanly", zap.Error(closeErr))
		}
	}
	return p.streamEnded(ctx, server, err)
}

// drain moves events until the stream ends. What was committed before the
// attach is acknowledged first: a crash between commit and acknowledgement must
// not leave it to fill the instance's log.
func (p *pump) drain(ctx context.Context, stream *client.EventStream, committed int64, delays backoff.BackOff) error {
	if err := stream.Ack(ctx, committed); err != nil {
		return err
	}
	in := newInbox()
	reading, stop := context.WithCancel(ctx)
	defer in.filled.Wait()
	defer stop()
	in.filled.Go(func() { in.fill(reading, stream) })
	for {
		events, err := in.take(ctx)
		if err != nil {
			return err
		}
		last, err := p.commit(ctx, events)
		if err != nil {
			return err
		}
		delays.Reset()
		if err := stream.Ack(ctx, last); err != nil {
			return in.reason() // the server's, if it gave one
		}
	}
}

// commit writes the batch durably, the same one again for as long as Postgres
// does not answer, and from then on alone. The agent pauses meanwhile, at the
// bounds of its log (B-1).
func (p *pump) commit(ctx context.Context, events []wire.Event) (last int64, err error) {
	batch, exit, err := p.batch(events)
	if err != nil {
		return 0, err
	}
	crashpoint.Hit("pump.before_commit")
	attempt := p.together.commit
	last, err = retry(ctx, p, p.delays(), "events could not be committed", func() (int64, error) {
		committed, err := attempt(ctx, batch)
		attempt = p.cfg.Journal.CommitEvents
		if errors.Is(err, store.ErrEventGap) {
			err = backoff.Permanent(err) // the batch is not the next one: attach again at the cursor
		}
		return committed, err
	})
	if err != nil {
		return 0, err
	}
	crashpoint.Hit("pump.after_commit")
	if exit != nil {
		p.exit = exit
	}
	p.cfg.Notifier.Changed(p.session)
	now := p.cfg.Clock()
	for _, e := range events {
		p.cfg.Committed(e.At, now)
	}
	return last, nil
}

// streamEnded decides what the end of a stream means: the instance's end, the end
// of this pump (a permanent error), or a new attempt (any other error).
func (p *pump) streamEnded(ctx context.Context, server owner.Server, err error) (*Ending, error) {
	var gap *client.GapError
	switch {
	case owner.Rejected(err):
		return nil, p.superseded(server, err)
	case errors.Is(err, client.ErrNewerStream):
		return nil, backoff.Permanent(err)
	case errors.Is(err, client.ErrStopped), errors.Is(err, errNotFound):
		return &Ending{SessionID: p.session, InstanceID: p.instance, Exit: p.exit}, nil
	case errors.As(err, &gap):
		return nil, p.mark(ctx, *gap)
	default:
		return nil, err
	}
}

var (
	errNotFound = &wire.Error{Code: wire.CodeNotFound}
	// errOtherServer: what another server says of the instance means nothing.
	errOtherServer = errors.New("another control server is in use")
	errGapMarked   = errors.New("a gap was recorded; attaching after it")
)

// superseded ends the pump, unless this boot itself adopted the server again
// meanwhile: then the newer credential goes on.
func (p *pump) superseded(used owner.Server, err error) error {
	p.cfg.Source.ReportSuperseded(used)
	if _, now, lookErr := p.cfg.Source.Client(); lookErr == nil &&
		now.Identity == used.Identity && now.RotationID > used.RotationID {
		return err
	}
	return backoff.Permanent(err)
}

// mark records that events are lost, and lets the pump go on from the first one
// that is kept.
func (p *pump) mark(ctx context.Context, gap client.GapError) error {
	p.log.Error("events of the instance are lost",
		zap.Int64("first_kept", gap.First), zap.Int64("next", gap.Next))
	committed, err := p.cfg.Journal.CommitGap(ctx, store.Gap{
		Installation: p.cfg.Installation, SessionID: p.session, InstanceID: p.instance,
		Next: gap.First, At: p.cfg.Clock(),
	})
	if err != nil {
		return fmt.Errorf("record the gap: %w", err)
	}
	if committed != gap.First-1 {
		return backoff.Permanent(fmt.Errorf("%d events are committed, and the server's next one is %d", committed, gap.Next))
	}
	p.cfg.Notifier.Changed(p.session)
	return errGapMarked
}

func (p *pump) settle(ctx context.Context, ending Ending) {
	_, err := retry(ctx, p, p.delays(), "ended session not settled", func() (struct{}, error) {
		return struct{}{}, p.cfg.Ended(ctx, ending)
	})
	if err != nil {
		p.log.Warn("ended session left unsettled", zap.Error(err))
	}
}

func (p *pump) delays() *backoff.ExponentialBackOff {
	b := backoff.NewExponentialBackOff()
	b.InitialInterval, b.MaxInterval = p.cfg.RetryFrom, p.cfg.RetryUpTo
	return b
}

// retry repeats the operation until it succeeds, fails permanently or ctx ends.
func retry[T any](ctx context.Context, p *pump, delays backoff.BackOff, what string, op backoff.Operation[T]) (T, error) {
	return backoff.Retry(ctx, op, backoff.WithBackOff(delays), backoff.WithMaxElapsedTime(0),
		backoff.WithNotify(func(err error, next time.Duration) {
			p.log.Warn(what, zap.Error(err), zap.Duration("retry_in", next))
		}))
}

package pump

import (
	"encoding/json"
	"fmt"

	"github.com/kandev/recovery/agentctl/wire"
	"github.com/kandev/recovery/store"
)

// batch turns consecutive events into one transaction's worth of rows, with what
// they say about turns. exit is set when they hold the end of the agent.
func (p *pump) batch(events []wire.Event) (b store.Batch, exit *wire.AgentExited, err error) {
	b = store.Batch{
		Installation: p.cfg.Installation, BootID: p.cfg.BootID,
		SessionID: p.session, InstanceID: p.instance,
		Events: make([]store.EventRow, 0, len(events)),
	}
	for _, e := range events {
		b.Events = append(b.Events, store.EventRow{
			Seq: e.Seq, Kind: string(e.Kind), TurnID: e.TurnID, At: e.At, Payload: e.Payload,
		})
		switch e.Kind {
		case wire.EventTurnStarted:
			var started wire.TurnStarted
			err = decode(e, &started)
			b.TurnsStarted = append(b.TurnsStarted, store.TurnStart{Key: started.Key, TurnID: e.TurnID})
		case wire.EventTurnEnded:
			var ended wire.TurnOutcome
			err = decode(e, &ended)
			b.Outcomes = append(b.Outcomes, store.Outcome{
				TurnID: ended.TurnID, Key: ended.Key, StopReason: ended.StopReason,
				Error: ended.Error, EndedAt: ended.EndedAt,
			})
		case wire.EventAgentExited:
			exit = &wire.AgentExited{}
			err = decode(e, exit)
		}
		if err != nil {
			return store.Batch{}, nil, err
		}
	}
	return b, exit, nil
}

func decode(e wire.Event, into any) error {
	if err := json.Unmarshal(e.Payload, into); err != nil {
		return fmt.Errorf("event %d of kind %s is unreadable: %w", e.Seq, e.Kind, err)
	}
	return nil
}

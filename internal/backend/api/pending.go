package api

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"

	"github.com/kandev/recovery/agentctl/wire"
	"github.com/kandev/recovery/store"
	"github.com/kandev/recovery/userapi"
)

// permissions knows which permission requests wait for an answer. It follows the
// committed events about them in each session that it was asked about, and reads
// each of these once, and nothing else of a transcript.
type permissions struct {
	mu       sync.Mutex
	sessions map[string]*requests
}

// requests are the open ones of a session's newest instance.
type requests struct {
	mu       sync.Mutex
	position int64  // up to which the transcript is known
	instance string // whose requests these are
	open     []userapi.Permission
}

// page is how many events are read at once.
const page = 200

func (p *permissions) of(ctx context.Context, svc *Services, session store.Session, instance string) ([]userapi.Permission, error) {
	known := p.session(session.ID)
	known.mu.Lock()
	defer known.mu.Unlock()
	if err := known.catchUp(ctx, svc, session); err != nil {
		return nil, err
	}
	if known.instance != instance {
		return nil, nil
	}
	return slices.Clone(known.open), nil
}

// catchUp reads up to the position that the session had, at least.
func (r *requests) catchUp(ctx context.Context, svc *Services, session store.Session) error {
	for r.position < session.Position {
		events, err := svc.Store.PermissionEventsAfter(ctx, svc.Installation, session.ID, r.position, page)
		if err != nil {
			return err
		}
		for _, e := range events {
			if err := r.follow(e); err != nil {
				return err
			}
		}
		if len(events) < page {
			r.position = max(r.position, session.Position)
		}
	}
	return nil
}

func (p *permissions) session(id string) *requests {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.sessions == nil {
		p.sessions = make(map[string]*requests)
	}
	if p.sessions[id] == nil {
		p.sessions[id] = &requests{}
	}
	return p.sessions[id]
}

func (r *requests) follow(e store.Event) error {
	if e.InstanceID != r.instance {
		r.instance, r.open = e.InstanceID, nil
	}
	switch wire.EventKind(e.Kind) {
	case wire.EventPermissionRequest:
		var requested wire.PermissionRequested
		if err := json.Unmarshal(e.Payload, &requested); err != nil {
			return fmt.Errorf("permission request at position %d is unreadable: %w", e.Position, err)
		}
		r.open = append(r.open, userapi.Permission{RequestID: requested.RequestID, Params: requested.Params})
	case wire.EventPermissionSettled:
		var settled wire.PermissionSettled
		if err := json.Unmarshal(e.Payload, &settled); err != nil {
			return fmt.Errorf("permission answer at position %d is unreadable: %w", e.Position, err)
		}
		r.open = slices.DeleteFunc(r.open, func(p userapi.Permission) bool { return p.RequestID == settled.RequestID })
	case wire.EventAgentExited:
		r.open = nil
	}
	r.position = e.Position
	return nil
}

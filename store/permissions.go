package store

import (
	"context"

	"github.com/jackc/pgx/v5"
)

// The kinds are literals, so that the planner sees that the partial index on them
// answers the query.
const selectPermissionEvents = `
	SELECT position, instance_id, seq, kind, turn_id, at, payload FROM agent_events
	WHERE session_id = $2 AND position > $3 AND installation_id = $1
	AND kind IN ('permission_request', 'permission_settled', 'agent_exited')
	ORDER BY position LIMIT $4`

// PermissionEventsAfter reads at most limit committed events behind the position,
// in order, of the kinds that say which permission requests wait: requests, their
// settlements, and ends of agents. It costs what these are, however long the
// transcript is (S-001.9).
func (s *Store) PermissionEventsAfter(ctx context.Context, inst, session string, position int64, limit int) ([]Event, error) {
	const op = "read permission events"
	rows, err := s.pool.Query(ctx, selectPermissionEvents, inst, session, position, limit)
	if err != nil {
		return nil, wrap(op, err)
	}
	list, err := pgx.CollectRows(rows, scanEvent)
	return list, wrap(op, err)
}

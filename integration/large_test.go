package integration

import (
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/kandev/recovery/agentctl/wire"
)

// row is what there is to see of a committed event without reading all of it.
type row struct {
	Position, Seq int64
	Kind          string
	Number        string // that the agent wrote into an update
	Whole         bool   // an update has all of its bytes
}

// largeTurns is what so many turns of so many large updates leave.
func largeTurns(turns, updates int) []row {
	var rows []row
	number := 0
	add := func(r row) {
		r.Position = int64(len(rows) + 1)
		r.Seq = r.Position
		rows = append(rows, r)
	}
	for range turns {
		add(row{Kind: string(wire.EventTurnStarted)})
		for range updates {
			number++
			add(row{Kind: string(wire.EventUpdate), Number: fmt.Sprint(number), Whole: true})
		}
		add(row{Kind: string(wire.EventTurnEnded)})
	}
	return rows
}

// large reads the committed events of a session whose updates are that large.
func (w *world) large(session string, size int) []row {
	w.t.Helper()
	conn, err := pgx.Connect(w.t.Context(), w.settings["KANDEV_DATABASE_DSN"])
	require.NoError(w.t, err)
	defer conn.Close(w.t.Context())
	rows, err := conn.Query(w.t.Context(), `
		SELECT position, seq, kind, coalesce(substring(left(payload, 500) FROM '"text":"[0-9]+ ([0-9]+) '), ''), length(payload) > $2
		FROM agent_events WHERE session_id = $1 ORDER BY position`, session, size)
	require.NoError(w.t, err)
	found, err := pgx.CollectRows(rows, pgx.RowToStructByPos[row])
	require.NoError(w.t, err)
	return found
}

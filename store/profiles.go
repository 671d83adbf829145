package store

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/jackc/pgx/v5"
)

// Profile says how an agent is started. It holds no secret.
type Profile struct {
	ID          string
	Agent       string // registry name
	Command     []string
	Env         map[string]string
	HistoryMode string
}

// PutProfile creates or replaces a profile.
func (s *Store) PutProfile(ctx context.Context, inst string, p Profile) error {
	const op = "put profile"
	if err := checkText(append([]string{inst, p.ID, p.Agent, p.HistoryMode}, p.Command...)...); err != nil {
		return wrap(op, err)
	}
	env, err := json.Marshal(p.Env)
	if err != nil {
		return wrap(op, err)
	}
	_, err = s.pool.Exec(ctx, `
		INSERT INTO agent_profiles (installation_id, id, agent, command, env, history_mode)
		VALUES ($1, $2, $3, $4, $5, $6)
		ON CONFLICT (installation_id, id) DO UPDATE
		SET agent = excluded.agent, command = excluded.command, env = excluded.env,
		    history_mode = excluded.history_mode, updated_at = clock_timestamp()`,
		inst, p.ID, p.Agent, notNil(p.Command), string(env), p.HistoryMode)
	if hasCode(err, sqlForeignKeyViolation) {
		err = ErrNoInstallation
	}
	return wrap(op, err)
}

// GetProfile reads a profile; ErrNoProfile if there is none.
func (s *Store) GetProfile(ctx context.Context, inst, id string) (Profile, error) {
	const op = "get profile"
	p := Profile{ID: id}
	var env string
	err := s.pool.QueryRow(ctx, `
		SELECT agent, command, env, history_mode FROM agent_profiles
		WHERE installation_id = $1 AND id = $2`, inst, id).
		Scan(&p.Agent, &p.Command, &env, &p.HistoryMode)
	if errors.Is(err, pgx.ErrNoRows) {
		return Profile{}, wrap(op, ErrNoProfile)
	}
	if err == nil {
		err = json.Unmarshal([]byte(env), &p.Env)
	}
	return p, wrap(op, err)
}

// notNil keeps an empty list from becoming NULL.
func notNil(list []string) []string {
	if list == nil {
		return []string{}
	}
	return list
}

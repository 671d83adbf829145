package client

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/kandev/recovery/agentctl/wire"
)

// List enumerates the instances (S-002.1). An answer without a list is
// ErrNoAnswer, never an empty one.
func (c *Client) List(ctx context.Context) ([]wire.Instance, error) {
	var list wire.InstanceList
	if err := c.call(ctx, http.MethodGet, wire.RouteInstances, nil, &list); err != nil {
		return nil, err
	}
	if list.Instances == nil {
		return nil, fmt.Errorf("%w: answer without a list", ErrNoAnswer)
	}
	return list.Instances, nil
}

// Get reads one instance with its roots and run environment.
func (c *Client) Get(ctx context.Context, id string) (wire.InstanceDetail, error) {
	var detail wire.InstanceDetail
	err := c.call(ctx, http.MethodGet, path(wire.RouteInstance, id), nil, &detail)
	return detail, err
}

// Create starts an agent. It is idempotent by id (B-17).
func (c *Client) Create(ctx context.Context, id string, request wire.CreateRequest) (wire.Instance, error) {
	var instance wire.Instance
	err := c.call(ctx, http.MethodPut, path(wire.RouteInstance, id), request, &instance)
	return instance, err
}

// Stop ends an instance, by force once grace has passed, and waits for it for
// grace plus the client's timeout. absent: there was none, which is success.
func (c *Client) Stop(ctx context.Context, id string, grace time.Duration) (absent bool, err error) {
	limit := c.cfg.HTTPTimeout
	if limit > 0 {
		limit += grace
	}
	var stopped wire.StopResponse
	request := wire.StopRequest{GraceMS: grace.Milliseconds()}
	err = c.callWithin(ctx, limit, http.MethodDelete, path(wire.RouteInstance, id), request, &stopped)
	return stopped.Absent, err
}

// Prompt opens a turn. It is idempotent by key (B-17).
func (c *Client) Prompt(ctx context.Context, id, key string, request wire.PromptRequest) (wire.Turn, error) {
	var turn wire.Turn
	err := c.call(ctx, http.MethodPut, path(wire.RouteTurn, id, key), request, &turn)
	return turn, err
}

// Cancel asks the agent to end its open turn.
func (c *Client) Cancel(ctx context.Context, id string) error {
	return c.call(ctx, http.MethodPost, path(wire.RouteCancel, id), nil, nil)
}

// AnswerPermission settles an outstanding permission request.
func (c *Client) AnswerPermission(ctx context.Context, id, requestID string, answer wire.PermissionAnswer) error {
	return c.call(ctx, http.MethodPost, path(wire.RoutePermission, id, requestID), answer, nil)
}

// Startup reports how far the instance's start has come.
func (c *Client) Startup(ctx context.Context, id string) (wire.Startup, error) {
	var startup wire.Startup
	err := c.call(ctx, http.MethodGet, path(wire.RouteStartup, id), nil, &startup)
	return startup, err
}

// TurnOutcome reads the last terminal outcome without discarding it (S-004.6).
func (c *Client) TurnOutcome(ctx context.Context, id string) (wire.KeptOutcome, error) {
	var kept wire.KeptOutcome
	err := c.call(ctx, http.MethodGet, path(wire.RouteTurnOutcome, id), nil, &kept)
	return kept, err
}

// AckTurnOutcome discards the kept outcome of that turn, after it was stored.
func (c *Client) AckTurnOutcome(ctx context.Context, id, turnID string) error {
	request := wire.AckOutcomeRequest{TurnID: turnID}
	return c.call(ctx, http.MethodPost, path(wire.RouteAckOutcome, id), request, nil)
}

package userapi

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
)

// Client calls one backend. Its methods return *Error for a refusal of the
// backend, and other errors where it did not answer.
type Client struct {
	base  string
	token string
	http  *http.Client
}

// NewClient returns a client of the backend at base, such as
// "http://127.0.0.1:38429". Deadlines come from the contexts of the calls.
func NewClient(base, token string) *Client {
	return &Client{base: strings.TrimRight(base, "/"), token: token, http: &http.Client{}}
}

// Status reads the status page.
func (c *Client) Status(ctx context.Context) (Status, error) {
	var out Status
	return out, c.call(ctx, http.MethodGet, RouteStatus, nil, &out)
}

// Survival reads the setting of the survival capability.
func (c *Client) Survival(ctx context.Context) (SurvivalSetting, error) {
	var out SurvivalSetting
	return out, c.call(ctx, http.MethodGet, RouteSurvival, nil, &out)
}

// SetSurvival turns the survival capability on or off, from the next start on
// (S-005.7).
func (c *Client) SetSurvival(ctx context.Context, on bool) (SurvivalSetting, error) {
	var out SurvivalSetting
	return out, c.call(ctx, http.MethodPut, RouteSurvival, SetSurvival{On: &on}, &out)
}

// PutProfile creates or replaces a profile.
func (c *Client) PutProfile(ctx context.Context, p Profile) error {
	return c.call(ctx, http.MethodPut, route(RouteProfile, "id", p.ID), p, nil)
}

// CreateSession creates a session and starts its agent; the session is in
// STARTING or CREATED until the agent is ready.
func (c *Client) CreateSession(ctx context.Context, req CreateSession) (Session, error) {
	var out Session
	return out, c.call(ctx, http.MethodPost, RouteSessions, req, &out)
}

// Sessions lists all sessions of the installation.
func (c *Client) Sessions(ctx context.Context) ([]Session, error) {
	var out struct {
		Sessions []Session `json:"sessions"`
	}
	err := c.call(ctx, http.MethodGet, RouteSessions, nil, &out)
	return out.Sessions, err
}

// Session reads one session.
func (c *Client) Session(ctx context.Context, id string) (Session, error) {
	var out Session
	return out, c.call(ctx, http.MethodGet, route(RouteSession, "id", id), nil, &out)
}

// Prompt opens a turn. Repeating it with the same key changes nothing (B-17).
func (c *Client) Prompt(ctx context.Context, id, key, text string) (Turn, error) {
	var out Turn
	return out, c.call(ctx, http.MethodPut, route(RoutePrompt, "id", id, "key", key), Prompt{Text: text}, &out)
}

// Cancel asks the agent to end its turn.
func (c *Client) Cancel(ctx context.Context, id string) error {
	return c.call(ctx, http.MethodPost, route(RouteCancel, "id", id), nil, nil)
}

// Stop stops the session's agent; it may be repeated (B-22).
func (c *Client) Stop(ctx context.Context, id string) error {
	return c.call(ctx, http.MethodPost, route(RouteStop, "id", id), nil, nil)
}

// AnswerPermission settles a permission request.
func (c *Client) AnswerPermission(ctx context.Context, id, request string, a PermissionAnswer) error {
	return c.call(ctx, http.MethodPut, route(RoutePermission, "id", id, "request", request), a, nil)
}

// Transitions lists a session's changes of state, oldest first.
func (c *Client) Transitions(ctx context.Context, id string) ([]Transition, error) {
	var out struct {
		Transitions []Transition `json:"transitions"`
	}
	err := c.call(ctx, http.MethodGet, route(RouteHistory, "id", id), nil, &out)
	return out.Transitions, err
}

// Events follows the session's committed events after the position, calling
// each for every one in order, until the context ends, the backend goes away,
// or each returns an error, which it then returns. To go on, call again with
// the last position seen.
func (c *Client) Events(ctx context.Context, id string, after int64, each func(Event) error) error {
	target := route(RouteEvents, "id", id) + "?after=" + strconv.FormatInt(after, 10)
	resp, err := c.send(ctx, http.MethodGet, target, nil)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return refusal(resp)
	}
	lines := bufio.NewReader(resp.Body)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return fmt.Errorf("event stream of session %s ended: %w", id, err)
		}
		data, ok := bytes.CutPrefix(line, []byte("data: "))
		if !ok {
			continue
		}
		var e Event
		if err := json.Unmarshal(data, &e); err != nil {
			return fmt.Errorf("decode event of session %s: %w", id, err)
		}
		if err := each(e); err != nil {
			return err
		}
	}
}

// Metrics reads what the backend counts, in Prometheus' text format.
func (c *Client) Metrics(ctx context.Context) (string, error) {
	resp, err := c.send(ctx, http.MethodGet, RouteMetrics, nil)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return "", refusal(resp)
	}
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return "", fmt.Errorf("read metrics: %w", err)
	}
	return string(text), nil
}

func (c *Client) call(ctx context.Context, method, target string, in, out any) error {
	var body []byte
	if in != nil {
		var err error
		if body, err = json.Marshal(in); err != nil {
			return fmt.Errorf("encode request: %w", err)
		}
	}
	resp, err := c.send(ctx, method, target, body)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode >= 300 {
		return refusal(resp)
	}
	if out == nil {
		return nil
	}
	if err := json.NewDecoder(resp.Body).Decode(out); err != nil {
		return fmt.Errorf("decode answer of %s: %w", target, err)
	}
	return nil
}

func (c *Client) send(ctx context.Context, method, target string, body []byte) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, c.base+target, bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("build request: %w", err)
	}
	req.Header.Set("Authorization", "Bearer "+c.token)
	if len(body) > 0 {
		req.Header.Set("Content-Type", "application/json")
	}
	return c.http.Do(req)
}

// refusalBytes bounds how much of a refusal is read.
const refusalBytes = 64 << 10

func refusal(resp *http.Response) error {
	raw, err := io.ReadAll(io.LimitReader(resp.Body, refusalBytes))
	if err != nil {
		return fmt.Errorf("read refusal (HTTP %d): %w", resp.StatusCode, err)
	}
	var body ErrorBody
	if json.Unmarshal(raw, &body) == nil && body.Error != nil {
		return body.Error
	}
	return fmt.Errorf("the server answered HTTP %d without saying why; is it a kandev backend?", resp.StatusCode)
}

// route fills the {names} of a pattern with escaped values.
func route(pattern string, pairs ...string) string {
	for i := 0; i+1 < len(pairs); i += 2 {
		pattern = strings.ReplaceAll(pattern, "{"+pairs[i]+"}", url.PathEscape(pairs[i+1]))
	}
	return pattern
}

package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/kandev/recovery/agentctl/wire"
)

// maxAnswerBytes bounds one answer or event frame read from the server.
const maxAnswerBytes = 64 << 20

// Config says which server to talk to, and as whom.
type Config struct {
	Endpoint    string // host:port
	Fingerprint string // hex SHA-256 of the server's certificate
	Credential  string // empty for what needs none
	// HTTPTimeout bounds every call but an event stream; a stop may take its
	// grace in addition. Zero leaves the bound to the context.
	HTTPTimeout time.Duration
}

// Client talks to one control server as the holder of one credential. It is
// safe for concurrent use.
type Client struct {
	cfg  Config
	http *http.Client
}

// New returns a client. It opens no connection.
func New(cfg Config) *Client {
	return &Client{cfg: cfg, http: &http.Client{
		Transport: newTransport(pinnedDialer(cfg.Fingerprint)),
		// A redirect would carry the credential elsewhere.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// WithCredential returns a client for the same server that presents another
// credential. Both share their connections.
func (c *Client) WithCredential(credential string) *Client {
	cfg := c.cfg
	cfg.Credential = credential
	return &Client{cfg: cfg, http: c.http}
}

// Close drops idle connections. Calls under way and event streams go on.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// path fills the {names} of a route, in order, with escaped values.
func path(route string, values ...string) string {
	for _, v := range values {
		open, end := strings.IndexByte(route, '{'), strings.IndexByte(route, '}')
		route = route[:open] + url.PathEscape(v) + route[end+1:]
	}
	return route
}

// call makes one request with the client's timeout, and decodes the answer into
// out unless that is nil.
func (c *Client) call(ctx context.Context, method, route string, in, out any) error {
	return c.callWithin(ctx, c.cfg.HTTPTimeout, method, route, in, out)
}

func (c *Client) callWithin(ctx context.Context, limit time.Duration, method, route string, in, out any) error {
	if limit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, limit)
		defer cancel()
	}
	return exchange(ctx, c.http, c.cfg, method, route, in, out)
}

// exchange makes one request over the given HTTP client.
func exchange(ctx context.Context, hc *http.Client, cfg Config, method, route string, in, out any) error {
	req, err := newRequest(ctx, cfg, method, route, in)
	if err != nil {
		return err
	}
	resp, err := hc.Do(req)
	if err != nil {
		return classify(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswerBytes+1))
	if err != nil {
		return classify(err)
	}
	if len(body) > maxAnswerBytes {
		return fmt.Errorf("%w: answer over %d bytes", ErrNoAnswer, maxAnswerBytes)
	}
	if resp.StatusCode != http.StatusOK {
		return refusal(resp.StatusCode, body)
	}
	if out == nil {
		return nil
	}
	if err := json.Unmarshal(body, out); err != nil {
		return errors.Join(errUnreadable, fmt.Errorf("%w: decode answer", ErrNoAnswer))
	}
	return nil
}

// errUnreadable marks answers that arrived and could not be understood.
var errUnreadable = errors.New("unreadable answer")

func newRequest(ctx context.Context, cfg Config, method, route string, in any) (*http.Request, error) {
	var body io.Reader
	if in != nil {
		raw, err := json.Marshal(in)
		if err != nil {
			return nil, fmt.Errorf("encode request: %w", err)
		}
		body = bytes.NewReader(raw)
	}
	req, err := http.NewRequestWithContext(ctx, method, "https://"+cfg.Endpoint+route, body)
	if err != nil {
		return nil, fmt.Errorf("build request: %w", err)
	}
	if in != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if cfg.Credential != "" {
		req.Header.Set(wire.HeaderCredential, "Bearer "+cfg.Credential)
	}
	return req, nil
}

// refusal reads the server's error. A status without a readable error leaves
// open what happened.
func refusal(status int, body []byte) error {
	var envelope wire.ErrorBody
	if err := json.Unmarshal(body, &envelope); err != nil || envelope.Error == nil || envelope.Error.Code == "" {
		return errors.Join(errUnreadable, fmt.Errorf("%w: status %d without a reason", ErrNoAnswer, status))
	}
	return envelope.Error
}

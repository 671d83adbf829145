package store

import (
	"bytes"
	"encoding/json"
	"strings"
	"time"
	"unicode/utf8"
)

const replacement = "\uFFFD"

// checkText refuses what a user or a program of ours sent and Postgres text
// cannot hold.
func checkText(values ...string) error {
	for _, v := range values {
		if strings.ContainsRune(v, 0) || !utf8.ValidString(v) {
			return ErrInvalidText
		}
	}
	return nil
}

// cleanText makes an agent's text storable: what Postgres text cannot hold
// becomes U+FFFD, because losing a turn's end over it would be worse.
func cleanText(v string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(v, replacement), "\x00", replacement)
}

// cleanJSON returns the payload as it was if it is JSON in UTF-8, escaped NUL
// characters included. Otherwise bytes that are no UTF-8 are replaced, and what
// still is no JSON is kept as one JSON string. No payload can fail a batch.
//
// The columns are text: jsonb refuses \u0000, reorders keys and costs a parse
// for every event, json refuses deep nesting; nothing queries inside.
func cleanJSON(payload json.RawMessage) (string, error) {
	if len(payload) == 0 {
		return "", nil
	}
	if !utf8.Valid(payload) {
		payload = bytes.ToValidUTF8(payload, []byte(replacement))
	}
	if json.Valid(payload) {
		return string(payload), nil
	}
	quoted, err := json.Marshal(string(payload))
	return string(quoted), err
}

// micros cuts a time to what Postgres keeps, so that a value compares equal
// after a round trip.
func micros(t time.Time) time.Time { return t.UTC().Truncate(time.Microsecond) }

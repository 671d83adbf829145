package acp

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
)

// FuzzParse, B-9: a message is what package encoding/json finds in the line. That
// package takes members whose names differ in case only for the same, which this
// one does not: lines with such members are left out.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		``, `null`, `{}`, `[]`, `"{"`, `{"id":1`, ` { "jsonrpc" : "2.0" , "id" : 1 , "result" : null } `,
		`{"jsonrpc":"2.0","method":"session/update","params":{"a":["]","}","\\","\"","\\\""],"b":{}}}`,
		`{"method":"session\/upd\u0061te","params":null}`, `{"id":1,"id":null,"error":{"code":1}}`, `{"method":1}`,
		`{"method":"a","method":null}`, `{"jsonrpc":{},"id":1}`, `{"m\u0065thod":"x"}`, "{\"method\":\"\xff\"}", `{"":{"":[[[1.5e3,true]]]}}`,
		`{"id":"\\","result":"\\\\"}`, "{\"id\"\t:\r\n-1e9\n,\"result\":[]}", `{"params":"ä\ud800"}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		var want message
		err := json.Unmarshal(line, &want)
		folded := false
		if json.Valid(line) {
			members(line, func(name string, value []byte) {
				require.True(t, json.Valid(value))
				switch lower := string(bytes.ToLower([]byte(name))); lower {
				case name:
				default:
					folded = true
				}
				folded = folded || bytes.ContainsAny([]byte(name), "ſK")
			})
		}
		if folded {
			return
		}
		got, ok := parse(line)
		if err != nil {
			require.False(t, ok)
			return
		}
		for _, member := range []*json.RawMessage{&want.ID, &want.Params, &want.Error} {
			if string(*member) == "null" {
				*member = nil
			}
		}
		if ok {
			require.Equal(t, want, got)
		} else if want.Method == "" {
			require.True(t, want.ID == nil || want.Version == "" && want.Result == nil && want.Error == nil)
		} else {
			require.True(t, isEcho(want.Method))
		}
	})
}

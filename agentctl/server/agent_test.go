package server_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const (
	// envAgent makes this test binary an agent.
	envAgent = "TEST_AGENT"
	// envControlServer makes it a control server.
	envControlServer = "TEST_CONTROL_SERVER"
	// envLinger is how long it lives on after it was asked to end.
	envLinger = "TEST_AGENT_LINGER"
)

type message struct {
	ID     json.RawMessage `json:"id,omitempty"`
	Method string          `json:"method,omitempty"`
	Params json.RawMessage `json:"params,omitempty"`
	Result json.RawMessage `json:"result,omitempty"`
}

// runAgent speaks as much ACP as the tests need. A prompt "ask" requests a
// permission, "burst" says 2 MiB before it does, "flood" sends updates without
// end, "sizes 9 40" an update of so many MiB each and a small one after it, "exit" ends the process within the turn, "wait" leaves the turn open until
// it is cancelled, and anything else is answered by one update.
func runAgent(in io.Reader, out io.Writer) {
	if linger, err := time.ParseDuration(os.Getenv(envLinger)); err == nil {
		asked := make(chan os.Signal, 1)
		signal.Notify(asked, syscall.SIGTERM)
		defer func() {
			<-asked
			<-time.After(linger)
		}()
	}
	send := func(v any) {
		raw, err := json.Marshal(v)
		if err != nil {
			panic(err)
		}
		fmt.Fprintf(out, "%s\n", raw)
	}
	answer := func(id json.RawMessage, result any) {
		send(map[string]any{"jsonrpc": "2.0", "id": id, "result": result})
	}
	var open json.RawMessage
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var m message
		if err := json.Unmarshal(lines.Bytes(), &m); err != nil {
			panic(err)
		}
		switch m.Method {
		case "initialize":
			answer(m.ID, map[string]any{"protocolVersion": 1, "agentCapabilities": map[string]any{"loadSession": true}})
		case "session/new":
			answer(m.ID, map[string]any{"sessionId": "provider-1"})
		case "session/cancel":
			answer(open, map[string]any{"stopReason": "cancelled"})
		case "session/prompt":
			open = m.ID
			switch text := string(m.Params); {
			case strings.Contains(text, `"exit"`):
				return
			case strings.Contains(text, `"wait"`):
			case strings.Contains(text, `"ask"`), strings.Contains(text, `"burst"`):
				for range strings.Count(text, "burst") * 33 {
					send(update(strings.Repeat("x", 64<<10)))
				}
				send(map[string]any{"jsonrpc": "2.0", "id": 77, "method": "session/request_permission", "params": map[string]any{
					"sessionId": "provider-1",
					"toolCall":  map[string]any{"toolCallId": "call-1"},
					"options":   []any{map[string]any{"optionId": "yes", "name": "Yes", "kind": "allow_once"}},
				}})
			case strings.Contains(text, `"sizes `):
				for _, mib := range numbers(text) {
					sayLarge(out, mib)
					send(update(fmt.Sprintf("after %d", mib)))
				}
				answer(m.ID, map[string]any{"stopReason": "end_turn"})
			case strings.Contains(text, `"flood"`):
				for {
					send(update(strings.Repeat("x", 64<<10)))
				}
			default:
				send(update("hello"))
				answer(m.ID, map[string]any{"stopReason": "end_turn"})
			}
		case "": // the answer to the permission request
			answer(open, map[string]any{"stopReason": "end_turn"})
		}
	}
}

// numbers are those that follow the word sizes.
func numbers(text string) (all []int) {
	_, list, _ := strings.Cut(text, `"sizes `)
	list, _, _ = strings.Cut(list, `"`)
	for word := range strings.FieldsSeq(list) {
		n, err := strconv.Atoi(word)
		if err != nil {
			panic(err)
		}
		all = append(all, n)
	}
	return all
}

// sayLarge sends an update of so many MiB, in pieces.
func sayLarge(out io.Writer, mib int) {
	raw, err := json.Marshal(update("TEXT"))
	if err != nil {
		panic(err)
	}
	before, after, _ := strings.Cut(string(raw), "TEXT")
	fmt.Fprint(out, before)
	for range mib {
		fmt.Fprint(out, strings.Repeat("x", 1<<20))
	}
	fmt.Fprintln(out, after)
}

func update(text string) any {
	return map[string]any{"jsonrpc": "2.0", "method": "session/update", "params": map[string]any{
		"sessionId": "provider-1",
		"update": map[string]any{
			"sessionUpdate": "agent_message_chunk",
			"content":       map[string]any{"type": "text", "text": text},
		},
	}}
}

package wire

import (
	"encoding/json"
	"fmt"
)

// EncodeEvents returns the FrameEvents of the events. Payloads are in it byte for
// byte, which package encoding/json alone does not do; they have to be valid
// JSON.
func EncodeEvents(events []Event) ([]byte, error) {
	size := 0
	for _, e := range events {
		size += len(e.Payload) + 160
	}
	frame := make([]byte, 0, size)
	frame = append(frame, `{"type":"`+string(FrameEvents)+`","events":[`...)
	for i, e := range events {
		payload := e.Payload
		e.Payload = nil
		head, err := json.Marshal(e)
		if err != nil {
			return nil, fmt.Errorf("encode event %d: %w", e.Seq, err)
		}
		if i > 0 {
			frame = append(frame, ',')
		}
		frame = append(frame, head...)
		if len(payload) > 0 {
			frame = append(frame[:len(frame)-1], `,"payload":`...)
			frame = append(append(frame, payload...), '}')
		}
	}
	return append(frame, "]}"...), nil
}

package activities

import (
	"encoding/json"
	"errors"
	"fmt"
)

var errNoBlocks = errors.New("the recorded prompt has no content")

// promptBlocks splits a recorded prompt into its content blocks.
func promptBlocks(recorded json.RawMessage) ([]json.RawMessage, error) {
	var blocks []json.RawMessage
	if err := json.Unmarshal(recorded, &blocks); err != nil {
		return nil, fmt.Errorf("decode recorded prompt: %w", err)
	}
	if len(blocks) == 0 {
		return nil, errNoBlocks
	}
	return blocks, nil
}

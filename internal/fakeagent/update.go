package fakeagent

import (
	"fmt"
	"strconv"
	"strings"
)

// Update is the text of one update, as a reader of a transcript gets it back.
type Update struct {
	Turn, N int
	Text    string
}

// updateText is "<turn> <n>[ <text>]", padded with dots to the entry's size.
func updateText(e Entry) string {
	text := fmt.Sprintf("%d %d", e.Turn, e.N)
	if e.Text != "" {
		text += " " + e.Text
	}
	if missing := e.Size - len(text) - 1; missing > 0 {
		text += " " + strings.Repeat(".", missing)
	}
	return text
}

// ParseUpdate reads the numbers of an update's text; false means that the text
// is none of this agent's.
func ParseUpdate(text string) (Update, bool) {
	fields := strings.SplitN(text, " ", 3)
	if len(fields) < 2 {
		return Update{}, false
	}
	turn, errTurn := strconv.Atoi(fields[0])
	n, errN := strconv.Atoi(fields[1])
	if errTurn != nil || errN != nil {
		return Update{}, false
	}
	u := Update{Turn: turn, N: n}
	if len(fields) == 3 {
		u.Text = fields[2]
	}
	return u, true
}

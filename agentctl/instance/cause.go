package instance

import (
	"errors"
	"regexp"
	"strings"
	"unicode"

	"github.com/kandev/recovery/agentctl/acp"
)

// causeRunes bounds an agent's own words in a cause.
const causeRunes = 200

var (
	pathLike    = regexp.MustCompile(`\S*[/\\]\S*`)
	addressLike = regexp.MustCompile(`[\w.+-]+@[\w.-]+|\w[\w.-]*:\d{2,5}\b|[\w-]+(\.[\w-]+)+|\S*::\S*`)
	opaqueLike  = regexp.MustCompile(`[\w-]{20,}`)
)

// sanitize makes an agent's message fit to leave the host: no path, address or
// anything that may be a secret, one line, bounded (W-4).
func sanitize(message string) string {
	message = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, message)
	message = pathLike.ReplaceAllString(message, "[path]")
	message = addressLike.ReplaceAllString(message, "[address]")
	message = opaqueLike.ReplaceAllString(message, "[id]")
	message = strings.Join(strings.Fields(message), " ")
	if runes := []rune(message); len(runes) > causeRunes {
		message = string(runes[:causeRunes]) + "…"
	}
	return message
}

// causeOf tells why a start failed, without anything of the host.
func causeOf(err error) string {
	var refusal *acp.CallError
	if errors.As(err, &refusal) {
		return strings.TrimRight(refusal.Error()+": "+sanitize(refusal.Message), ": ")
	}
	for _, known := range []error{errCannotContinue, acp.ErrExited, acp.ErrProtocol} {
		if errors.Is(err, known) {
			return known.Error()
		}
	}
	return "the agent could not be asked"
}

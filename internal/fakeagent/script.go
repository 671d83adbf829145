package fakeagent

import (
	"context"
	"encoding/base64"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// step is one instruction of a script.
type step interface {
	run(ctx context.Context, t *turn) error
}

// parseScript reads a prompt. Steps are separated by line ends or semicolons;
// words are separated by blanks, and double quotes keep blanks. A text whose
// first word is no instruction is small talk, answered with one update. The
// instructions:
//
//	stream 200 [every 20ms] [size 64KB]         numbered updates
//	stream until file NAME [every 20ms] [size N]  … until the file exists
//	flood 5000 [size 200B] [every 1ms] [after 5ms] updates for measurements, see flood
//	size 64KB          pads the updates that follow
//	say "text"         one update with the text
//	ask ["title"]      a permission request; says which option it got
//	wait file NAME     until the file exists; relative to the session's directory
//	sleep 500ms
//	noise "text"       a line on standard output that is no frame
//	raw BASE64         bytes on standard output, with no line end but their own
//	pieces 7B          standard output goes out in writes of 7 bytes from now on
//	crlf               its lines end in CR LF from now on
//	complain until file NAME    keeps writing to standard error meanwhile
//	spawn grandchild [setsid]   a process that holds standard output and error
//	ignore sigterm
//	end [stop reason]  ends the turn; so does the script's end
//	fail "message"     answers the prompt with an error
//	exit 3             ends the process at once
func parseScript(text string) ([]step, error) {
	var steps []step
	split := func(r rune) bool { return r == '\n' || r == ';' }
	for _, line := range strings.FieldsFunc(text, split) {
		words, err := splitWords(line)
		if err != nil {
			return nil, err
		}
		if len(words) == 0 {
			continue
		}
		parse, known := verbs[words[0]]
		if !known && len(steps) == 0 {
			return []step{say{text: "heard you"}}, nil
		}
		if !known {
			return nil, fmt.Errorf("unknown instruction %q", words[0])
		}
		one, err := parse(words[1:])
		if err != nil {
			return nil, fmt.Errorf("instruction %q: %w", strings.TrimSpace(line), err)
		}
		steps = append(steps, one)
	}
	return steps, nil
}

var verbs = map[string]func(args []string) (step, error){
	"stream": parseStream,
	"flood":  parseFlood,
	"size": func(args []string) (step, error) {
		return one(args, func(arg string) (step, error) {
			bytes, err := parseSize(arg)
			return size{bytes}, err
		})
	},
	"say":  func(args []string) (step, error) { return say{strings.Join(args, " ")}, nil },
	"ask":  func(args []string) (step, error) { return ask{strings.Join(args, " ")}, nil },
	"wait": parseWait,
	"sleep": func(args []string) (step, error) {
		return one(args, func(arg string) (step, error) {
			d, err := time.ParseDuration(arg)
			return sleep{d}, err
		})
	},
	"noise": func(args []string) (step, error) { return noise{strings.Join(args, " ")}, nil },
	"raw": func(args []string) (step, error) {
		return one(args, func(arg string) (step, error) {
			bytes, err := base64.StdEncoding.DecodeString(arg)
			return raw{bytes}, err
		})
	},
	"pieces": func(args []string) (step, error) {
		return one(args, func(arg string) (step, error) {
			bytes, err := parseSize(arg)
			return pieces{bytes}, err
		})
	},
	"crlf":     parseCRLF,
	"complain": parseComplain,
	"spawn":    parseSpawn,
	"ignore":   parseIgnore,
	"end":      func(args []string) (step, error) { return end{strings.Join(args, "_")}, nil },
	"fail":     func(args []string) (step, error) { return fail{strings.Join(args, " ")}, nil },
	"exit": func(args []string) (step, error) {
		return one(args, func(arg string) (step, error) {
			code, err := strconv.Atoi(arg)
			return exit{code}, err
		})
	},
}

func one(args []string, parse func(string) (step, error)) (step, error) {
	if len(args) != 1 {
		return nil, fmt.Errorf("takes exactly one word, got %d", len(args))
	}
	return parse(args[0])
}

func parseStream(args []string) (step, error) {
	var s stream
	for len(args) > 0 {
		var err error
		switch {
		case len(args) >= 3 && args[0] == "until" && args[1] == "file":
			s.until, args = args[2], args[3:]
		case len(args) >= 2 && args[0] == "every":
			s.every, err = time.ParseDuration(args[1])
			args = args[2:]
		case len(args) >= 2 && args[0] == "size":
			s.size, err = parseSize(args[1])
			args = args[2:]
		default:
			s.count, err = strconv.Atoi(args[0])
			args = args[1:]
		}
		if err != nil {
			return nil, err
		}
	}
	if (s.count <= 0) == (s.until == "") {
		return nil, fmt.Errorf("takes a count or \"until file NAME\"")
	}
	return s, nil
}

func parseWait(args []string) (step, error) {
	if len(args) != 2 || args[0] != "file" {
		return nil, fmt.Errorf("takes \"file NAME\"")
	}
	return wait{args[1]}, nil
}

func parseCRLF(args []string) (step, error) {
	if len(args) > 0 {
		return nil, fmt.Errorf("takes no word")
	}
	return crlf{}, nil
}

func parseComplain(args []string) (step, error) {
	if len(args) != 3 || args[0] != "until" || args[1] != "file" {
		return nil, fmt.Errorf("takes \"until file NAME\"")
	}
	return complain{args[2]}, nil
}

func parseSpawn(args []string) (step, error) {
	switch {
	case slices.Equal(args, []string{"grandchild"}):
		return spawn{}, nil
	case slices.Equal(args, []string{"grandchild", "setsid"}):
		return spawn{setsid: true}, nil
	default:
		return nil, fmt.Errorf("takes \"grandchild\" or \"grandchild setsid\"")
	}
}

func parseIgnore(args []string) (step, error) {
	if !slices.Equal(args, []string{"sigterm"}) {
		return nil, fmt.Errorf("takes \"sigterm\"")
	}
	return ignoreTerm{}, nil
}

// parseSize reads a number of bytes with an optional unit.
func parseSize(text string) (int, error) {
	units := []struct {
		suffix string
		factor int
	}{{"KB", 1 << 10}, {"MB", 1 << 20}, {"B", 1}, {"", 1}}
	for _, unit := range units {
		if digits, ok := strings.CutSuffix(text, unit.suffix); ok {
			n, err := strconv.Atoi(digits)
			if err != nil || n <= 0 {
				return 0, fmt.Errorf("%q is no size", text)
			}
			return n * unit.factor, nil
		}
	}
	return 0, fmt.Errorf("%q is no size", text)
}

// splitWords splits at blanks; what is between double quotes is one word.
func splitWords(line string) ([]string, error) {
	var words []string
	for rest := strings.TrimSpace(line); rest != ""; rest = strings.TrimSpace(rest) {
		if rest[0] == '"' {
			word, after, closed := strings.Cut(rest[1:], `"`)
			if !closed {
				return nil, fmt.Errorf("unclosed quote in %q", line)
			}
			words, rest = append(words, word), after
			continue
		}
		word, after, _ := strings.Cut(rest, " ")
		words, rest = append(words, word), after
	}
	return words, nil
}

package acp

import "encoding/json"

// maxToken bounds what is kept of one member of an oversized frame.
const maxToken = 4096

// header finds the method and the id of a frame that is too large to keep, in
// constant memory, wherever in the frame they are. It takes the frame's bytes in
// pieces and expects valid JSON; of anything else it finds nothing or little.
type header struct {
	method string
	id     json.RawMessage

	depth   int
	quoted  bool // within a string
	escaped bool // the next byte of the string is escaped
	member  string
	token   []byte // string or number at depth 1
}

func (h *header) feed(b []byte) {
	for _, c := range b {
		if h.quoted {
			h.inString(c)
		} else {
			h.outside(c)
		}
	}
}

func (h *header) inString(c byte) {
	h.keep(c)
	switch {
	case h.escaped:
		h.escaped = false
	case c == '\\':
		h.escaped = true
	case c == '"':
		h.quoted = false
	}
}

func (h *header) outside(c byte) {
	switch c {
	case '"':
		h.quoted = true
		h.keep(c)
	case '{', '[':
		h.depth++
	case '}', ']':
		h.endMember()
		h.depth--
	case ',':
		h.endMember()
	case ':':
		if h.depth == 1 {
			h.member = h.text()
			h.token = h.token[:0]
		}
	case ' ', '\t':
	default:
		h.keep(c)
	}
}

func (h *header) keep(c byte) {
	if h.depth == 1 && len(h.token) < maxToken {
		h.token = append(h.token, c)
	}
}

func (h *header) endMember() {
	if h.depth != 1 {
		return
	}
	switch h.member {
	case "method":
		h.method = h.text()
	case "id":
		if json.Valid(h.token) && string(h.token) != "null" {
			h.id = append(json.RawMessage(nil), h.token...)
		}
	}
	h.member = ""
	h.token = h.token[:0]
}

// text is the string that the token holds, empty if it holds none.
func (h *header) text() string {
	var s string
	if json.Unmarshal(h.token, &s) != nil {
		return ""
	}
	return s
}

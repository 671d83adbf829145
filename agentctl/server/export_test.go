package server

// Bounds that tests exceed.
const (
	MaxSmallBody   = maxSmallBody
	MaxClientFrame = maxClientFrame
)

// Patterns are those of the server's own route table.
func (s *Server) Patterns() []string {
	var patterns []string
	for _, r := range s.table() {
		patterns = append(patterns, r.pattern)
	}
	return patterns
}

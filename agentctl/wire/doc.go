// Package wire is the vocabulary that a backend and a control server share:
// routes, requests, responses, event frames, error codes and capability names.
// It imports nothing of this module. Its specification, with what every call
// promises after a crash on either side, is docs/protocol.md.
package wire

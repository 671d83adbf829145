// Package client is how a backend talks to a control server. It trusts nothing
// on the other end but a certificate whose fingerprint it was given, so that no
// credential and no body reaches another process that took the same port.
//
// Answers have three values. A *wire.Error is what the server said. ErrRefused
// means that nothing listens. Everything that leaves open whether the request
// took effect is ErrNoAnswer, which is never to be read as "no".
package client

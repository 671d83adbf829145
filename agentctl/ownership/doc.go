// Package ownership decides whose credential drives a control server, and when
// nobody's does any more. One lock covers the credentials, the requests they
// admitted, the age of the last renewal and the decision to shut down, so that
// each rule holds at one moment and not between two.
package ownership

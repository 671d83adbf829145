// Package server is the control server's HTTPS side: one listener, the routes
// of package wire, and who may call them. It turns requests into verbs of the
// instance supervisor and of the ownership authority, and decides nothing else
// itself.
package server

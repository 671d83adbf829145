// Package home opens the one directory that an installation is. It makes sure
// that a single backend acts on it (O-002.4), that it was not copied from another
// one, and that its few files are whole or absent, never half written. Its errors
// name paths: they are for the operator's terminal, not for the API.
package home

// Package boot runs one boot of the backend: listener first, then Postgres, then
// Temporal, then the recovery pass, then what users request; and it takes the
// same apart again, leaving the agents alone.
package boot

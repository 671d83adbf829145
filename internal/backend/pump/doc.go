// Package pump carries events from the control server into Postgres: one pump per
// instance attaches after the last committed event, reads ahead, commits what has
// come as one batch, and only then acknowledges it. A crash between the two makes
// the server send the batch again, and the store ignores what it has (B-1).
//
// Batches that wait at the same time are committed together, and fail apart.
package pump

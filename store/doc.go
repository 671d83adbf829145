// Package store keeps everything durable of the product in Postgres:
// installations, profiles, tasks, sessions and their transitions, turns, the
// inventory of live executions, the record of the control server with its
// sealed credential, agent events and recovery outcomes.
//
// Rules that hold for all of it:
//
//   - Every row belongs to an installation and every query names it, so that
//     many installations share one database without seeing each other (B-7).
//   - A session's state changes through one compare-and-set function that
//     writes the transition in the same transaction.
//   - Nothing lives on a connection: no session lock, no named prepared
//     statement, no setting. A transaction pooler may stand in between (B-23).
//   - Conflicts are told by SQLSTATE. A read that failed is an error, never an
//     empty result; what could not be determined matches ErrUnavailable.
//   - Every write but CreateSession and Transition may be repeated with the same
//     arguments after a lost answer, and then changes nothing.
//   - The row of the session is locked first, and covers its turns, its record
//     and its events; then that of the task. No two transactions wait for each
//     other.
//
// Times are cut to microseconds, which is what Postgres keeps.
package store

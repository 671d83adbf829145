// Package api serves userapi: the HTTP interface of the backend. Its listener is
// up before Postgres and Temporal are; until they are, the status page answers
// and everything else says what the backend waits for (W-8).
package api

// Package integration holds no code: its tests run the product as users do, as
// real processes against real Postgres and Temporal, and kill it where it hurts.
package integration

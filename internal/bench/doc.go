// Package bench measures the product beside a baseline in the same run, because
// absolute times depend on the machine: what carries over is the ratio.
//
// Every benchmark drives real processes: a backend, a control server, scripted
// agents, Postgres and Temporal.
package bench

// Package activities holds what the workflows do: one struct per peer, thin and
// idempotent. Control talks to the control server about ownership, Instances
// about agents, Inventory and Sessions to Postgres. Errors are typed (package
// calls), so that a workflow can tell "did not answer" from every answer.
package activities

// Package recovery holds the words of the product and its pure decisions:
// states, outcomes, refusal reasons, the join of inventory records with live
// instances, and the budgets that bound a recovery pass. It imports the
// standard library only, so that every other package may import it.
package recovery

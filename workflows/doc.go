// Package workflows holds the durable workflows of the product: Adoption, which
// brings a boot's sessions back; StopWithRetry, which ends one agent within a
// budget; GuardedResume with its child Launch, which gives a session an agent.
//
// Workflow code is deterministic: it imports the words of the product, the
// names and types of its activities, and the workflow SDK. What is running may
// have been started by an older build, so a change here either replays every
// recorded history or hides behind a version marker (W-6).
package workflows

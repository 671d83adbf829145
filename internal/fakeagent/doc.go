// Package fakeagent is a scripted ACP agent. The text of a prompt is its
// script, so that a test or the demo decides when the agent streams, asks,
// waits, fails or dies. Everything that it received and everything that it
// produced is recorded in files of its own, independently of whoever drives
// it: that record is what survival is measured against.
package fakeagent

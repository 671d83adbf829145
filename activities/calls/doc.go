// Package calls names the activities and holds their inputs and results: what
// workflow histories record. Nothing in it may carry a secret, a path of the
// host, a cache path, a registry address or raw output of an agent (W-4); a
// test walks every type. Values that must not be recorded stay in the memory
// of one boot, under the pass and the session.
package calls

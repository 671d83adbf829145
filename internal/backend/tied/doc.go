// Package tied is about agents that end with this backend whatever the survival
// capability says: those of passthrough sessions (S-005.3). They live in a
// control server of their own, which is tied to this process, is started when the
// first of them is launched, and is never recorded, so that no backend can adopt
// it. Sessions whose agents went with such a server are given the state that is
// true.
package tied

// Package faultproxy stands between a program under test and its Postgres and
// cuts connections where a test wants it: before a transaction is committed, while
// nobody knows whether it was, after the server has committed and before its
// answer is through, or in the middle of anything.
package faultproxy

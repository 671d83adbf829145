// Package launch starts a control server, on the backend's side: detached, so
// that it outlives the backend, or bound, so that it ends with it. What is
// secret goes over the child's standard input and never into its arguments or
// its environment.
package launch

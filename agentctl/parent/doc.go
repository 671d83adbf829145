// Package parent is a control server's side of its launch: what it is told over
// its standard input, what it reports over its ready pipe, and how it learns
// that the process that launched it recorded it, or ended.
package parent

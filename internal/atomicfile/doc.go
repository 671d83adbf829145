// Package atomicfile puts files in place whole and durably. It is for files that
// a crash at any moment must leave readable.
package atomicfile

// Package bench measures the product beside a baseline in the same run, because
// absolute times depend on the machine: what carries over is the ratio.
package bench

// Package architecture holds no code: its tests keep the imports going one way
// and every package described.
package architecture

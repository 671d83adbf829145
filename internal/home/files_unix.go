//go:build unix

package home

import "io/fs"

func writableByAll(mode fs.FileMode) bool { return mode.Perm()&0o002 != 0 }

func readableByOthers(mode fs.FileMode) bool { return mode.Perm()&0o077 != 0 }

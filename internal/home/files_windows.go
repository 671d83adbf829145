package home

import "io/fs"

// Mode bits say nothing about access on Windows; the profile directory's access
// list keeps other users out.
func writableByAll(fs.FileMode) bool { return false }

func readableByOthers(fs.FileMode) bool { return false }

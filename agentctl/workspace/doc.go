// Package workspace carries out what a user asks of the files of an instance,
// and reaches nothing beyond the instance's roots (S-002.5).
//
// Files are reached through os.Root, by descriptors, so that a symbolic link
// that leads out, or a directory that is swapped for one meanwhile, is refused
// and not followed. A root is recognized as the very directory that it was when
// the instance was created. What is not a regular file is refused before and
// after it is opened, and opening it never waits.
//
// Git runs as a process with an environment of its own. It is told which
// repository and which work tree to use, after both were found to belong to the
// root, and it starts no program that a configuration names. Within them it
// follows its own rules: they are checks of names, not of descriptors.
package workspace

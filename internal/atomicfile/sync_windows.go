package atomicfile

// SyncDirectory does nothing: a directory cannot be synced on Windows, where the
// rename itself is journaled.
func SyncDirectory(string) error { return nil }

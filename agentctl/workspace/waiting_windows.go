package workspace

// withoutWaiting is nothing on Windows: there are no such files in directories.
const withoutWaiting = 0

package glob

import "syscall"

// errNotDir is what a path through a file gives: a pattern matched it where it
// wants a directory.
const errNotDir = syscall.ERROR_PATH_NOT_FOUND

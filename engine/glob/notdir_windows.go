package glob

import "syscall"

// errNotDir is the error for a path through a file, if a pattern requires a
// directory there.
const errNotDir = syscall.ERROR_PATH_NOT_FOUND

//go:build unix

package egress

import "syscall"

// openFlags prevent waiting for a named pipe.
const openFlags = syscall.O_NONBLOCK

//go:build unix

package egress

import "syscall"

// openFlags keep a named pipe from being waited for.
const openFlags = syscall.O_NONBLOCK

//go:build unix

package files

import "syscall"

// nonblock opens a FIFO or a device without waiting for it.
const nonblock = syscall.O_NONBLOCK

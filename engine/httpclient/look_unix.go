//go:build unix

package httpclient

import "syscall"

// readNow reads available data from a socket without waiting. The error is
// EAGAIN if there is none. readNow is nil on platforms without such a call.
var readNow = func(file uintptr, buf []byte) (int, error) {
	if hasRaw {
		return rawRead(file, buf)
	}
	return syscall.Read(int(file), buf)
}

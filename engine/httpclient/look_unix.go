//go:build unix

package httpclient

import "syscall"

// readNow reads from a socket what is there, and does not wait: the error is
// EAGAIN when there is nothing. Where it is nil there is no such call.
var readNow = func(file uintptr, buf []byte) (int, error) {
	if hasRaw {
		return rawRead(file, buf)
	}
	return syscall.Read(int(file), buf)
}

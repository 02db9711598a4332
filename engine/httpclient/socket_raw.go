//go:build linux

package httpclient

import (
	"syscall"
	"unsafe"
)

const hasRaw = true

// rawRead makes one read call on a non-blocking socket.
func rawRead(fd uintptr, buf []byte) (int, error) {
	n, err := raw(syscall.SYS_READ, fd, buf)
	if err == nil {
		raceAcquire(fd)
	}
	return n, err
}

// rawWrite makes one write call on a non-blocking socket.
func rawWrite(fd uintptr, buf []byte) (int, error) {
	raceRelease()
	return raw(syscall.SYS_WRITE, fd, buf)
}

// raw makes a system call with the arguments of read and write, again if a signal
// interrupted it.
func raw(call, fd uintptr, buf []byte) (int, error) {
	for {
		n, _, errno := syscall.RawSyscall(call, fd, uintptr(unsafe.Pointer(unsafe.SliceData(buf))), uintptr(len(buf)))
		switch errno {
		case 0:
			return int(n), nil
		case syscall.EINTR:
		default:
			return 0, errno
		}
	}
}

//go:build linux && !race

package httpclient

import (
	"syscall"
	"unsafe"
)

// rawRead and rawWrite make one call on a socket that does not block.
var rawRead, rawWrite = raw(syscall.SYS_READ), raw(syscall.SYS_WRITE)

func raw(call uintptr) func(fd uintptr, buf []byte) (int, error) {
	return func(fd uintptr, buf []byte) (int, error) {
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
}

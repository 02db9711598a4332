package file

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// writersOf reports whether a process, including this one, has f open for
// writing. f must be a regular file that was opened for reading only.
//
// It requests a read lease from the kernel, which is granted only if there is no
// writer, and returns the lease immediately. This takes two system calls, however
// many processes and files there are, and it detects writers in other containers.
// A search of /proc/*/fd does neither. A lease requires the owner of the file or
// CAP_LEASE, and a file system with leases; otherwise, the result is
// unknownWriter. (A user who may not lease a file of another user may not read
// that user's /proc/*/fd either, so /proc is no fallback.)
//
// A process that opens f for writing between the two calls waits a few
// microseconds, or gets EWOULDBLOCK if it opens with O_NONBLOCK. Therefore, only
// rotated files that have been idle are checked. The Go runtime ignores the SIGIO
// that such a process causes.
func writersOf(f *os.File) writers {
	fd := f.Fd()
	_, err := unix.FcntlInt(fd, unix.F_SETLEASE, unix.F_RDLCK)
	switch {
	case err == nil:
		_, _ = unix.FcntlInt(fd, unix.F_SETLEASE, unix.F_UNLCK) // cannot fail: this process has the lease
		return noWriter
	case errors.Is(err, unix.EAGAIN):
		return hasWriter
	}
	return unknownWriter
}

// currentPath returns the current path of f, or "" if it has none or the path is
// unknown.
func currentPath(f *os.File, id identity) string {
	path, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", f.Fd()))
	if err != nil {
		return ""
	}
	if other, _, err := statPath(path); err != nil || other != id {
		return "" // deleted, or not visible to this process
	}
	return path
}

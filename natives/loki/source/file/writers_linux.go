package file

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// writersOf reports whether a process, this one included, has f open for
// writing. f must be a regular file that was opened for reading only.
//
// It asks the kernel for a read lease, which is granted only if there is no
// writer, and returns the lease at once. That takes two system calls, however
// many processes and files there are, and it sees writers in other containers.
// A search of /proc/*/fd does neither. A lease needs the owner of the file or
// CAP_LEASE, and a file system with leases; without them the answer is
// unknownWriter. (Who may not lease a file of another user may not read that
// user's /proc/*/fd either, so that /proc is no fallback.)
//
// A process that opens f for writing between the two calls waits a few
// microseconds, or gets EWOULDBLOCK if it opens with O_NONBLOCK. For that reason
// only rotated files that have been idle are asked about. The SIGIO that such a
// process causes is ignored by the Go runtime.
func writersOf(f *os.File) writers {
	fd := f.Fd()
	_, err := unix.FcntlInt(fd, unix.F_SETLEASE, unix.F_RDLCK)
	switch {
	case err == nil:
		_, _ = unix.FcntlInt(fd, unix.F_SETLEASE, unix.F_UNLCK) // cannot fail: the lease is ours
		return noWriter
	case errors.Is(err, unix.EAGAIN):
		return hasWriter
	}
	return unknownWriter
}

// currentPath returns the path that f has now, "" if it has none or if that is
// not known.
func currentPath(f *os.File, id identity) string {
	path, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", f.Fd()))
	if err != nil {
		return ""
	}
	if other, _, err := statPath(path); err != nil || other != id {
		return "" // deleted, or outside of what this process can see
	}
	return path
}

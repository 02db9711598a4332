package control

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// detour names a socket through its open directory.
func detour(path string) (addr string, free func(), err error) {
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return "", nil, err
	}
	addr = fmt.Sprintf("/proc/self/fd/%d/%s", dir.Fd(), filepath.Base(path))
	if _, err := os.Stat(filepath.Dir(addr)); err != nil { // no /proc
		dir.Close()
		return "", nil, nil
	}
	return addr, func() { dir.Close() }, nil
}

// beforeBind sets the mode of the socket before it has a name.
func beforeBind(_, _ string, c syscall.RawConn) error {
	var errno error
	err := c.Control(func(fd uintptr) { errno = syscall.Fchmod(int(fd), 0o600) })
	if err != nil {
		return err
	}
	return os.NewSyscallError("fchmod", errno)
}

// narrowUmask does nothing: see beforeBind.
func narrowUmask() (restore func()) { return func() {} }

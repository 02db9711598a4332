//go:build !linux

package control

import "syscall"

// detour is not available.
func detour(string) (addr string, free func(), err error) { return "", nil, nil }

// beforeBind does nothing: only Linux uses the mode of the socket. The umask
// applies until Chmod: see narrowUmask.
func beforeBind(_, _ string, _ syscall.RawConn) error { return nil }

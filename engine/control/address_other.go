//go:build !linux

package control

import "syscall"

// detour finds none.
func detour(string) (addr string, free func(), err error) { return "", nil, nil }

// beforeBind does nothing: only Linux takes the mode from the socket. The umask
// decides until Chmod: see narrowUmask.
func beforeBind(_, _ string, _ syscall.RawConn) error { return nil }

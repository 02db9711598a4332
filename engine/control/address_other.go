//go:build !linux

package control

import "syscall"

// detour finds none.
func detour(string) (addr string, free func(), err error) { return "", nil, nil }

// beforeBind does nothing: only Linux takes the mode from the socket. Until
// Chmod the mode is the umask's, in a directory that only its user can enter.
func beforeBind(_, _ string, _ syscall.RawConn) error { return nil }

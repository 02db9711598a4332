//go:build linux && race

package httpclient

import "syscall"

// Package syscall tells the race detector that what happened before a write of
// any socket happened before a read that returns later. Raw calls would hide
// this, so with the race detector each is accompanied by a call of package
// syscall that transfers no bytes.

// raceAcquire follows a read. Reading zero bytes succeeds without waiting.
func raceAcquire(fd uintptr) { syscall.Read(int(fd), nil) }

// raceRelease precedes a write. Package syscall tells the race detector before it
// fails because of the descriptor.
func raceRelease() { syscall.Write(-1, nil) }

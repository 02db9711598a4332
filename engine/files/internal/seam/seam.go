// Package seam is where tests get between engine/files and the file system. It is
// for engine/files and filestest only.
package seam

import (
	"sync/atomic"
	"time"
)

// Before, if it is set, is called before the file system is, in the goroutine that
// will wait for it, with the paths that callers asked for.
var Before atomic.Pointer[func(path string)]

// Between, if it is set, is called after a file was looked at and before it is
// opened.
var Between atomic.Pointer[func(path string)]

// Patience, if it is not 0, is used instead of files.Patience.
var Patience atomic.Int64

// Wait calls a hook, if it is set.
func Wait(hook *atomic.Pointer[func(string)], path string) {
	if f := hook.Load(); f != nil {
		(*f)(path)
	}
}

// Limit returns how long to wait for a file system.
func Limit(normally time.Duration) time.Duration {
	if d := Patience.Load(); d != 0 {
		return time.Duration(d)
	}
	return normally
}

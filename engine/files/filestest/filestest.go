// Package filestest makes files that must not be read, and file systems that do
// not answer, for the tests of those who read files by engine/files.
package filestest

import (
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weir-run/weir/engine/files/internal/seam"
)

// Hang makes every call of engine/files for a path that is dir or lies below it
// hang until release is called, or the test ends. asked has one value for each
// call that hangs, up to 100. Tests that use it do not run in parallel.
func Hang(t testing.TB, dir string) (asked <-chan string, release func()) {
	t.Helper()
	calls, released := make(chan string, 100), make(chan struct{})
	release = sync.OnceFunc(func() { close(released) })
	hook := func(path string) {
		if path != dir && !strings.HasPrefix(path, dir+string(filepath.Separator)) {
			return
		}
		select {
		case <-released:
			return
		default:
		}
		select {
		case calls <- path:
		default:
		}
		<-released
	}
	if !seam.Before.CompareAndSwap(nil, &hook) {
		t.Fatal("another test makes a file system hang")
	}
	t.Cleanup(func() {
		release()
		seam.Before.Store(nil)
	})
	return calls, release
}

// Patience makes engine/files wait only so long, until the test ends.
func Patience(t testing.TB, d time.Duration) {
	t.Helper()
	old := seam.Patience.Swap(int64(d))
	t.Cleanup(func() { seam.Patience.Store(old) })
}

// Swap calls fn once, between the moment at which engine/files looks at a file
// and that at which it opens it.
func Swap(t testing.TB, fn func()) {
	t.Helper()
	once := sync.OnceFunc(fn)
	hook := func(string) { once() }
	seam.Between.Store(&hook)
	t.Cleanup(func() { seam.Between.Store(nil) })
}

// Within fails the test if fn has not returned after a time that is long enough
// for a slow machine. fn is then abandoned, so it cannot hang the
// tests.
func Within(t testing.TB, what string, fn func()) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		fn()
	}()
	select {
	case <-done:
	case <-time.After(30 * time.Second):
		t.Fatalf("%s has not returned after 30s", what)
	}
}

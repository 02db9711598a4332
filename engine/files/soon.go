package files

import (
	"io/fs"
	"time"

	"github.com/weir-run/weir/engine/files/internal/seam"
)

// minSoon is the minimum time that Soon waits.
const minSoon = 5 * time.Millisecond

// Soon calls read, which reads path with the functions of this package, for a
// caller that must not block, such as the engine's worker. If read has not
// returned after 250 ms, Soon returns a *HungError, and read continues. While
// an operation for the same path, or a path above it, hangs or was given up by
// Soon, it returns that operation's error without calling read. It waits for a
// shorter time for other paths on the same file system, so that many reads from
// a hanging file system take about as long as two.
//
// late, unless it is nil, is called in a separate goroutine when the operation
// that was given up has returned, so that the caller can try again. If there
// are several for one path, the last one is called.
func Soon[T any](path, doing string, read func() (T, error), late func()) (T, error) {
	type result struct {
		v   T
		err error
	}
	var zero T
	path = Absolute(path)
	patience, err := calls.avoid(path, late)
	if err != nil {
		return zero, err
	}
	c := &call{doing: doing, path: path, since: time.Now()}
	results := make(chan result, 1)
	go func() {
		v, err := read()
		results <- result{v, err}
		calls.endSlow(c)
	}()
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case r := <-results:
		return r.v, r.err
	case <-timer.C:
	}
	calls.addSlow(c, late)
	select {
	case r := <-results: // it has returned after all
		calls.endSlow(c)
		return r.v, r.err
	default:
		return zero, c.error()
	}
}

// StatSoon is like Soon, for Stat.
func StatSoon(path string) (fs.FileInfo, error) {
	return Soon(path, "looking at", func() (fs.FileInfo, error) { return Stat(path) }, nil)
}

// Answers returns a *HungError if the file system of path does not quickly
// report whether the file exists. Call it before a read.
func Answers(path string) error {
	_, err := StatSoon(path)
	if h, ok := err.(*HungError); ok {
		return h
	}
	return nil
}

// Glance is like Soon, for a call of the operating system.
func Glance[T any](path, doing string, fn func() (T, error)) (T, error) {
	return Soon(path, doing, func() (T, error) { return Do(path, doing, fn) }, nil)
}

// avoid returns the error of an operation that hangs or is slow for path or a
// path above it, and arranges that late is called when it has returned.
// Otherwise, it returns the time limit for path.
func (r *registry) avoid(path string, late func()) (patience time.Duration, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	near := 0
	check := func(c *call) bool {
		if isBelow(c.path, path) {
			err = c.await(path, late)
			return true
		}
		if c.isNear(path) {
			near++
		}
		return false
	}
	for _, c := range r.hung {
		if check(c) {
			return 0, err
		}
	}
	for c := range r.slow {
		if check(c) {
			return 0, err
		}
	}
	return max(min(minPatience, seam.Limit(Patience))>>min(near, 8), minSoon), nil
}

// await returns the operation's error and arranges that late is called when it
// has returned.
func (c *call) await(path string, late func()) error {
	if late != nil {
		if c.late == nil {
			c.late = map[string]func(){}
		}
		c.late[path] = late
	}
	return c.error()
}

func (r *registry) addSlow(c *call, late func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	c.place = Place(c.path)
	if r.slow == nil {
		r.slow = map[*call]bool{}
	}
	r.slow[c] = true
	_ = c.await(c.path, late)
}

// endSlow records that an operation has returned. It may be called again.
func (r *registry) endSlow(c *call) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.slow[c] {
		delete(r.slow, c)
		c.callWaiters()
	}
}

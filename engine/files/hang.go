package files

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/weir-run/weir/engine/files/internal/seam"
)

// Patience is the time limit of a file system operation. It is much more than a
// disk needs to spin up, or a network needs to recover.
const Patience = 10 * time.Second

const (
	// minPatience is the limit near operations that hang, and the limit of Soon.
	minPatience = 250 * time.Millisecond
	// maxHung is the maximum number of hanging operations in one directory and its
	// parents. Each holds a thread, of which a process has 10,000.
	maxHung = 64
)

// ErrHung is wrapped by every HungError.
var ErrHung = errors.New("no answer")

// HungError is the error of an operation that has not returned, and of every
// other operation for the same path until it returns.
type HungError struct {
	Doing string // "reading", "listing"
	Path  string
	Since time.Time
}

func (e *HungError) Error() string {
	return fmt.Sprintf("%s %s has not returned since %s: it does not answer", e.Doing, Name(e.Path), e.Since.Format(time.TimeOnly))
}

// Unwrap returns ErrHung.
func (e *HungError) Unwrap() error { return ErrHung }

// calls contains the operations of the whole process, because hanging
// operations hold its threads.
var calls = registry{running: map[string]*call{}}

// registry contains the running operations, one per path. Further operations
// for the path wait.
type registry struct {
	mu      sync.Mutex
	running map[string]*call
	hung    map[string]*call // the hanging ones of running
	slow    map[*call]bool   // those that a caller of Soon stopped waiting for
}

type call struct {
	doing, path string
	since       time.Time
	done        chan struct{} // closed when it has returned
	place       string        // of path, set when it hangs or is slow
	// late contains functions to call when it has returned, by path.
	late map[string]func()
}

func (c *call) error() *HungError { return &HungError{c.doing, c.path, c.since} }

// begin registers an operation for a path, or returns the running one.
func (r *registry) begin(doing, path string) (c, other *call, patience time.Duration, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if h := r.hung[path]; h != nil {
		return nil, nil, 0, h.error()
	}
	near, oldest := 0, (*call)(nil)
	for _, h := range r.hung {
		if h.isNear(path) {
			if near++; oldest == nil || h.since.Before(oldest.since) {
				oldest = h
			}
		}
	}
	if near >= maxHung {
		return nil, nil, 0, oldest.error()
	}
	// The sum for many files of a dead directory, read one after another, is about
	// twice Patience and a little for each.
	patience = seam.Limit(Patience)
	patience = max(patience>>min(near, 8), min(minPatience, patience))
	if o := r.running[path]; o != nil {
		return nil, o, patience, nil
	}
	c = &call{doing: doing, path: path, since: time.Now(), done: make(chan struct{})}
	r.running[path] = c
	return c, nil, patience, nil
}

// isNear reports whether path is in the directory of a hanging operation or
// vice versa, or on the same mounted file system.
func (c *call) isNear(path string) bool {
	a, b := filepath.Dir(c.path), filepath.Dir(path)
	return isBelow(a, b) || isBelow(b, a) || isBelow(c.place, path)
}

func isBelow(dir, path string) bool {
	rest, ok := strings.CutPrefix(path, dir)
	return ok && dir != filepath.Dir(dir) && (rest == "" || os.IsPathSeparator(rest[0]))
}

// overdue records that an operation hangs, if it has not returned.
func (r *registry) overdue(c *call) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.running[c.path] == c {
		c.place = Place(c.path)
		if r.hung == nil {
			r.hung = map[string]*call{}
		}
		r.hung[c.path] = c
		refused.hung.Add(1)
	}
	return c.error()
}

func (r *registry) end(c *call) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.running, c.path)
	delete(r.hung, c.path)
	close(c.done)
	c.callWaiters()
}

// callWaiters calls the functions that wait for the operation.
func (c *call) callWaiters() {
	for _, late := range c.late {
		go late()
	}
	c.late = nil
}

// Hung returns the hanging operations, longest first.
func Hung() (all []*HungError) {
	calls.mu.Lock()
	defer calls.mu.Unlock()
	for _, c := range calls.hung {
		all = append(all, c.error())
	}
	slices.SortFunc(all, func(a, b *HungError) int { return a.Since.Compare(b.Since) })
	return all
}

// Do calls fn, which queries the file system about path, in a separate
// goroutine and returns its result, or a *HungError if it has not returned in
// time. doing describes fn in that error: "reading". Operations for one path
// run one after another.
//
// fn must not use data that its caller continues to use. If it returns too
// late, its result is discarded, so it must not hold resources other than
// memory.
func Do[T any](path, doing string, fn func() (T, error)) (T, error) {
	return doAndRelease(path, doing, fn, nil)
}

// doAndRelease is like Do, but releases a result that comes too late.
func doAndRelease[T any](path, doing string, fn func() (T, error), release func(T)) (T, error) {
	var zero T
	key := Absolute(path)
	var timer *time.Timer
	for {
		c, other, patience, err := calls.begin(doing, key)
		if err != nil {
			return zero, err
		}
		if timer == nil { // waiting for an earlier operation counts too
			timer = time.NewTimer(patience)
			defer timer.Stop()
		}
		if other != nil {
			select {
			case <-other.done:
				continue
			case <-timer.C:
				return zero, calls.overdue(other)
			}
		}
		type result struct {
			v   T
			err error
		}
		results := make(chan result)
		abandoned := make(chan struct{})
		go func() {
			seam.Wait(&seam.Before, key)
			v, err := fn()
			calls.end(c)
			select {
			case results <- result{v, legible(err)}:
			case <-abandoned:
				if release != nil && err == nil {
					release(v)
				}
			}
		}()
		select {
		case r := <-results:
			return r.v, r.err
		case <-timer.C:
			close(abandoned)
			return zero, calls.overdue(c)
		}
	}
}

// Place returns the directory that fails together with path: the mount point of
// its file system, or the directory of path on the root file system. It follows
// no links and does not query a file system.
func Place(path string) string {
	path = Absolute(path)
	if m := mountOf(path); m != "/" {
		return m
	}
	return filepath.Dir(path)
}

// Absolute is like filepath.Abs, which fails only if the working directory was
// removed.
func Absolute(path string) string {
	if abs, err := filepath.Abs(path); err == nil {
		return abs
	}
	return path
}

// legible formats the path in an error for a message.
func legible(err error) error {
	if e, ok := err.(*fs.PathError); ok && Name(e.Path) != e.Path {
		return &fs.PathError{Op: e.Op, Path: Name(e.Path), Err: e.Err}
	}
	return err
}

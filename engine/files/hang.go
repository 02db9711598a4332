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

// Patience is how long a call of the file system may take. It is much more than a
// disk that has to spin up needs, or a network that was interrupted.
const Patience = 10 * time.Second

const (
	// minPatience is what is left of it for the neighbours of what hangs, and how long
	// Soon waits.
	minPatience = 250 * time.Millisecond
	// maxHung is how many calls may hang in one directory and those around it: each
	// holds a thread, of which a process has 10,000.
	maxHung = 64
)

// ErrHung is what every HungError wraps.
var ErrHung = errors.New("no answer")

// HungError is the error of a call that has not returned, and of every other one
// for the same path until it does.
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

// calls are those of the whole process, because what hangs holds its threads.
var calls = registry{running: map[string]*call{}}

// registry has the calls that run, by path: one for each, others wait for it.
type registry struct {
	mu      sync.Mutex
	running map[string]*call
	hung    map[string]*call // of running
	slow    map[*call]bool   // that a caller of Soon has given up waiting for
}

type call struct {
	doing, path string
	since       time.Time
	done        chan struct{} // closed when it has returned
	place       string        // of path, once it hangs or is slow
	// late has functions to be called when it has returned, by the path that they are
	// about.
	late map[string]func()
}

func (c *call) error() *HungError { return &HungError{c.doing, c.path, c.since} }

// begin enters a call for a path, or returns the one that runs already.
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
	// So that whoever reads many files of a dead directory, one after the other, is
	// done after twice Patience and a little for each.
	patience = seam.Limit(Patience)
	patience = max(patience>>min(near, 8), min(minPatience, patience))
	if o := r.running[path]; o != nil {
		return nil, o, patience, nil
	}
	c = &call{doing: doing, path: path, since: time.Now(), done: make(chan struct{})}
	r.running[path] = c
	return c, nil, patience, nil
}

// isNear reports whether path lies in the directory of a call that hangs, or the
// other way round, or on the same mounted file system.
func (c *call) isNear(path string) bool {
	a, b := filepath.Dir(c.path), filepath.Dir(path)
	return isBelow(a, b) || isBelow(b, a) || isBelow(c.place, path)
}

func isBelow(dir, path string) bool {
	rest, ok := strings.CutPrefix(path, dir)
	return ok && dir != filepath.Dir(dir) && (rest == "" || os.IsPathSeparator(rest[0]))
}

// overdue notes that a call hangs, if it has not returned.
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

// callWaiters calls the functions that wait for the call.
func (c *call) callWaiters() {
	for _, late := range c.late {
		go late()
	}
	c.late = nil
}

// Hung returns what has not returned, longest first.
func Hung() (all []*HungError) {
	calls.mu.Lock()
	defer calls.mu.Unlock()
	for _, c := range calls.hung {
		all = append(all, c.error())
	}
	slices.SortFunc(all, func(a, b *HungError) int { return a.Since.Compare(b.Since) })
	return all
}

// Do calls fn, which asks the file system about path, in a goroutine of its own
// and returns what it returns, or a *HungError if it has not returned in time.
// doing says for that error what fn does: "reading". Calls for one path come one
// after the other.
//
// fn must not use anything that its caller goes on with, and what it acquires must
// be released if nobody gets its result: only memory is.
func Do[T any](path, doing string, fn func() (T, error)) (T, error) {
	return doAndRelease(path, doing, fn, nil)
}

// doAndRelease is Do that releases a result that comes too late.
func doAndRelease[T any](path, doing string, fn func() (T, error), release func(T)) (T, error) {
	var zero T
	key := Absolute(path)
	var timer *time.Timer
	for {
		c, other, patience, err := calls.begin(doing, key)
		if err != nil {
			return zero, err
		}
		if timer == nil { // waiting for others counts too
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

// Place returns the directory that fails together with path: where its file system
// is mounted, or the directory of path if that is the root file system. Links
// are not followed, and no file system is asked.
func Place(path string) string {
	path = Absolute(path)
	if m := mountOf(path); m != "/" {
		return m
	}
	return filepath.Dir(path)
}

// Absolute is filepath.Abs, which fails only when the working directory is gone.
func Absolute(path string) string {
	if abs, err := filepath.Abs(path); err == nil {
		return abs
	}
	return path
}

// legible makes the path in an error fit for a message.
func legible(err error) error {
	if e, ok := err.(*fs.PathError); ok && Name(e.Path) != e.Path {
		return &fs.PathError{Op: e.Op, Path: Name(e.Path), Err: e.Err}
	}
	return err
}

package watch

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/fsnotify/fsnotify"

	"github.com/weir-run/weir/engine/clock"
)

// Quiet is how long a Watcher waits after the last event of a burst before it
// reports the changes.
const Quiet = 20 * time.Millisecond

const (
	atMost  = 200 * time.Millisecond // after its first event, a burst is reported in any case
	recheck = time.Minute            // besides events, for what sends none
	poll    = time.Second            // instead of events
)

// Options are what a Watcher needs. Clock, Logger and OnChange are required.
type Options struct {
	Clock  clock.Clock
	Logger *slog.Logger
	// OnChange is called with the absolute paths that changed, appeared or
	// went, sorted: each a file given to Set, or one below or matching what was given. Calls come
	// one after the other; what changes during a call is in the next. first is when the
	// first of the changes was noticed.
	OnChange func(ctx context.Context, paths []string, first time.Time)

	// Poll looks at the files every second and asks for no events.
	Poll bool
	// OnPolling, if it is set, is told when files begin to be looked at every
	// second, and when that ends.
	OnPolling func(polling bool)
}

// Watcher watches files and directories. Its methods are safe for concurrent
// use.
type Watcher struct {
	o      Options
	open   func() (notifier, error)
	silent func(dir string) (fileSystem string)
	kick   chan struct{} // Set was called

	mu     sync.Mutex
	wanted []string
	known  map[string]state // by path: as last reported, or when it was added

	pendingMu sync.Mutex
	pending   map[string]bool // changed, not delivered yet
	first     time.Time       // when the first of pending was noticed
	deliver   chan struct{}
}

// notifier is fsnotify.Watcher: an interface so that tests can take the events
// away.
type notifier interface {
	Add(path string) error
	Remove(path string) error
	Close() error
	events() <-chan fsnotify.Event
	errors() <-chan error
}

type system struct{ *fsnotify.Watcher }

func (s system) events() <-chan fsnotify.Event { return s.Events }
func (s system) errors() <-chan error          { return s.Errors }

// New returns a Watcher that watches nothing.
func New(o Options) *Watcher {
	return &Watcher{
		o: o,
		open: func() (notifier, error) {
			w, err := fsnotify.NewWatcher()
			if err != nil {
				return nil, err
			}
			return system{w}, nil
		},
		silent:  silentFileSystem,
		kick:    make(chan struct{}, 1),
		known:   map[string]state{},
		pending: map[string]bool{},
		deliver: make(chan struct{}, 1),
	}
}

// Set replaces what is watched: files, directories with all that is below
// them (what does not exist yet may be either), and patterns for the files of
// one directory, such as /etc/weir/*.alloy. Changes from now on are reported,
// also those before Run. So call it before reading the files.
func (w *Watcher) Set(paths []string) error {
	wanted := make([]string, 0, len(paths))
	for _, p := range paths {
		abs, err := filepath.Abs(p)
		if err != nil {
			return fmt.Errorf("cannot watch %q: %w", p, err)
		}
		wanted = append(wanted, abs)
	}
	slices.Sort(wanted)
	wanted = slices.Compact(wanted)

	w.mu.Lock()
	defer w.mu.Unlock()
	if slices.Equal(wanted, w.wanted) {
		return nil
	}
	// Files that were already watched keep their state, so that a change that is
	// about to be reported is not lost.
	found := compareFiles(wanted, w.known, nil, w.o.Clock.Now())
	for path, s := range found.files {
		if !covers(w.wanted, path) {
			w.known[path] = s
		}
	}
	for path := range w.known {
		if !covers(wanted, path) {
			delete(w.known, path)
		}
	}
	w.wanted = wanted
	select {
	case w.kick <- struct{}{}:
	default:
	}
	return nil
}

// Run watches until ctx ends and returns after the last call of OnChange.
func (w *Watcher) Run(ctx context.Context) error {
	ctx, stop := context.WithCancel(ctx)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer stop()
	wg.Go(func() { w.deliverAll(ctx) })

	l := &loop{w: w, dirs: map[string]watched{}, force: map[string]bool{}, hung: map[string]bool{}}
	if w.o.Poll {
		l.setPolling(true)
		w.o.Logger.Info("looking at files every second, without events")
	}
	l.run(ctx)
	l.setPolling(false)
	if l.timer != nil {
		l.timer.Stop()
	}
	return nil
}

// deliverAll calls OnChange, apart from the loop, which must keep reading
// events while a reload takes its time.
func (w *Watcher) deliverAll(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-w.deliver:
		}
		w.pendingMu.Lock()
		paths := make([]string, 0, len(w.pending))
		for p := range w.pending {
			paths = append(paths, p)
		}
		clear(w.pending)
		first := w.first
		w.pendingMu.Unlock()
		if len(paths) > 0 {
			slices.Sort(paths)
			w.o.OnChange(ctx, paths, first)
		}
	}
}

func (w *Watcher) report(paths []string, first time.Time) {
	w.pendingMu.Lock()
	if len(w.pending) == 0 {
		w.first = first
	}
	for _, p := range paths {
		w.pending[p] = true
	}
	w.pendingMu.Unlock()
	select {
	case w.deliver <- struct{}{}:
	default:
	}
}

// loop is the state of one Run.
type loop struct {
	w    *Watcher
	n    notifier // nil while there are no events
	dirs map[string]watched
	poll bool // some directory has no events, or not all
	told bool // the user knows

	timer clock.Timer     // nil before the first burst
	first time.Time       // of the burst; zero when there is none
	force map[string]bool // real paths named by events: hash them whatever their time says
	lost  bool            // events were lost: hash everything
	hung  map[string]bool // on a file system that did not answer when it was looked at last
}

func (l *loop) run(ctx context.Context) {
	c := l.w.o.Clock
	defer l.closeNotifier()
	l.pollFiles() // also opens
	tick := c.NewTimer(l.interval())
	defer tick.Stop()
	for {
		var events <-chan fsnotify.Event
		var errs <-chan error
		var due <-chan time.Time
		if l.timer != nil {
			due = l.timer.C()
		}
		if l.n != nil {
			events, errs = l.n.events(), l.n.errors()
		}
		select {
		case <-ctx.Done():
			return
		case e, ok := <-events:
			if !ok {
				l.recoverLostEvents()
			} else if l.relevant(e) || l.goesOn(e) {
				l.burst()
			}
		case err, ok := <-errs:
			if ok && err == nil {
				continue
			}
			level := slog.LevelWarn
			if errors.Is(err, fsnotify.ErrEventOverflow) {
				level = slog.LevelDebug // nothing is lost: everything is looked at
			}
			l.w.o.Logger.Log(ctx, level, "file events were lost, looking at every file", "err", err)
			l.recoverLostEvents()
		case <-l.w.kick:
			l.pollFiles()
			tick.Reset(l.interval())
		case <-due:
			l.endBurst()
			tick.Reset(l.interval())
		case <-tick.C():
			l.pollFiles()
			tick.Reset(l.interval())
		}
	}
}

// recoverLostEvents makes up for events that were lost.
func (l *loop) recoverLostEvents() {
	l.closeNotifier()
	l.lost = true
	l.pollFiles()
	l.burst()
}

// interval is how long to wait before looking without an event.
func (l *loop) interval() time.Duration {
	if l.poll || len(l.hung) > 0 {
		return poll
	}
	return recheck
}

// burst begins or prolongs the time in which changes are awaited.
func (l *loop) burst() {
	now := l.w.o.Clock.Now()
	if l.first.IsZero() {
		l.first = now
	}
	l.arm(min(Quiet, l.first.Add(atMost).Sub(now)))
}

func (l *loop) arm(d time.Duration) {
	if l.timer == nil {
		l.timer = l.w.o.Clock.NewTimer(d)
	} else {
		l.timer.Reset(d)
	}
}

// pollFiles compares without having been told of an event, and begins a burst when
// it finds a change.
func (l *loop) pollFiles() {
	l.w.mu.Lock()
	changed, _, _ := l.compare()
	l.w.mu.Unlock()
	if len(changed) > 0 {
		l.burst()
	}
}

// endBurst ends the burst, or waits for a file that is in the midst of a save.
func (l *loop) endBurst() {
	l.w.mu.Lock()
	changed, found, settled := l.compare()
	now := l.w.o.Clock.Now()
	if left := l.first.Add(atMost).Sub(now); len(changed) > 0 && !settled && left > 0 {
		l.w.mu.Unlock()
		// The events of what is awaited prolong this by resetting the timer.
		l.arm(left)
		return
	}
	for _, path := range changed {
		delete(l.hung, path)
		if s, ok := found[path]; ok {
			l.w.known[path] = s
		} else {
			delete(l.w.known, path)
		}
	}
	l.w.mu.Unlock()
	if len(changed) > 0 {
		l.w.report(changed, l.first)
	}
	l.first = time.Time{}
	clear(l.force)
	l.lost = false
}

// compare looks at every file, watches every directory that matters now, and
// returns what differs from what is known; settled is false while a difference
// looks like half a save: a file that went, or is empty. The caller holds w.mu.
func (l *loop) compare() (changed []string, files map[string]state, settled bool) {
	var found finding
	for range 8 {
		known := l.w.known
		if l.lost {
			known = nil
		}
		found = compareFiles(l.w.wanted, known, l.force, l.w.o.Clock.Now())
		// Changes in a directory before it was watched are found by checking again.
		if !l.sync(found.dirs) {
			break
		}
	}
	if found.truncated != "" {
		l.w.o.Logger.Warn("too many files to watch, changes of some will not be seen", "path", found.truncated, "limit", maxFiles)
	}
	settled = true
	for path, err := range found.hung {
		if !l.hung[path] {
			l.hung[path] = true
			l.w.o.Logger.Warn("cannot watch a file or folder; changes to it are not detected", "path", path, "err", err)
		}
	}
	for path := range l.hung {
		if found.hung[path] == nil {
			changed = append(changed, path) // who could not read it will
		}
	}
	for path, s := range found.files {
		old, ok := l.w.known[path]
		switch {
		case !ok && s.kind == missing:
			l.w.known[path] = s
		case !ok || !old.same(s):
			changed = append(changed, path)
			half := s.kind == missing || s.unstable || s.kind == regular && s.size == 0
			settled = settled && !half
		default:
			l.w.known[path] = s // a newer time, not to be hashed again
		}
	}
	for path, old := range l.w.known {
		if _, ok := found.files[path]; !ok && old.kind != missing {
			changed = append(changed, path)
			settled = false
		} else if !ok {
			delete(l.w.known, path)
		}
	}
	slices.Sort(changed)
	changed = slices.Compact(changed)
	return changed, found.files, settled
}

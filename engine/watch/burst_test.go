package watch_test

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fsnotify/fsnotify"
	"github.com/google/go-cmp/cmp"

	"github.com/weir-run/weir/engine/clock/clocktest"
	"github.com/weir-run/weir/engine/watch"
)

// harness is a watcher of one file whose events and time the test makes.
type harness struct {
	t       *testing.T
	name    string
	clock   *clocktest.Fake
	n       *watch.FakeNotifier
	batches chan []string
	log     *syncBuffer
	openErr chan error // what the next opens return
	opened  atomic.Bool
	polling chan bool // what OnPolling was told
	w       *watch.Watcher
}

type syncBuffer struct {
	mu sync.Mutex
	b  strings.Builder
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

func newHarness(t *testing.T, openErr error) *harness {
	t.Helper()
	return newHarnessWith(t, openErr, func(*watch.Options) {})
}

func newHarnessWith(t *testing.T, openErr error, edit func(*watch.Options)) *harness {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	l := &harness{
		t:       t,
		name:    filepath.Join(dir, "f"),
		clock:   clocktest.New(time.Now()),
		batches: make(chan []string, 10),
		log:     &syncBuffer{},
		openErr: make(chan error, 1),
		polling: make(chan bool, 10),
	}
	l.openErr <- openErr
	l.n = &watch.FakeNotifier{Events: make(chan fsnotify.Event), Errors: make(chan error)}
	l.write("1")
	o := watch.Options{
		Clock:     l.clock,
		Logger:    slog.New(slog.NewTextHandler(l.log, nil)),
		OnChange:  func(_ context.Context, paths []string, _ time.Time) { l.batches <- paths },
		OnPolling: func(polling bool) { l.polling <- polling },
	}
	edit(&o)
	w := watch.New(o)
	l.w = w
	w.Use(func() (*watch.FakeNotifier, error) {
		l.opened.Store(true)
		err := <-l.openErr
		l.openErr <- err
		return l.n, err
	})
	if err := w.Set([]string{l.name}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		<-done
	})
	if openErr == nil && !o.Poll {
		l.advance(0) // the loop has seen Set
	}
	return l
}

func (l *harness) write(text string) {
	l.t.Helper()
	if err := os.WriteFile(l.name, []byte(text), 0o644); err != nil {
		l.t.Fatal(err)
	}
	// As if it were written by the clock that the watcher knows: until runs
	// ahead of the real one, by which two writes may have one time.
	now := l.clock.Now()
	if err := os.Chtimes(l.name, now, now); err != nil {
		l.t.Fatal(err)
	}
}

func (l *harness) remove() {
	l.t.Helper()
	if err := os.Remove(l.name); err != nil {
		l.t.Fatal(err)
	}
}

// event returns when the loop has dealt with it.
func (l *harness) event() {
	l.t.Helper()
	l.n.Events <- fsnotify.Event{Name: l.name, Op: fsnotify.Write}
	l.idle()
}

// idle returns when the loop has nothing to do: it takes an event only then.
func (l *harness) idle() {
	l.t.Helper()
	select {
	case l.n.Events <- fsnotify.Event{Name: filepath.Join(filepath.Dir(l.name), "unrelated"), Op: fsnotify.Write}:
	case <-time.After(patience):
		l.t.Fatal("the loop takes no events")
	}
}

// advance moves time and returns when what was due has been done.
func (l *harness) advance(d time.Duration) {
	l.t.Helper()
	l.clock.Advance(d)
	// When a timer and an event are ready together, select throws a coin: the
	// timer has its turn within sixty.
	for range 60 {
		l.idle()
	}
}

// wantPolling takes the next thing that OnPolling was told.
func (l *harness) wantPolling(want bool) {
	l.t.Helper()
	select {
	case got := <-l.polling:
		if got != want {
			l.t.Errorf("told polling %v, want %v", got, want)
		}
	case <-time.After(patience):
		l.t.Error("not told whether files are polled")
	}
}

func (l *harness) none() {
	l.t.Helper()
	select {
	case got := <-l.batches:
		l.t.Errorf("a change was reported too early: %v", got)
	default:
	}
}

func (l *harness) one() {
	l.t.Helper()
	select {
	case got := <-l.batches:
		if diff := cmp.Diff([]string{l.name}, got); diff != "" {
			l.t.Errorf("changed (-want +got):\n%s", diff)
		}
	case <-time.After(patience):
		l.t.Error("no change was reported")
	}
}

func TestBurst(t *testing.T) {
	f := func(name string, test func(l *harness)) {
		t.Helper()
		t.Run(name, func(t *testing.T) { test(newHarness(t, nil)) })
	}
	f("reported after 20 ms of quiet", func(l *harness) {
		l.write("2")
		l.event()
		l.advance(19 * time.Millisecond)
		l.none()
		l.event()
		l.advance(19 * time.Millisecond)
		l.none()
		l.advance(time.Millisecond)
		l.one()
	})
	f("reported after 200 ms of noise", func(l *harness) {
		l.write("2")
		for range 20 {
			l.none()
			l.event()
			l.advance(10 * time.Millisecond)
		}
		l.one()
	})
	f("a temporary file shows that more follows", func(l *harness) {
		temporary := func() {
			l.n.Events <- fsnotify.Event{Name: filepath.Join(filepath.Dir(l.name), ".f.Xy12"), Op: fsnotify.Create}
			l.idle()
		}
		temporary() // alone it is no change
		l.advance(time.Second)
		l.none()
		l.write("2")
		l.event()
		l.advance(19 * time.Millisecond)
		temporary()
		l.advance(19 * time.Millisecond)
		l.none()
		l.advance(time.Millisecond)
		l.one()
	})
	f("an empty file may be half a save", func(l *harness) {
		l.write("")
		l.event()
		l.advance(150 * time.Millisecond)
		l.none()
		l.write("2")
		l.event()
		l.advance(20 * time.Millisecond)
		l.one()
		l.advance(time.Second)
		l.none()
	})
	f("an empty file is reported at last", func(l *harness) {
		l.write("")
		l.event()
		l.advance(20 * time.Millisecond)
		l.advance(179 * time.Millisecond)
		l.none()
		l.advance(time.Millisecond)
		l.one()
	})
	f("a missing file may come back", func(l *harness) {
		l.remove()
		l.event()
		l.advance(100 * time.Millisecond)
		l.none()
		l.write("1")
		l.event()
		l.advance(time.Second)
		l.none()
		l.write("2")
		l.event()
		l.advance(20 * time.Millisecond)
		l.one()
	})
	f("a missing file is reported at last", func(l *harness) {
		l.remove()
		l.event()
		l.advance(200 * time.Millisecond)
		l.one()
	})
	f("a change without an event is seen within a minute", func(l *harness) {
		l.write("2")
		l.advance(time.Minute)
		l.advance(20 * time.Millisecond)
		l.one()
	})
	f("lost events", func(l *harness) {
		l.idle()
		// A write that nothing but the hash can tell: same size, same time.
		old := time.Now().Add(-time.Hour)
		if err := os.Chtimes(l.name, old, old); err != nil {
			l.t.Fatal(err)
		}
		l.event()
		l.advance(20 * time.Millisecond)
		l.none()
		l.write("2")
		if err := os.Chtimes(l.name, old, old); err != nil {
			l.t.Fatal(err)
		}
		l.n.Errors <- fsnotify.ErrEventOverflow
		l.idle()
		l.advance(20 * time.Millisecond)
		l.one()
	})
}

// until lets time pass until done.
func (l *harness) until(what string, done func() bool) {
	l.t.Helper()
	for deadline := time.Now().Add(patience); !done(); runtime.Gosched() {
		if time.Now().After(deadline) {
			l.t.Fatalf("waited in vain: %s", what)
		}
		l.clock.Advance(20 * time.Millisecond)
	}
}

func TestPolling(t *testing.T) {
	// Without any events.
	l := newHarness(t, errors.New("too many open files"))
	logged := func(text string) int { return strings.Count(l.log.String(), text) }
	l.until("a warning", func() bool { return logged("cannot receive file events, looking every second") > 0 })
	l.write("2")
	l.until("a change", func() bool { return len(l.batches) > 0 })
	l.one()
	// The limit is lifted.
	<-l.openErr
	l.openErr <- nil
	l.until("events", func() bool { return logged("receiving file events again") > 0 })
	l.write("3")
	l.event()
	l.advance(20 * time.Millisecond)
	l.one()
	if n := logged("too many open files"); n != 1 {
		t.Errorf("got %d warnings, want 1:\n%s", n, l.log)
	}
}

func TestPollingOneDirectory(t *testing.T) {
	l := newHarness(t, nil)
	l.idle()
	var mu sync.Mutex
	full := true
	l.n.AddErr = func(string) error {
		mu.Lock()
		defer mu.Unlock()
		if full {
			return errors.New("no space left on device")
		}
		return nil
	}
	// The watches are created again after an error, and then the limit is reached.
	l.n.Errors <- errors.New("broken")
	l.idle()
	l.write("2")
	l.advance(time.Second)
	l.advance(20 * time.Millisecond)
	l.one()
	if got := l.log.String(); !strings.Contains(got, "cannot receive events of a directory") || !strings.Contains(got, "no space left") {
		t.Errorf("got log %q, want a warning", got)
	}
	l.write("3")
	l.advance(time.Second)
	l.advance(20 * time.Millisecond)
	l.one()
	mu.Lock()
	full = false
	mu.Unlock()
	l.advance(time.Second)
	if got := l.log.String(); !strings.Contains(got, "receiving file events again") {
		t.Errorf("got log %q, want that events are back", got)
	}
}

// TestSilentFileSystem: no event ever comes, and changes are seen; the file is
// read only when it may have changed.
func TestSilentFileSystem(t *testing.T) {
	l := newHarness(t, nil)
	l.w.Silent(func(string) string { return "nfs" })
	// The watches are created again after an error.
	l.n.Errors <- errors.New("broken")
	l.idle()
	if got := l.log.String(); !strings.Contains(got, "does not tell of changes from elsewhere") || !strings.Contains(got, "file_system=nfs") {
		t.Errorf("got log %q, want a warning that names the file system", got)
	}
	l.wantPolling(true)
	for _, text := range []string{"2", "3", ""} {
		l.write(text)
		l.advance(time.Second)
		l.advance(20 * time.Millisecond)
		if text == "" { // which may be half a save
			l.none()
			l.advance(200 * time.Millisecond)
		}
		l.one()
		l.advance(time.Second)
		l.none()
	}
	// Events that do come are still faster.
	l.write("4")
	l.event()
	l.advance(20 * time.Millisecond)
	l.one()
	if n := strings.Count(l.log.String(), "does not tell"); n != 1 {
		t.Errorf("got %d warnings, want 1", n)
	}
	l.w.Silent(func(string) string { return "" })
	l.n.Errors <- errors.New("broken")
	l.idle()
	l.wantPolling(false)
}

// TestPoll: no events are asked for.
func TestPoll(t *testing.T) {
	l := newHarnessWith(t, nil, func(o *watch.Options) { o.Poll = true })
	l.until("polling", func() bool { return len(l.polling) > 0 })
	l.wantPolling(true)
	l.write("2")
	l.until("a change", func() bool { return len(l.batches) > 0 })
	l.one()
	l.remove()
	l.until("a change", func() bool { return len(l.batches) > 0 })
	l.one()
	if got := l.log.String(); !strings.Contains(got, "looking at files every second, without events") {
		t.Errorf("got log %q", got)
	}
	if l.opened.Load() {
		t.Error("a notifier was opened")
	}
}

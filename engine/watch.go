package engine

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/weir-run/weir/engine/config"
	"github.com/weir-run/weir/engine/files"
	"github.com/weir-run/weir/engine/watch"
)

// newWatcher returns the watcher of all relevant files, or nil if nothing is
// watched. It is created before the first file is read, so that no change is
// missed.
func (e *Engine) newWatcher(path string) (*watch.Watcher, error) {
	if e.o.NoWatch {
		return nil, nil
	}
	w := watch.New(watch.Options{
		Clock:  e.clock,
		Logger: e.log,
		Poll:   e.o.PollFiles,
		OnPolling: func(polling bool) {
			e.metrics.polling.Set(0)
			if polling {
				e.metrics.polling.Set(1)
			}
		},
		OnChange: func(ctx context.Context, paths []string, first time.Time) {
			// The outcome has been announced and logged. Do not wait for slow
			// operations: other changes follow this one.
			_ = e.readAhead(ctx, callPatience)
			_ = e.runOnWorker(ctx, func() error { return e.filesChanged(paths, first) })
		},
	})
	return w, w.Set(e.watched(path))
}

// watched returns the paths to watch: the config, the folders of the catalogs,
// and the files that registrations and components have read.
func (e *Engine) watched(path string) []string {
	files := map[string]bool{}
	if e.o.WatchConfig {
		files[config.Pattern(path)] = true
	}
	for _, c := range e.catalogs() {
		for _, dir := range c.Roots() {
			files[dir] = true
		}
	}
	if e.plan != nil {
		maps.Copy(files, e.plan.registered())
		maps.Copy(files, e.plan.watch)
	}
	maps.Copy(files, e.missed)
	for _, n := range e.nodes {
		for _, f := range n.state.Load().sourced {
			files[f] = true
		}
	}
	for _, s := range e.services {
		for _, f := range s.sourced() {
			files[f] = true
		}
	}
	return slices.Sorted(maps.Keys(files))
}

// startWatch watches until ctx ends; stop waits for the end.
func (e *Engine) startWatch(ctx context.Context) (stop func()) {
	if e.watcher == nil {
		return func() {}
	}
	e.followFiles()
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := e.watcher.Run(ctx); err != nil {
			e.log.Error("files are no longer watched, reload by hand", "err", err)
		}
	})
	return func() {
		cancel()
		wg.Wait()
	}
}

// maxReadAhead is how long a caller that requests a change waits for the files.
const maxReadAhead = 2 * files.Patience

// readAhead reads the files that the worker will read. It waits up to patience
// for a file system that does not respond, so that the worker, on which other
// callers depend, does not have to.
func (e *Engine) readAhead(ctx context.Context, patience time.Duration) error {
	var paths []string
	if path := e.path.Load(); path != nil {
		paths = append(paths, *path)
	}
	if imports := e.imports.Load(); imports != nil {
		paths = append(paths, *imports...)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for _, path := range paths {
			_, _ = config.ReadFiles(path) // the worker reports the errors
		}
		for _, c := range e.o.Catalogs {
			for _, dir := range c.Roots() {
				_, _ = files.Stat(dir)
			}
		}
	}()
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-done:
		return nil
	case <-timer.C:
		return nil
	case <-e.box.closed:
		return ErrNotRunning
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// followFiles updates the set of watched files.
func (e *Engine) followFiles() {
	imports := map[string]bool{}
	for _, s := range e.plan.sources {
		if s.path != "" {
			imports[s.path] = true
		}
	}
	paths := slices.Sorted(maps.Keys(imports))
	e.imports.Store(&paths)
	e.fetchRemotes()
	if e.watcher == nil {
		return
	}
	e.poll()
	if err := e.watcher.Set(e.watched(*e.path.Load())); err != nil {
		e.log.Error("cannot watch all files", "err", err)
	}
	e.lookAgain()
}

// lookAgain checks imports that are watched from now on: they may have changed
// since they were read.
func (e *Engine) lookAgain() {
	looked := map[string]bool{}
	var changed []string
	for _, s := range e.plan.sources {
		if s.path == "" || s.im.Poll > 0 || looked[s.path] {
			continue
		}
		looked[s.path] = true
		if e.looked[s.path] {
			continue
		}
		if now, _ := readSoon(e, s.path, config.ReadFiles); !maps.Equal(now, s.files) {
			changed = append(changed, absolute(s.path))
		}
	}
	for key := range e.plan.folders {
		_, dir, _ := strings.Cut(key, " ")
		if looked[dir] = true; !e.looked[dir] {
			changed = append(changed, dir)
		}
	}
	e.looked = looked
	if len(changed) > 0 {
		e.postFilesChanged(changed)
	}
}

// poller polls an import with detector "poll".
type poller struct {
	every time.Duration
	stop  context.CancelFunc
}

// poll updates the pollers of imports with detector "poll".
func (e *Engine) poll() {
	for path, p := range e.pollers {
		if s := e.plan.polled[path]; s == nil || s.im.Poll != p.every {
			p.stop()
			delete(e.pollers, path)
		}
	}
	for path, s := range e.plan.polled {
		if e.pollers[path] != nil {
			continue
		}
		im, files := s.im, s.files // the file may have changed since it was read
		ctx, cancel := context.WithCancel(e.hard)
		e.pollers[path] = &poller{im.Poll, cancel}
		e.wg.Go(func() {
			t := e.clock.NewTimer(im.Poll)
			defer t.Stop()
			for {
				select {
				case <-ctx.Done():
					return
				case <-e.box.closed:
					return
				case <-t.C():
				}
				now, _ := config.ReadFiles(path)
				if !maps.Equal(files, now) {
					files = now
					e.postFilesChanged([]string{path})
				}
				t.Reset(im.Poll)
			}
		})
	}
}

package engine

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"sync"
	"time"

	"github.com/weir-run/weir/engine/config"
	"github.com/weir-run/weir/engine/lastgood"
)

// refusal is why the config on disk was refused at the start.
type refusal struct {
	err   error
	files map[string]string // of the config, for snippets
	kept  time.Time         // when the last good config, which runs instead, was accepted
}

// remark is what happens instead.
func (r *refusal) remark() string {
	return "running the last good config, accepted on " + r.kept.UTC().Format("2006-01-02 15:04:05 MST")
}

// loadFirst is load for the start. If the config is refused, it loads the last good one,
// and sets e.instead.
func (e *Engine) loadFirst(ctx context.Context, path string) (*config.Config, *plan, error) {
	if e.keeper == nil {
		return e.load(ctx, path)
	}
	good, goodErr := lastgood.Get(e.storage, absolute(path))
	last, ds := config.Parse(good.Trees[good.Config].Texts(path))
	last.Path = path
	if len(last.Blocks) > 0 {
		e.instead = &refusal{kept: good.Time}
	}
	cfg, p, err := e.load(ctx, path)
	if err != nil && ctx.Err() == nil && e.instead != nil {
		q, lastErr := e.planConfig(ctx, last, ds, planMode{modules: good.Trees})
		if lastErr == nil {
			e.instead.err, e.instead.files = err, p.shown
			e.keeper.kept = good.Trees
			e.rejectConfig(p, err)
			return last, q, nil
		}
		goodErr = fmt.Errorf("it does not fit this version of weir: %w", lastErr)
	}
	if err != nil && goodErr != nil && !errors.Is(goodErr, fs.ErrNotExist) {
		e.log.Warn("cannot run the last good config", "err", goodErr)
	}
	e.instead = nil
	return cfg, p, err
}

// keepRetry is how long to wait after the config could not be kept.
const keepRetry = time.Minute

// keeper writes the last good config outside of the worker, because disks can be slow.
type keeper struct {
	e    *Engine
	kept map[string]lastgood.Tree // the last ones that were passed to keep; the worker's

	mu      sync.Mutex
	next    *lastgood.Copy // what is not written yet
	writing bool
}

// keepGood keeps the files of the config that runs.
func (e *Engine) keepGood() {
	k := e.keeper
	if k == nil {
		return
	}
	path := absolute(e.plan.cfg.Path)
	trees := map[string]lastgood.Tree{path: lastgood.NewTree(e.plan.cfg.Path, e.plan.cfg.Files)}
	for _, s := range e.plan.sources {
		if s.path != "" && s.files != nil {
			trees[absolute(s.path)] = lastgood.NewTree(s.path, s.files)
		}
	}
	if maps.EqualFunc(trees, k.kept, func(a, b lastgood.Tree) bool { return maps.Equal(a, b) }) {
		return
	}
	k.kept = trees
	k.keep(lastgood.Copy{Config: path, Time: e.clock.Now().UTC(), Trees: trees})
}

// keep writes a copy in the background. The newest one wins.
func (k *keeper) keep(c lastgood.Copy) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.next = &c
	if !k.writing {
		k.writing = true
		k.e.wg.Go(k.write)
	}
}

// write writes copies until the newest one is on disk, or weir stops.
func (k *keeper) write() {
	said := ""
	for {
		k.mu.Lock()
		c := k.next
		if k.next = nil; c == nil {
			k.writing = false
			k.mu.Unlock()
			return
		}
		k.mu.Unlock()
		err := lastgood.Keep(k.e.storage, *c)
		if err == nil {
			continue
		}
		if said != err.Error() {
			said = err.Error()
			k.e.log.Warn("cannot keep the config: a start with a broken config cannot fall back on it", "err", err)
		}
		k.mu.Lock()
		if k.next == nil {
			k.next = c
		}
		k.mu.Unlock()
		timer := k.e.clock.NewTimer(keepRetry)
		select {
		case <-timer.C():
		case <-k.e.box.closed:
			timer.Stop()
			return
		}
	}
}

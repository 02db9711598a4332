package scripttest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/engine/clock/clocktest"
	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/config"
	"github.com/weir-run/weir/engine/files"
	"github.com/weir-run/weir/engine/service"
	"github.com/weir-run/weir/scripting"
	"github.com/weir-run/weir/scripting/node"
	"github.com/weir-run/weir/scripting/registry"
)

// Pipelines is what weir.test.pipeline needs in addition to scripts: the parts of
// weir that a config may use.
type Pipelines struct {
	// Natives has the components that are written in Go.
	Natives component.Catalog
	// Services are the services whose blocks a config may have. They do not run.
	Services []service.Definition
	// Unsupported lists blocks of other programs, as in engine.Options.
	Unsupported config.Unsupported
}

// pipeline is a config that runs in the real engine. The test replaces its edges:
// the native sources, sinks and components with external exports.
type pipeline struct {
	s        *session
	name     string // of the config, as shown to people
	clock    testClock
	given    map[string]string // exports, by node, as the body of a block
	replaced map[string]bool   // nodes that would have exports from outside
	engine   *engine.Engine
	stop     func() // ends the engine and waits for it
	ended    chan struct{}
	log      *logLines
	over     bool
	// exported is set when a component has exported something that the engine may not
	// have processed yet.
	exported atomic.Bool

	mu      sync.Mutex
	sources map[string]*pipeSource // by node
	sinks   map[string]*pipeSink
	errors  []*scripting.Error
}

// openPipeline implements weir.test.pipeline.
func (s *session) openPipeline(path string, options *scripting.Map) (*pipeline, error) {
	p, err := s.runPipeline(path, func(p *pipeline) error { return p.configure(options) })
	if err != nil {
		return nil, err
	}
	if s.inTest {
		s.openedPipelines = append(s.openedPipelines, p)
	} else {
		s.filePipelines = append(s.filePipelines, p)
	}
	return p, nil
}

// runPipeline runs the config at path.
func (s *session) runPipeline(path string, configure func(*pipeline) error) (_ *pipeline, err error) {
	if s.ctx.Err() != nil {
		return nil, context.Cause(s.ctx)
	}
	if s.pipelines == nil || s.pipelines.Natives == nil {
		return nil, errors.New("cannot run a pipeline here: there are no native components; set Natives of scripttest.Pipelines")
	}
	p := &pipeline{
		s: s, clock: testClock{clocktest.New(began)}, log: &logLines{}, ended: make(chan struct{}),
		given: map[string]string{}, replaced: map[string]bool{}, sources: map[string]*pipeSource{}, sinks: map[string]*pipeSink{},
	}
	if err := configure(p); err != nil {
		return nil, err
	}
	if path, err = s.configPath(path); err != nil {
		return nil, err
	}
	p.name = display(path)
	path = filepath.FromSlash(p.name) // so that all errors show it
	if err := p.check(path); err != nil {
		return nil, err
	}
	if err := p.start(path); err != nil {
		_ = p.close() // which would repeat the error
		return nil, err
	}
	return p, nil
}

// configure reads the options of weir.test.pipeline.
func (p *pipeline) configure(options *scripting.Map) error {
	if options == nil {
		return nil
	}
	if v, _ := options.Get("time"); v != nil {
		at, err := clockTime(v.(string))
		if err != nil {
			return err
		}
		p.clock = testClock{clocktest.New(at)}
	}
	if v, _ := options.Get("exports"); v != nil {
		all := v.(*scripting.Map)
		for _, id := range all.Keys() {
			one, _ := all.Get(id)
			m, ok := one.(*scripting.Map)
			if !ok {
				return fmt.Errorf("cannot use a %s as the exports of %s: write them by name, such as { targets = … }", typeName(one), id)
			}
			body, err := attributes(m, nil)
			if err != nil {
				return fmt.Errorf("cannot use the exports of %s: %w", id, err)
			}
			p.given[id] = body
		}
	}
	return nil
}

// clockTime reads the time at which a clock begins.
func clockTime(text string) (time.Time, error) {
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return at, fmt.Errorf(`cannot use %q as the time of the clock: write a time such as "2025-06-01T12:00:00Z"`, text)
	}
	return at, nil
}

// configPath returns the absolute path of a config, which counts from the folder of the
// test file.
func (s *session) configPath(path string) (string, error) {
	full := filepath.FromSlash(path)
	if !filepath.IsAbs(full) {
		full = filepath.Join(filepath.Dir(s.file.Path), full)
	}
	s.used[full] = true
	if _, err := files.Stat(full); err != nil {
		return "", fmt.Errorf("cannot run the config %s: %w; the path counts from the folder of the test file", path, err)
	}
	return full, nil
}

// options returns the options of an engine.
func (p *pipeline) options(storage string) engine.Options {
	return engine.Options{
		Catalogs:    []component.Catalog{&pipeNatives{p.s.pipelines.Natives, p}, p.scripts(p.s.folder.Catalog)},
		Scripts:     p.importScripts,
		GrantKinds:  scripting.NeedKinds,
		Services:    p.services(),
		Unsupported: p.s.pipelines.Unsupported,
		Getenv: func(name string) string {
			v, _ := p.s.mocks.lookupEnv(name)
			return v
		},
		Clock: p.clock, StoragePath: storage, Version: "test", NoWatch: true,
	}
}

// importScripts returns the catalog of a folder of import.scripts.
func (p *pipeline) importScripts(namespace, dir string) (component.Catalog, error) {
	c, err := registry.NewCatalog(registry.Options{Languages: p.s.langs, Modules: p.s.modules, UserDir: dir, Namespace: namespace, Probe: p.s.probe})
	if err != nil {
		return nil, err
	}
	return p.scripts(c), nil
}

// check returns the errors of the config with their positions, and records the files that
// it consists of.
func (p *pipeline) check(path string) error {
	e, err := engine.New(p.options(""))
	if err != nil {
		return err
	}
	cfg, ds := e.Check(path)
	for name := range cfg.Files {
		if abs, err := filepath.Abs(name); err == nil {
			p.s.used[abs] = true
		}
	}
	if ds.Err() == nil {
		return nil
	}
	var b strings.Builder
	for _, d := range ds {
		if d.Severity != config.Error {
			continue
		}
		d.File = display(d.File)
		b.WriteString("\n" + d.Error())
	}
	return fmt.Errorf("cannot run the config %s:%s", p.name, b.String())
}

// start runs the engine and waits until nothing happens any more.
func (p *pipeline) start(path string) error {
	dir, err := os.MkdirTemp("", "weir-test-")
	if err != nil {
		return fmt.Errorf("cannot run the config %s: %w", p.name, err)
	}
	if p.engine, err = engine.New(p.options(dir)); err != nil {
		return errors.Join(err, os.RemoveAll(dir))
	}
	ctx, cancel := context.WithCancel(context.Background())
	var failed error
	go func() {
		defer close(p.ended)
		failed = errors.Join(p.engine.Run(ctx, path), os.RemoveAll(dir))
	}()
	p.stop = func() {
		cancel()
		p.awaitEnd()
	}
	if err := p.settle(); err != nil {
		select {
		case <-p.ended:
			err = cmp.Or(failed, err)
		default:
		}
		return fmt.Errorf("cannot run the config %s: %w", p.name, err)
	}
	for _, info := range p.engine.ListComponents() {
		if info.Sources != nil {
			for _, path := range info.Sources() {
				p.s.used[path] = true
			}
		}
		if h := info.Health; h.State == component.Unhealthy {
			return fmt.Errorf("cannot run the config %s: %s (%s) is unhealthy: %s", p.name, info.ID, display(info.Position), h.Message)
		}
	}
	for _, id := range sortedNames(p.given) {
		if _, ok := p.engine.GetComponent(id); !ok {
			return p.unknown(id)
		}
		if !p.replaced[id] {
			return fmt.Errorf("cannot use the exports of %s: the component runs in the test and exports by itself; exports are for components with exports from outside, such as discovery.http", id)
		}
	}
	return cmp.Or(p.s.mocks.takeDenied(), p.failure())
}

// endPatience is how long the engine may take to stop before its clock moves, so that its
// own time limits end the operations that hang.
const endPatience = 10 * time.Second

func (p *pipeline) awaitEnd() {
	timer := time.NewTimer(endPatience)
	defer timer.Stop()
	for {
		select {
		case <-p.ended:
			return
		case <-timer.C:
			p.clock.Advance(time.Minute)
			timer.Reset(endPatience)
		}
	}
}

// close stops the pipeline. The error is the first that a teardown met.
func (p *pipeline) close() error {
	if p.over || p.stop == nil {
		p.over = true
		return nil
	}
	p.over = true
	p.stop()
	for _, e := range p.sources {
		e.node.releaseSeries()
	}
	return p.failure()
}

// usable returns an error for a pipeline that has ended.
func (p *pipeline) usable() error {
	if p.over {
		return errors.New("cannot use this pipeline: it was stopped, or the test that opened it is over; open it in before_each")
	}
	if p.s.ctx.Err() != nil {
		return context.Cause(p.s.ctx)
	}
	return nil
}

// settled is a component that knows when everything that is due is done.
type settled interface {
	Settled(ctx context.Context) (next time.Time, err error)
}

// patience is how long the components may take, by the clock of the machine, to do what
// is due.
const patience = 30 * time.Second

// maxSettle is how often exports may lead to more exports before a pipeline gives up.
const maxSettle = 100

// settle waits until everything that is due is done.
func (p *pipeline) settle() error {
	_, err := p.nextTimer()
	return err
}

// nextTimer waits until everything that is due is done and returns when the next timer of
// a script rings; zero for never.
func (p *pipeline) nextTimer() (next time.Time, err error) {
	ctx, cancel := context.WithTimeoutCause(p.s.ctx, patience, fmt.Errorf("the components did not come to rest within %s", patience))
	defer cancel()
	for range maxSettle {
		if p.exported.Swap(false) || !p.engine.Ready() {
			// The worker of the engine processes exports before the next job.
			if err := p.engine.FilesChanged(ctx, nil); err != nil {
				return next, err
			}
			p.exported.Store(false)
		}
		if next, err = p.nextOf(ctx); err != nil || !p.exported.Load() {
			return next, err
		}
	}
	return next, errors.New("the exports of its components do not come to rest")
}

func (p *pipeline) nextOf(ctx context.Context) (next time.Time, err error) {
	for _, info := range p.engine.ListComponents() {
		c, ok := p.engine.GetComponent(info.ID)
		if !ok {
			continue
		}
		s, ok := c.(settled)
		if !ok {
			continue
		}
		at, err := s.Settled(ctx)
		if err != nil {
			if ctx.Err() == nil {
				err = fmt.Errorf("cannot set up %s: %w", info.ID, err)
			}
			return next, err
		}
		next = earliest(next, at)
	}
	return next, nil
}

// earliest returns the earlier time; a zero time is never.
func earliest(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// advance sets the clock forward, with a stop at each timer.
func (p *pipeline) advance(d time.Duration) error {
	end := p.clock.Now().Add(d)
	for range maxRings {
		next, err := p.nextTimer()
		if err != nil {
			return err
		}
		for _, w := range p.waiters() {
			next = earliest(next, w.nextSend())
		}
		if next.IsZero() || next.After(end) {
			next = end
		}
		p.clock.Advance(next.Sub(p.clock.Now()))
		for _, w := range p.waiters() {
			if err := w.deliverDue(p.s.ctx); err != nil {
				return err
			}
		}
		if !next.Before(end) {
			return p.settle()
		}
	}
	return fmt.Errorf("cannot set the clock forward by %s: timers rang %d times", d, maxRings)
}

// waiter is an edge that sends records again.
type waiter interface {
	nextSend() time.Time // zero for never
	deliverDue(ctx context.Context) error
}

// waiters returns the sources and sinks, sorted by node, sinks first, so that a sink that
// has room again does so before a source tries it again.
func (p *pipeline) waiters() (out []waiter) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, id := range sortedNames(p.sinks) {
		out = append(out, p.sinks[id])
	}
	for _, id := range sortedNames(p.sources) {
		out = append(out, p.sources[id])
	}
	return out
}

func sortedNames[V any](m map[string]V) []string {
	out := make([]string, 0, len(m))
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}

// failed records an error in a script.
func (p *pipeline) failed(e *scripting.Error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.errors = append(p.errors, e)
}

// failure returns the first error in a script since the last call, and nil if there is
// none.
func (p *pipeline) failure() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := p.errors
	p.errors = nil
	if len(all) == 0 {
		return nil
	}
	return &scriptFailure{all[0]}
}

// result is the error of a call of a pipeline.
func (p *pipeline) result(err error) error {
	return cmp.Or(p.s.mocks.takeDenied(), err, p.failure())
}

// unknown is the error of a node that does not exist.
func (p *pipeline) unknown(id string) error {
	var ids []string
	for _, info := range p.engine.ListComponents() {
		ids = append(ids, info.ID)
	}
	err := fmt.Errorf("there is no node %s in %s", id, p.name)
	if hint := config.DidYouMean(id, ids); hint != "" {
		err = fmt.Errorf("%w; %s", err, hint)
	}
	return err
}

// nodeLog adds the ID of a node to what it logs.
type nodeLog struct {
	*logLines
	id string
}

// Handle keeps a line.
func (l nodeLog) Handle(ctx context.Context, r slog.Record) error {
	if isKnown(r) {
		return nil
	}
	r.Message = l.id + ": " + r.Message
	return l.logLines.Handle(ctx, r)
}

// WithAttrs leaves out attributes, as logLines.
func (l nodeLog) WithAttrs([]slog.Attr) slog.Handler { return l }

// WithGroup likewise.
func (l nodeLog) WithGroup(string) slog.Handler { return l }

// observed returns ctx with which errors in scripts reach the pipeline.
func (p *pipeline) observed(ctx context.Context) context.Context { return node.Observe(ctx, p.failed) }

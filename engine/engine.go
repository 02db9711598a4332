package engine

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weir-run/weir/engine/clock"
	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/config"
	"github.com/weir-run/weir/engine/lastgood"
	"github.com/weir-run/weir/engine/pkg/remote"
	"github.com/weir-run/weir/engine/service"
	"github.com/weir-run/weir/engine/stall"
	"github.com/weir-run/weir/engine/watch"
)

// Options are the options of New.
type Options struct {
	// Catalogs find the components of block names. If several know a name, a
	// config that uses it is refused, and the registration of the first catalog is
	// used in its place.
	Catalogs []component.Catalog
	// Scripts returns the catalog of a folder of scripts: for import.scripts, whose names
	// begin with the namespace, or to take the place of the component.Extensible in
	// Catalogs, without a namespace. It is nil if import.scripts is not supported.
	Scripts func(namespace, dir string) (component.Catalog, error)
	// Remote fetches and caches the content of imports over the network. It is nil if they
	// are not supported.
	Remote *remote.Store
	// UpdateLock accepts new content of remote imports: it is written to weir.lock.
	UpdateLock bool
	// GrantKinds are the kinds of the grants in Registration.Grants, for the block policy.
	GrantKinds []string
	// Unsupported lists block names that no catalog has but that configs may
	// contain, with their replacements.
	Unsupported config.Unsupported
	// Services run as long as the engine.
	Services []service.Service
	// Getenv implements sys.env of configs; nil reads the environment of the
	// process.
	Getenv func(name string) string
	// Clock is the time of the engine and all components; nil is the system's.
	Clock clock.Clock
	// Logger is passed on to components, with component_id; nil discards.
	Logger *slog.Logger
	// Registerer gets one collector for the engine's metrics and those of all
	// components; it may be nil.
	Registerer prometheus.Registerer
	// StoragePath is where components store files. A relative path becomes
	// absolute. If it is empty, Check does not detect arguments that name weir's
	// own files.
	StoragePath string
	// Version is the version of weir, such as v1.2.3.
	Version string
	// ShutdownTimeout is the maximum time that Run takes to return after its ctx
	// has ended; 0 is 30 s.
	ShutdownTimeout time.Duration
	// WatchConfig reloads when the config's files change. Files of catalogs and
	// components are watched in any case; see NoWatch.
	WatchConfig bool
	// NoWatch disables watching files; FilesChanged reports changes.
	NoWatch bool
	// PollFiles checks watched files every second instead of using events.
	PollFiles bool
	// LastGood keeps the files of the last config that was accepted in StoragePath, and
	// runs them if the config is refused at the start.
	LastGood bool
	// Announce gets one line for people about each reload, such as "reloaded
	// demo.units (12 ms), 1 of 5 nodes rebuilt". It must not block. It is called
	// from one goroutine at a time. The lines are then logged at debug level only.
	// It may be nil.
	Announce func(line string)
}

// Engine runs a config. Create it with New; it runs once. All methods are safe
// for concurrent use, except Check and Graph, which are for an Engine that does
// not run.
type Engine struct {
	o         Options
	announces bool   // Options.Announce is set
	storage   string // Options.StoragePath, absolute; "" if it is not set
	log       *slog.Logger
	clock     clock.Clock
	metrics   *metrics

	box      mailbox
	services []*serviceNode
	byName   map[string]*serviceNode
	graph    atomic.Pointer[snapshot] // the state that Host shows
	phase    atomic.Uint32
	started  atomic.Pointer[time.Time]
	reload   atomic.Pointer[service.Reload]
	history  history
	path     atomic.Pointer[string]
	mistake  atomic.Pointer[string]   // why the config on disk was refused; nil if it runs
	imports  atomic.Pointer[[]string] // files and directories, of the running plan

	removing   leavers
	watch      *stall.Watch // of the worker
	stalledOwn atomic.Pointer[[]string]
	hung       atomic.Int64  // questions that components have not answered in time
	playing    chan struct{} // has a value while a copy runs in a playground

	// hard ends when the shutdown timeout has passed: everything that still runs
	// must return immediately. It is stored because jobs of the worker have no
	// caller with a context.
	hard     context.Context
	hardStop context.CancelFunc
	wg       sync.WaitGroup // of everything that the engine has started except services

	// These belong to the worker, once it runs.
	watcher    *watch.Watcher // nil when nothing is watched
	plan       *plan          // the applied one
	nodes      map[string]*node
	leaving    map[string][]<-chan struct{} // by ID: nodes that were removed and are stopping
	parting    map[string]*node             // by ID: those of leaving that can be called back
	pace       pace
	churns     map[string]*churn                // by ID: foreachs and imports that change fast
	behind     map[string]bool                  // by ID: those of them that want another plan
	committing bool                             // what fails now will be announced
	undecided  bool                             // a config waits for the compilation of a script that it uses
	refused    bool                             // the config on disk is not the one that runs
	instead    *refusal                         // of the config on disk at the start, while the last good one runs since then
	keeper     *keeper                          // of the last good config; nil if it is not kept
	lastErr    string                           // what was announced last of a failure
	heads      map[string]*head                 // by ID
	folders    map[string]component.Catalog     // of import.scripts, by namespace and directory
	pollers    map[string]*poller               // by path
	packages   map[string]component.Catalog     // of remote scripts, by namespace and directory in the cache
	fetchers   map[string]*fetching             // by source
	lacking    map[string]*remoteSource         // missing sources of the config that was refused
	missed     map[string]bool                  // paths of the config that was refused
	looked     map[string]bool                  // paths of imports that are watched
	stale      bool                             // exports want another plan
	broken     []string                         // heads that have become unhealthy in this commit
	pending    map[*pendingCall]bool            // builds, updates and trials that are not waited for
	answers    map[<-chan struct{}]*pendingCall // of catalogs that the worker does not wait for
	tried      map[string]*trial                // by ID: the last trial for each node of the plan
	others     []component.Catalog              // in place of o.Catalogs while a preview is made; nil otherwise
	change     *change                          // that the worker is processing
}

// The phases of an Engine.
const (
	phaseNew = iota
	phaseStarting
	phaseReady
	phaseStopping
)

// ErrNotRunning is the error of Reload after the end of Run. Before Run, Reload
// waits.
var ErrNotRunning = errors.New("the engine does not run")

// New returns an Engine that is not running.
func New(o Options) (*Engine, error) {
	if o.Clock == nil {
		o.Clock = clock.System{}
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.ShutdownTimeout <= 0 {
		o.ShutdownTimeout = 30 * time.Second
	}
	announces := o.Announce != nil
	if !announces {
		o.Announce = func(string) {}
	}
	abs, err := filepath.Abs(o.StoragePath)
	if err != nil {
		return nil, fmt.Errorf("cannot find storage path %q: %w", o.StoragePath, err)
	}
	storage := ""
	if o.StoragePath != "" {
		storage = abs
	}
	o.StoragePath = abs
	e := &Engine{
		o: o, announces: announces, storage: storage, log: o.Logger, clock: o.Clock, metrics: newMetrics(), playing: make(chan struct{}, 1),
		nodes: map[string]*node{}, leaving: map[string][]<-chan struct{}{}, parting: map[string]*node{},
		churns: map[string]*churn{}, behind: map[string]bool{}, heads: map[string]*head{}, folders: map[string]component.Catalog{}, pollers: map[string]*poller{}, packages: map[string]component.Catalog{}, fetchers: map[string]*fetching{}, pending: map[*pendingCall]bool{}, answers: map[<-chan struct{}]*pendingCall{}, tried: map[string]*trial{},
	}
	e.change, e.history.trials = newChange(service.TriggerStart, nil), map[string]*service.Trial{}
	e.hard, e.hardStop = context.WithCancel(context.Background()) // ended by Run, after its own ctx
	e.watch = stall.New(e.clock)
	e.stalledOwn.Store(new([]string))
	e.box.init()
	e.graph.Store(&snapshot{byID: map[string]*node{}})
	if e.services, err = orderServices(o.Services); err != nil {
		return nil, err
	}
	e.byName = map[string]*serviceNode{}
	for _, s := range e.services {
		e.byName[s.def.Name] = s
	}
	if o.Registerer != nil {
		if err := o.Registerer.Register(collector{e}); err != nil {
			return nil, fmt.Errorf("cannot register the engine's metrics: %w", err)
		}
	}
	return e, nil
}

// Check returns all errors for which Run would refuse the config at path, a
// file or a directory of *.alloy files, and broken registrations of its blocks.
// Nothing is built. The Config contains the files, for Diagnostics.Write.
func (e *Engine) Check(path string) (*config.Config, config.Diagnostics) {
	cfg, ds := config.Load(path)
	p, ds := e.check(cfg, ds)
	cfg.Files = p.files
	return cfg, ds
}

// check adds the errors of Check to those of reading a config.
func (e *Engine) check(cfg *config.Config, ds config.Diagnostics) (*plan, config.Diagnostics) {
	p, more := e.makePlan(cfg, planMode{})
	return p, append(append(ds, more...), p.brokenOnes()...).Sort()
}

// brokenOnes returns the errors of the blocks whose registration is broken.
func (p *plan) brokenOnes() (ds config.Diagnostics) {
	for _, w := range p.broken {
		err := w.err
		if r, ok := errors.AsType[*refusedError](err); ok {
			err = r.err
		}
		ds = append(ds, config.Diagnostic{Span: w.block.Span, Msg: fmt.Sprintf("component %s is broken", w.reg.Name), Detail: strings.TrimSpace(err.Error())})
	}
	return ds
}

// Run applies the config at path and runs it until ctx ends. Then it stops it,
// sources first, within Options.ShutdownTimeout. The error is a
// config.Diagnostics if the config is refused, nil if everything stopped by
// itself, and a *StopError if something had to be cut short or abandoned: its
// goroutines then continue, and the process should end.
func (e *Engine) Run(ctx context.Context, path string) error {
	if !e.phase.CompareAndSwap(phaseNew, phaseStarting) {
		panic("BUG: an Engine runs once")
	}
	defer e.hardStop()
	now := e.clock.Now()
	e.started.Store(&now)
	e.path.Store(&path)
	if e.o.LastGood && e.storage != "" && lastgood.Keepable(absolute(path)) {
		e.keeper = &keeper{e: e}
	}
	fail := func(err error) error {
		e.phase.Store(phaseStopping)
		e.box.close()
		return err
	}
	var err error
	if e.watcher, err = e.newWatcher(path); err != nil {
		return fail(err)
	}
	cfg, p, err := e.loadUntil(ctx, path)
	if err != nil || ctx.Err() != nil {
		return fail(err)
	}
	stopServices, err := e.startServices(ctx, p)
	if err != nil {
		return fail(errors.Join(err, stopServices()))
	}
	// The worker outlives ctx until it has finished its current work.
	work, stopWork := context.WithCancel(context.WithoutCancel(ctx))
	defer stopWork()
	look, stopLook := context.WithCancel(context.WithoutCancel(ctx))
	looks := make(chan struct{})
	go func() {
		defer close(looks)
		e.watchStalls(look)
	}()
	defer func() {
		stopLook()
		<-looks
	}()
	idle := make(chan struct{})
	go func() {
		defer close(idle)
		e.work(work, cfg, p)
	}()
	<-ctx.Done()
	e.phase.Store(phaseStopping)
	stopWork()
	err = e.stop(idle)
	if !finishesWithin(e.clock, e.reserve()/3, func() { _ = stopServices() }) {
		e.log.Warn("a service does not return, weir stops without waiting for it")
	}
	return err
}

// loadUntil is like loadFirst, but does not wait long for it after ctx has ended.
func (e *Engine) loadUntil(ctx context.Context, path string) (*config.Config, *plan, error) {
	type result struct {
		cfg *config.Config
		p   *plan
		err error
	}
	loaded := make(chan result, 1)
	go func() {
		cfg, p, err := e.loadFirst(ctx, path)
		loaded <- result{cfg, p, err}
	}()
	select {
	case r := <-loaded:
		return r.cfg, r.p, r.err
	case <-ctx.Done():
	}
	timer := e.clock.NewTimer(e.o.ShutdownTimeout - e.reserve())
	defer timer.Stop()
	select {
	case r := <-loaded:
		return r.cfg, r.p, r.err
	case <-timer.C():
		return nil, nil, &StopError{Timeout: e.o.ShutdownTimeout, Abandoned: []string{"the engine: the config was still being loaded"}}
	}
}

// Reload reads the config again, asks the catalogs again, and makes the
// running graph what they say. It returns when that is done or refused; the
// error is then a config.Diagnostics. Nodes that stay on their last good
// version are no error. Canaries are not waited for.
func (e *Engine) Reload(ctx context.Context) error {
	_, err := e.RequestReload(ctx, false)
	return err
}

// RequestReload is Reload. It returns the records of the changes as well, and waits for
// canaries if it is told to.
func (e *Engine) RequestReload(ctx context.Context, canaries bool) ([]service.Reload, error) {
	if err := e.readAhead(ctx, maxReadAhead); err != nil {
		return nil, err
	}
	c, err := e.runAndWait(ctx, canaries, e.reloadConfig)
	if c == nil {
		return nil, err
	}
	return e.history.of(c), err
}

// FilesChanged informs the engine of changed files or directories; paths are
// absolute. It returns when the changes are applied, or with the error of
// Reload if they are refused.
func (e *Engine) FilesChanged(ctx context.Context, paths []string) error {
	if err := e.readAhead(ctx, maxReadAhead); err != nil {
		return err
	}
	_, err := e.runAndWait(ctx, false, func() error { return e.filesChanged(paths, time.Time{}) })
	return err
}

// runOnWorker lets the worker run a job and returns its error. A panic, such as in the
// Validate of a component, is an error.
func (e *Engine) runOnWorker(ctx context.Context, job func() error) error {
	done := make(chan error, 1)
	if !e.box.post(func() { done <- guard(job) }) {
		return ErrNotRunning
	}
	select {
	case err := <-done:
		return err
	case <-e.box.closed:
		return ErrNotRunning
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Ready reports whether the first config has been applied and weir has not been
// told to stop.
func (e *Engine) Ready() bool { return e.phase.Load() == phaseReady }

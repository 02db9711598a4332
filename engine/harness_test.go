package engine_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/prometheus/model/labels"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/config"
	"github.com/weir-run/weir/engine/flow"
	"github.com/weir-run/weir/engine/service"
)

// harness is an engine with fake components, whose doings it records. It lives in
// a synctest bubble: idle returns when nothing happens any more, and time
// passes when everything waits.
type harness struct {
	t        *testing.T
	dir      string
	config   string
	watch    bool // files are watched; not in a bubble
	catalog  *catalog
	services []service.Service
	options  engine.Options
	e        *engine.Engine
	registry *prometheus.Registry
	stop     context.CancelFunc
	done     chan struct{}
	err      error // of Run, once done is closed

	mu       sync.Mutex
	events   []string
	lines    []string // announced
	fakes    map[string]*fake
	onBuild  func(id string, args *arguments, o component.Options) error
	onUpdate func(id string, args *arguments) error
	onRun    func(ctx context.Context, f *fake) error
	onTake   func(f *fake, b *batch.Metrics) error
	onSaid   func(line string)
	onFolder func(c *catalog) component.Catalog // may replace a catalog of import.scripts

	world *world // may be nil; decides what test.uvalue exports in the place of its argument
}

func newHarness(t *testing.T) *harness {
	l := &harness{t: t, dir: t.TempDir(), fakes: map[string]*fake{}, registry: prometheus.NewRegistry(), done: make(chan struct{})}
	l.config = filepath.Join(l.dir, "c.alloy")
	l.catalog = newCatalog(l)
	return l
}

// bubble runs a test in a synctest bubble.
func bubble(t *testing.T, f func(l *harness)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		l := newHarness(t)
		defer func() {
			if l.stop != nil {
				l.end()
			}
		}()
		f(l)
	})
}

func (l *harness) write(config string) {
	l.t.Helper()
	replace(l.t, l.config, []byte(config))
}

// replace writes a file at once: a watcher may look at any time, and takes for
// what was meant what stays half a save for long.
func replace(t *testing.T, path string, data []byte) {
	t.Helper()
	next := filepath.Join(filepath.Dir(path), ".next~") // which no watcher asks for
	if err := errors.Join(os.WriteFile(next, data, 0o644), os.Rename(next, path)); err != nil {
		t.Fatal(err)
	}
}

func (l *harness) newEngine() *engine.Engine {
	l.t.Helper()
	o := l.options
	o.Catalogs = append([]component.Catalog{l.catalog}, o.Catalogs...)
	o.Services = l.services
	o.Registerer = l.registry
	o.StoragePath = l.dir
	o.Scripts = l.folder
	o.Version = "v1"
	if o.Logger == nil {
		o.Logger = slog.New(slog.NewTextHandler(testWriter{l.t}, nil))
	}
	o.WatchConfig = true
	o.NoWatch = !l.watch
	o.Announce = func(line string) {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.lines = append(l.lines, strings.TrimSpace(line))
		if l.onSaid != nil {
			l.onSaid(line)
		}
	}
	o.Unsupported = config.Unsupported{"remotecfg": "write a file", "test.old": "use test.source"}
	e, err := engine.New(o)
	if err != nil {
		l.t.Fatal(err)
	}
	l.e = e
	return e
}

type testWriter struct{ t *testing.T }

func (w testWriter) Write(p []byte) (int, error) {
	w.t.Log(strings.TrimSpace(string(p)))
	return len(p), nil
}

// start runs a config and returns when nothing happens any more.
func (l *harness) start(config string) {
	l.t.Helper()
	l.run(config)
	synctest.Wait()
}

// run runs a config.
func (l *harness) run(config string) {
	l.t.Helper()
	l.write(config)
	l.newEngine()
	ctx, cancel := context.WithCancel(context.Background())
	l.stop = cancel
	go func() {
		defer close(l.done)
		l.err = l.e.Run(ctx, l.config)
	}()
}

// end stops the engine and returns Run's error.
func (l *harness) end() error {
	l.stop()
	<-l.done
	return l.err
}

func (l *harness) reload(config string) error {
	l.t.Helper()
	l.write(config)
	err := l.e.Reload(context.Background())
	synctest.Wait()
	return err
}

// changed says that the catalog's files changed.
func (l *harness) changed() error {
	l.t.Helper()
	err := l.e.FilesChanged(context.Background(), []string{filepath.Join(l.dir, "scripts", "x.lua")})
	synctest.Wait()
	return err
}

func (l *harness) event(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.events = append(l.events, fmt.Sprintf(format, args...))
}

// takeEvents returns the events since it was last called, one a line.
func (l *harness) takeEvents() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	out := strings.Join(l.events, "\n")
	l.events = nil
	return out
}

// takeLines returns what was announced since it was last called. Durations are
// written as "(… ms)".
func (l *harness) takeLines() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	out := durations.ReplaceAllString(strings.Join(l.lines, "\n"), "(… ms)")
	l.lines = nil
	return strings.ReplaceAll(out, l.dir+string(filepath.Separator), "")
}

func (l *harness) fake(id string) *fake {
	l.t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	f := l.fakes[id]
	if f == nil {
		l.t.Fatalf("no component was built for %s", id)
	}
	return f
}

func (l *harness) info(id string) service.Info {
	l.t.Helper()
	for _, i := range l.e.ListComponents() {
		if i.ID == id {
			return i
		}
	}
	l.t.Fatalf("no node %s", id)
	return service.Info{}
}

func (l *harness) wantHealth(id string, state component.HealthState, message string) {
	l.t.Helper()
	h := l.info(id).Health
	if h.State != state || !strings.Contains(h.Message, message) {
		l.t.Errorf("%s is %s %q, want %s with %q", id, h.State, h.Message, state, message)
	}
}

func (l *harness) wantEvents(want string) {
	l.t.Helper()
	if got := l.takeEvents(); got != want {
		l.t.Errorf("got events:\n%s\nwant:\n%s", got, want)
	}
}

func (l *harness) wantSaid(want string) {
	l.t.Helper()
	if got := l.takeLines(); got != want {
		l.t.Errorf("announced:\n%s\nwant:\n%s", got, want)
	}
}

// arguments are those of all fakes.
type arguments struct {
	Value     string            `alloy:"value,attr,optional"`
	Number    int               `alloy:"number,attr,optional"`
	ForwardTo []*flow.Receiver  `alloy:"forward_to,attr,optional"`
	Labels    map[string]string `alloy:"labels,attr,optional"`
	Rebuild   bool              `alloy:"rebuild,attr,optional"` // Update wants a rebuild
}

func (a *arguments) Validate() error {
	if a.Value == "panic in Validate" {
		panic("oh no")
	}
	if a.Value == "invalid" {
		return errors.New("value must not be \"invalid\"")
	}
	return nil
}

type receiverExports struct {
	Receiver *flow.Receiver `alloy:"receiver,attr"`
}

type valueExports struct {
	Value  string            `alloy:"value,attr"`
	Labels map[string]string `alloy:"labels,attr"`
}

type secretExports struct {
	Value component.Secret `alloy:"value,attr"`
}

// fake is every component of the tests.
type fake struct {
	l    *harness
	id   string
	o    component.Options
	mu   sync.Mutex
	args *arguments
	out  *flow.Output
}

// kind is the last part of the block's name.
func (f *fake) kind() string {
	name := path.Base(f.id)
	name = name[:max(strings.LastIndexByte(name, '.'), 0)]
	return name[strings.LastIndexByte(name, '.')+1:]
}

func (f *fake) set(a *arguments) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.args = a
	f.out = flow.NewOutput(f.o.Stats, a.ForwardTo)
}

func (f *fake) get() (*arguments, *flow.Output) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.args, f.out
}

func (f *fake) Run(ctx context.Context) error {
	f.l.event("run %s", f.id)
	f.l.mu.Lock()
	run := f.l.onRun
	f.l.mu.Unlock()
	if run != nil {
		if err := run(ctx, f); err != nil || ctx.Err() == nil {
			f.l.event("returned %s", f.id)
			return err
		}
	}
	<-ctx.Done()
	if errors.Is(context.Cause(ctx), component.ErrReplaced) {
		f.l.event("replaced %s", f.id)
	} else {
		f.l.event("stop %s", f.id)
	}
	return nil
}

// updatable is a fake with Update.
type updatable struct{ *fake }

func (f updatable) Update(args any) error {
	a := args.(*arguments)
	f.l.event("update %s", f.id)
	f.l.mu.Lock()
	update := f.l.onUpdate
	f.l.mu.Unlock()
	if update != nil {
		if err := update(f.id, a); err != nil {
			return err
		}
	}
	switch {
	case a.Value == "cannot update":
		return errors.New("value does not please me")
	case a.Value == "panic in update":
		panic("oh no")
	case a.Rebuild:
		return component.ErrRebuild
	}
	f.set(a)
	if f.kind() == "uvalue" {
		f.exportValue(a)
	}
	return nil
}

// exportValue exports what a test.uvalue has in its arguments, or as the test has it.
func (f *fake) exportValue(a *arguments) {
	x := valueExports{Value: a.Value, Labels: a.Labels}
	if w := f.l.world; w != nil {
		w.mu.Lock()
		defer w.mu.Unlock()
		if v, ok := w.values[strings.TrimPrefix(f.id, "test.uvalue.")]; ok {
			x.Value = v
		}
	}
	f.o.Export(x)
}

// upass is pass with Update.
type upass struct{ pass }

func (f upass) Update(args any) error { return updatable{f.fake}.Update(args) }

// Sourced returns the value, if it is a path.
func (f updatable) Sourced() []string {
	if a, _ := f.get(); filepath.IsAbs(a.Value) {
		return []string{a.Value}
	}
	return nil
}

// pass sends on what it gets.
type pass struct{ *fake }

func (f pass) ConsumeMetrics(ctx context.Context, b *batch.Metrics) error {
	f.l.mu.Lock()
	take := f.l.onTake
	f.l.mu.Unlock()
	if take != nil {
		if err := take(f.fake, b); err != nil {
			return err
		}
	}
	_, out := f.get()
	return out.SendMetrics(ctx, b)
}

// catalog has the fakes: test.source, test.pass, test.sink, test.logs,
// test.value, and their variants with Update: test.usource, test.upass,
// test.uvalue; test.either passes the signal that is its value.
type catalog struct {
	l     *harness
	mu    sync.Mutex
	regs  map[string]component.Registration
	gone  map[string]component.Registration // those of Removed
	roots []string

	refresh func()
}

func newCatalog(l *harness) *catalog {
	c := &catalog{l: l, regs: map[string]component.Registration{}}
	c.add(component.Registration{Name: "test.source", Sends: batch.SignalMetrics})
	c.add(component.Registration{Name: "test.usource", Sends: batch.SignalMetrics})
	c.add(component.Registration{Name: "test.pass", Accepts: batch.SignalMetrics, Sends: batch.SignalMetrics, Exports: receiverExports{}})
	c.add(component.Registration{Name: "test.upass", Accepts: batch.SignalMetrics, Sends: batch.SignalMetrics, Exports: receiverExports{}})
	c.add(component.Registration{Name: "test.sink", Accepts: batch.SignalMetrics, Exports: receiverExports{}})
	c.add(component.Registration{Name: "test.logs", Accepts: batch.SignalLogs, Exports: receiverExports{}})
	c.add(component.Registration{Name: "test.either", Accepts: bothSignals, Sends: bothSignals, Passes: passes, Exports: receiverExports{}})
	c.add(component.Registration{Name: "test.stream_source", Sends: batch.SignalLogs})
	c.add(component.Registration{Name: "test.value", Exports: valueExports{}})
	c.add(component.Registration{Name: "test.uvalue", Exports: valueExports{}})
	c.add(component.Registration{Name: "test.one", Unique: true})
	return c
}

const bothSignals = batch.SignalMetrics | batch.SignalLogs

func passes(args any) (batch.Signals, string) {
	switch a := args.(*arguments); a.Value {
	case "metrics":
		return batch.SignalMetrics, "value says metrics"
	case "logs":
		return batch.SignalLogs, "value says logs"
	}
	return bothSignals, ""
}

// add adds or replaces a registration; what it does is a fake's.
func (c *catalog) add(r component.Registration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if r.Err == nil {
		r.NewArgs = func() any { return &arguments{} }
		r.Build = c.l.build
	}
	c.regs[r.Name] = r
}

func (c *catalog) remove(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.regs, name)
}

func (l *harness) build(o component.Options, args any, _ component.Component) (component.Component, error) {
	f := &fake{l: l, id: o.ID, o: o}
	a := args.(*arguments)
	l.event("build %s", o.ID)
	l.mu.Lock()
	build := l.onBuild
	l.mu.Unlock()
	if build != nil {
		if err := build(o.ID, a, o); err != nil {
			return nil, err
		}
	}
	switch a.Value {
	case "cannot build":
		o.Export(valueExports{Value: "of a failed build"})
		return nil, errors.New("value does not please me")
	case "panic in build":
		panic("oh no")
	}
	f.set(a)
	l.mu.Lock()
	l.fakes[o.ID] = f
	l.mu.Unlock()
	switch f.kind() {
	case "pass", "sink", "either", "pure":
		return pass{f}, nil
	case "upass":
		return upass{pass{f}}, nil
	case "usource":
		return updatable{f}, nil
	case "value":
		o.Export(valueExports{Value: a.Value, Labels: a.Labels})
	case "uvalue":
		f.exportValue(a)
		return updatable{f}, nil
	}
	return f, nil
}

func (c *catalog) Lookup(name string) (component.Registration, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	r, ok := c.regs[name]
	return r, ok
}

// Removed returns what a test has put into gone.
func (c *catalog) Removed(name string) (component.Registration, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	r, ok := c.gone[name]
	return r, ok
}

func (c *catalog) Names() (names []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for n := range c.regs {
		names = append(names, n)
	}
	slices.Sort(names)
	return names
}

func (c *catalog) Roots() []string { return c.roots }

func (c *catalog) Refresh([]string) {
	c.mu.Lock()
	refresh := c.refresh
	c.mu.Unlock()
	if refresh != nil {
		refresh()
	}
}

// folder is a catalog of a folder's files: x/y.lua is x.y, a test.pass whose
// version is what is in the file; "broken" breaks it.
func (l *harness) folder(namespace, dir string) (component.Catalog, error) {
	c := &catalog{l: l, roots: []string{dir}}
	c.refresh = func() {
		c.mu.Lock()
		c.regs = map[string]component.Registration{}
		c.mu.Unlock()
		files, _ := filepath.Glob(filepath.Join(dir, "*", "*.lua"))
		for _, file := range files {
			text, _ := os.ReadFile(file)
			rel, _ := filepath.Rel(dir, file)
			r := component.Registration{Name: strings.TrimPrefix(namespace+"."+strings.ReplaceAll(strings.TrimSuffix(rel, ".lua"), string(filepath.Separator), "."), "."), Version: strings.TrimSpace(string(text)), Sources: []string{file},
				Accepts: batch.SignalMetrics, Sends: batch.SignalMetrics, Exports: receiverExports{}}
			if strings.Contains(string(text), "broken") {
				r = component.Registration{Name: r.Name, Sources: r.Sources, Err: errors.New("it is broken")}
			}
			c.add(r)
		}
	}
	c.refresh()
	if l.onFolder != nil {
		return l.onFolder(c), nil
	}
	return c, nil
}

// samples returns a batch of n samples.
func samples(n int) *batch.Metrics {
	b := &batch.Metrics{Source: 1}
	for i := range n {
		b.Series = append(b.Series, batch.FromLabels(labels.FromStrings("__name__", "m", "i", fmt.Sprint(i))))
		b.T = append(b.T, int64(i))
		b.V = append(b.V, float64(i))
	}
	return b
}

var durations = regexp.MustCompile(`\(\d+ ms(: [^)]*)?\)`)

type batchSignals = batch.Signals

const (
	metricsSignal = batch.SignalMetrics
	logsSignal    = batch.SignalLogs
)

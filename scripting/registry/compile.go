package registry

import (
	"context"
	"fmt"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/scripting"
)

const (
	// compilePatience is for how long a lookup waits in a weir that runs. It waits less
	// while other scripts compile for longer than that, so that many of them delay the
	// engine's worker about twice as long as one.
	compilePatience    = 250 * time.Millisecond
	minCompilePatience = 5 * time.Millisecond
	// maxOverdue is how many compilations may go on behind their time. Nothing can
	// stop one, so each has a core for itself until it ends.
	maxOverdue = 4
)

// Compilers bound the compilations of a process, and how many scripts run their
// tests at once. They are safe for concurrent use.
type Compilers struct {
	limit    time.Duration
	testing  chan struct{} // holds a value for each script whose tests run
	shadows  chan struct{} // holds a value for each version that processes recent input
	reports  chan struct{} // holds a value while tests run for somebody
	running  atomic.Int64  // behind their time
	slow     atomic.Int64  // those that lookups did not wait for, until they are done or behind their time
	overdue  prometheus.GaugeFunc
	timeouts prometheus.Counter
}

// NewCompilers returns compilers that let each script take no longer than limit,
// CompileTime if it is 0.
func NewCompilers(limit time.Duration) *Compilers {
	if limit == 0 {
		limit = scripting.CompileTime
	}
	p := &Compilers{limit: limit, testing: make(chan struct{}, runtime.GOMAXPROCS(0)), shadows: make(chan struct{}, max(1, runtime.GOMAXPROCS(0)/2)), reports: make(chan struct{}, 1)}
	p.overdue = prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "weir_script_compilations_overdue", Help: "Compilations of scripts that took too long and were abandoned, but still run.",
	}, func() float64 { return float64(p.running.Load()) })
	p.timeouts = prometheus.NewCounter(prometheus.CounterOpts{
		Name: "weir_script_compile_timeouts_total", Help: "Compilations of scripts that were abandoned because they took too long.",
	})
	return p
}

// Collectors are the metrics of the compilers.
func (p *Compilers) Collectors() []prometheus.Collector {
	return []prometheus.Collector{p.overdue, p.timeouts}
}

// test runs the tests of a script when few other scripts run theirs.
func (p *Compilers) test(ctx context.Context, run func() error) error {
	return runBounded(ctx, p.testing, run)
}

// shadow has a version process recent input when few other versions do: half of the
// cores are left for the running versions.
func (p *Compilers) shadow(ctx context.Context, run func() error) error {
	return runBounded(ctx, p.shadows, run)
}

func runBounded(ctx context.Context, slots chan struct{}, run func() error) error {
	select {
	case slots <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	defer func() { <-slots }()
	return run()
}

// compilation compiles one version of a script on a goroutine of its own.
type compilation struct {
	file   scripting.File
	deps   *dependencies
	done   chan struct{} // closed when script and err are set
	late   chan struct{} // closed when it has taken too long
	script *entry
	err    error

	pending *component.PendingError // set, under the catalog's mu, when a lookup did not wait for it
}

// outcome returns copies of the script and of what it depends on, once done is closed:
// several lookups may take them.
func (j *compilation) outcome() (*entry, *dependencies, error) {
	if j.err != nil {
		return nil, j.deps.clone(), j.err
	}
	s := *j.script
	return &s, j.deps.clone(), nil
}

// begin begins to compile a script.
func (c *catalog) begin(name string, f scripting.File, deps *dependencies, probe *scripting.Probe) (*compilation, error) {
	p := c.o.Compilers
	if p.running.Load() >= maxOverdue {
		return nil, fmt.Errorf("cannot compile %s: %d scripts still compile after more than %s each; make those smaller and restart weir", f.Name, maxOverdue, p.limit)
	}
	j := &compilation{file: f, deps: deps, done: make(chan struct{}), late: make(chan struct{})}
	over := make(chan bool, 1)
	timer := time.AfterFunc(p.limit, func() {
		p.timeouts.Inc()
		p.running.Add(1)
		close(j.late)
		over <- true
	})
	go func() {
		defer func() {
			if v := recover(); v != nil {
				j.err = f.Error(0, scripting.HookLoad, fmt.Errorf("BUG: the compiler panicked: %v", v))
			}
			if !timer.Stop() {
				<-over
				p.running.Add(-1)
			}
			close(j.done)
		}()
		j.script, j.err = c.compileNow(name, f, deps, probe)
		nameScript(j.err, name)
	}()
	return j, nil
}

// tooLate is the error of a compilation that was abandoned.
func (c *catalog) tooLate(f scripting.File) error {
	return f.Error(0, scripting.HookLoad, fmt.Errorf("compiling %s took longer than %s: make it smaller, or move data into a .json", f.Name, c.o.Compilers.limit))
}

// compile compiles a script, within the time that it may take.
func (c *catalog) compile(name string, f scripting.File, deps *dependencies, probe *scripting.Probe) (*entry, error) {
	j, err := c.begin(name, f, deps, probe)
	if err != nil {
		return nil, err
	}
	select {
	case <-j.late:
		return nil, c.tooLate(f)
	case <-j.done:
		return j.script, j.err
	}
}

// compiled is compile for a lookup. Once somebody wants to be told of what changes (see
// OnChange), it waits for a moment only: what it gave up waiting for is there at a later
// lookup. It returns what the script depends on, as far as that is known.
func (c *catalog) compiled(name string, f scripting.File, deps *dependencies) (*entry, *dependencies, error) {
	known := deps.clone() // deps become the compilation's
	for {
		j, joined, err := c.join(name, f, deps)
		if err != nil {
			return nil, known, err
		}
		pending := c.wait(j)
		if pending != nil {
			return nil, known, f.Error(0, scripting.HookLoad, pending)
		}
		c.mu.Lock()
		if c.compiling[name] == j {
			delete(c.compiling, name)
		}
		c.mu.Unlock()
		select {
		case <-j.done:
		default:
			return nil, known, c.tooLate(f)
		}
		if joined && !c.current(j) {
			continue
		}
		return j.outcome()
	}
}

// join returns the compilation of a script's text that another lookup began, or begins
// one.
func (c *catalog) join(name string, f scripting.File, deps *dependencies) (j *compilation, joined bool, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if j := c.compiling[name]; j != nil && j.file == f {
		return j, true, nil
	}
	delete(c.compiling, name)
	if j, err = c.begin(name, f, deps.clone(), c.o.Probe); err == nil {
		c.compiling[name] = j
	}
	return j, false, err
}

// wait returns nil when a compilation is done or behind its time, and an error when it
// has waited for long enough. A compilation that a lookup gave up waiting for is not
// waited for again.
func (c *catalog) wait(j *compilation) *component.PendingError {
	changed, p := c.onChange(), c.o.Compilers
	if changed == nil {
		select {
		case <-j.done:
		case <-j.late:
		}
		return nil
	}
	patience := max(compilePatience>>min(p.slow.Load(), 8), minCompilePatience)
	c.mu.Lock()
	if j.pending != nil {
		patience = 0
	}
	c.mu.Unlock()
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-j.done:
		return nil
	case <-j.late:
		return nil
	case <-timer.C:
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	select { // the timer of 0 may have been first
	case <-j.done:
		return nil
	case <-j.late:
		return nil
	default:
	}
	if j.pending == nil {
		told := make(chan struct{})
		j.pending = &component.PendingError{
			What: "the compilation of " + j.file.Name, Done: told,
			Err: fmt.Errorf("compiling %s takes longer than %s: it goes on, and this version is used if it is done within %s", j.file.Name, patience, p.limit),
		}
		p.slow.Add(1)
		go func() {
			defer close(told)
			select {
			case <-j.done:
			case <-j.late:
			}
			p.slow.Add(-1)
			paths := []string{} // nil would mean all
			if j.file.Path != "" {
				paths = append(paths, j.file.Path)
			}
			changed(paths)
		}()
	}
	return j.pending
}

// current reports whether a compilation that is done has read the files as they are now.
func (c *catalog) current(j *compilation) bool {
	for _, m := range j.deps.modules {
		if m.Path == "" {
			continue
		}
		if now, err := c.readSoon(location{rel: c.rel(m)}); err != nil || now.Text != m.Text {
			return false
		}
	}
	for _, f := range j.deps.failed {
		if _, err := c.readSoon(f.at); err == nil || err.Error() != f.err.Error() {
			return false
		}
	}
	return true
}

package registry

import (
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/weir-run/weir/scripting"
)

const (
	// compilePatience is for how long a lookup waits in a weir that runs.
	compilePatience = time.Second
	// maxOverdue is how many compilations may go on behind their time. Nothing can
	// stop one, so each has a core for itself until it ends.
	maxOverdue = 4
)

// Compilers bound the compilations of a process. They are safe for concurrent
// use.
type Compilers struct {
	limit    time.Duration
	patience time.Duration
	running  atomic.Int64 // behind their time
	overdue  prometheus.GaugeFunc
	timeouts prometheus.Counter
}

// NewCompilers returns compilers that let each script take no longer than limit,
// CompileTime if it is 0.
func NewCompilers(limit time.Duration) *Compilers {
	if limit == 0 {
		limit = scripting.CompileTime
	}
	p := &Compilers{limit: limit, patience: min(limit, compilePatience)}
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

// compilation compiles one version of a script on a goroutine of its own.
type compilation struct {
	file   scripting.File
	deps   *dependencies
	done   chan struct{} // closed when script and err are set
	late   chan struct{} // closed when it has taken too long
	script *entry
	err    error
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

// compiled is compile for a lookup, with c.mu held; it is let go of while this
// waits. Once somebody wants to be told of what changes (see OnChange), it waits
// for a second only: what it gave up waiting for is there at a later lookup. It
// returns what the script depends on, as far as that is known.
func (c *catalog) compiled(name string, f scripting.File, deps *dependencies) (*entry, *dependencies, error) {
	known := &dependencies{c: c, embedded: deps.embedded, own: deps.own, paths: slices.Clone(deps.paths)} // deps may remain the compilation's
	j := c.compiling[name]
	delete(c.compiling, name)
	if j == nil || !c.current(j, f) {
		var err error
		if j, err = c.begin(name, f, deps, c.o.Probe); err != nil {
			return nil, known, err
		}
	}
	changed, patience := c.changed, c.o.Compilers.patience
	if changed == nil {
		patience = 2 * c.o.Compilers.limit // it is late before
	}
	timer := time.NewTimer(patience)
	defer timer.Stop()
	c.mu.Unlock()
	defer c.mu.Lock()
	select {
	case <-j.late:
		return nil, known, c.tooLate(f)
	default:
	}
	select {
	case <-j.done:
		return j.script, j.deps, j.err
	case <-j.late:
		return nil, known, c.tooLate(f)
	case <-timer.C:
	}
	c.mu.Lock()
	c.compiling[name] = j
	c.mu.Unlock()
	go func() {
		select {
		case <-j.done:
		case <-j.late:
		}
		changed([]string{f.Path})
	}()
	return nil, known, f.Error(0, scripting.HookLoad, fmt.Errorf("compiling %s takes longer than %s: it goes on, and this version is used if it is done within %s", f.Name, patience, c.o.Compilers.limit))
}

// current reports whether a compilation is one of the files as they are now.
func (c *catalog) current(j *compilation, f scripting.File) bool {
	if j.file != f {
		return false
	}
	select {
	case <-j.done:
	default:
		return true // whoever waits is told when it is done or late, and looks once more
	}
	for _, m := range j.deps.modules {
		if m.Path == "" {
			continue
		}
		if now, err := c.readSoon(location{rel: c.rel(m)}); err != nil || now.Text != m.Text {
			return false
		}
	}
	return true
}

// OnChange has the catalog call fn with the paths of files, of which a lookup has
// a new answer although they did not change: one that took long to compile is
// done. From then on lookups do not wait for such a file.
func (c *catalog) OnChange(fn func(paths []string)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.changed = fn
}

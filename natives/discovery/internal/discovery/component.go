package discovery

import (
	"context"
	"fmt"
	"log/slog"
	"reflect"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/common/config"
	sd "github.com/prometheus/prometheus/discovery"
	"github.com/prometheus/prometheus/discovery/targetgroup"

	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/httpclient"
)

// Exports of all discovery components.
type Exports struct {
	// The targets found, as maps of labels. __address__ is the address to scrape;
	// __meta_… are metadata about the target.
	Targets []map[string]string `alloy:"targets,attr"`
}

// Kind is a kind of discovery.
type Kind struct {
	// Config returns Prometheus's configuration for decoded arguments.
	Config func(args any) (sd.Config, error)
	// Files returns the absolute paths, or patterns, of the files that require a
	// new discoverer when they change. It may be nil.
	Files func(args any) []string
	// Rereads returns the files, absolute, that a discoverer reads again by itself.
	// nil for none.
	Rereads func(args any) []string

	// Stream is true if an update of the discoverer contains only some sources.
	// Otherwise, each update contains all sources.
	Stream bool
	// Forget is the time without errors after which a stream counts as healthy
	// again. It must be longer than the time until an attempt fails. A stream
	// only reports errors, not success.
	Forget time.Duration
	// Failures is the name of a Prometheus counter of errors that are not logged
	// to the given logger. It may be empty.
	Failures string
}

const (
	// pause is the minimum time between two exports.
	pause = 250 * time.Millisecond
	// quiet is how long a stream must send nothing until its initial list counts
	// as complete, and settled is the maximum time until then.
	quiet   = time.Second
	settled = 10 * time.Second
	// look is the interval at which a stream is checked.
	look = time.Second
	// again is the time after which a stream whose update was refused is
	// restarted.
	again = time.Minute
	// grace is how long weir waits for a stopped discoverer. That of Consul
	// sleeps up to 15 s or its refresh interval before it notices that it was
	// stopped.
	grace = 2 * time.Second
)

// Component is a discovery component.
type Component struct {
	opts    component.Options
	kind    Kind
	metrics *metrics
	set     *Set // used by Run
	failed  failures

	changed chan struct{} // has a value if next was set

	mu    sync.Mutex
	args  any // the arguments of next, or of the last discoverer
	next  *discoverer
	files []string
	// digest is that of the files that need a new discoverer. Only kinds with Rereads
	// have it.
	digest string
	info   Info
}

var (
	_ component.Component = (*Component)(nil)
	_ component.Updater   = (*Component)(nil)
	_ component.Sourced   = (*Component)(nil)
	_ component.Debugger  = (*Component)(nil)
)

// New returns a Component that continues previous, which may be nil; args are
// decoded and valid.
func New(o component.Options, kind Kind, args any, previous component.Component) (*Component, error) {
	c := &Component{opts: o, kind: kind, set: new(Set), changed: make(chan struct{}, 1)}
	if p, ok := previous.(*Component); ok { // its Run ends before the Run of this one begins
		c.set, c.metrics = p.set, p.metrics
	}
	if err := c.Update(args); err != nil {
		return nil, err
	}
	if err := c.metrics.register(o.Registerer); err != nil {
		return nil, err
	}
	return c, nil
}

// Update makes a new discoverer, unless nothing changed but files that the one that
// runs reads again by itself. Its targets stay until the new one has answered.
func (c *Component) Update(args any) error {
	cfg, err := c.kind.Config(args)
	if err != nil {
		return err
	}
	var needing, rereads []string
	digest := ""
	if c.kind.Files != nil {
		needing = c.kind.Files(args)
	}
	if c.kind.Rereads != nil {
		rereads, digest = c.kind.Rereads(args), httpclient.Digest(needing)
		c.mu.Lock()
		same := c.args != nil && c.digest == digest && reflect.DeepEqual(c.args, args)
		c.mu.Unlock()
		if same {
			return nil
		}
	}
	if c.metrics == nil {
		if c.metrics, err = newMetrics(cfg); err != nil {
			return err
		}
	}
	d := &discoverer{up: make(chan []*targetgroup.Group)}
	log := slog.New(listener{Handler: c.opts.Logger.Handler(), failed: c.fail, deaf: &d.stopped})
	d.Discoverer, err = cfg.NewDiscoverer(sd.DiscovererOptions{
		Logger:            log,
		Metrics:           c.metrics.theirs,
		HTTPClientOptions: []config.HTTPClientOption{config.WithUserAgent(c.opts.UserAgent), httpclient.ReadReferences()},
		SetName:           c.opts.ID,
	})
	if err != nil {
		return fmt.Errorf("cannot set up discovery %s: %w", cfg.Name(), err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.next, c.args, c.digest = d, args, digest
	c.files = slices.Concat(needing, rereads)
	select {
	case c.changed <- struct{}{}:
	default:
	}
	return nil
}

// Sourced returns the files that the discoverer reads.
func (c *Component) Sourced() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.files
}

// discoverer is a discoverer of Prometheus.
type discoverer struct {
	sd.Discoverer
	up      chan []*targetgroup.Group
	cancel  context.CancelFunc
	stopped atomic.Bool
}

// Info is the result of DebugInfo.
type Info struct {
	Targets    int       `json:"targets"`
	Groups     int       `json:"groups"`
	LastUpdate time.Time `json:"last_update,omitzero"`
	LastError  string    `json:"last_error,omitempty"`
}

// DebugInfo returns an Info.
func (c *Component) DebugInfo() any {
	c.mu.Lock()
	defer c.mu.Unlock()
	info := c.info
	info.LastError = component.HideURLs(c.failed.current())
	return info
}

// fail records an error of the discoverer. Any goroutine may call it. It reports
// whether the error is to be logged.
func (c *Component) fail(text string, part bool) (news bool) {
	c.metrics.errors.Inc()
	news = c.failed.addError(text, part && !c.kind.Stream, c.opts.Clock.Now())
	c.reportUnhealthy(text)
	return news
}

func (c *Component) reportUnhealthy(text string) {
	c.report(component.Unhealthy, "cannot discover all targets: "+text)
}

func (c *Component) report(state component.HealthState, msg string) {
	c.opts.Health(component.Health{State: state, Message: msg, Time: c.opts.Clock.Now()})
}

// start runs d until it is stopped. If it panics, the error is sent to done.
func (d *discoverer) start(ctx context.Context, wg *sync.WaitGroup, done chan<- error) {
	ctx, d.cancel = context.WithCancel(ctx)
	wg.Go(func() {
		err := errEnded
		defer func() {
			if v := recover(); v != nil {
				err = fmt.Errorf("the discovery panicked: %v\n%s", v, debug.Stack())
			}
			if ctx.Err() != nil {
				return // it was stopped
			}
			select {
			case done <- err:
			default:
			}
		}()
		d.Run(ctx, d.up)
	})
}

func (d *discoverer) stop() {
	d.stopped.Store(true)
	d.cancel()
}

package node

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weir-run/weir/engine/clock"
	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/scripting"
	"github.com/weir-run/weir/scripting/host"
	"github.com/weir-run/weir/scripting/state"
)

// maintainInterval is the interval at which persistent state is synced. If the
// machine crashes, the changes of this time are lost.
const maintainInterval = time.Second

// migrateTime is the time limit of migrate, which may have to read a million
// entries.
const migrateTime = 10 * time.Second

// allState is the shared limit for the state of all nodes in the process.
var allState state.Share

// nodeState is the state of a node, which its instances share. A nil nodeState
// has no state.
type nodeState struct {
	store  *state.Store
	onDisk bool        // there is a storage path
	keeps  atomic.Bool // some of it is persistent

	mu     sync.Mutex
	loaded bool       // the state on disk has been read
	newest *Component // the component that last took the state

	troubleMu sync.Mutex
	trouble   error      // error of the disk
	shown     *Component // the component whose health shows it
}

func newNodeState(o component.Options) *nodeState {
	n := &nodeState{onDisk: o.StoragePath != ""}
	so := state.Options{Node: o.ID, Logger: o.Logger, Trouble: n.reportDisk, Total: &allState}
	if n.onDisk {
		so.Dir = state.Dir(o.StoragePath, o.ID)
	}
	n.store = state.New(so)
	return n
}

// keepState returns the node's state. It creates it if it is needed for the
// first time.
func (m *memory) keepState(o component.Options, needed bool) *nodeState {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.state == nil && needed {
		m.state = newNodeState(o)
		m.metrics.more = append(m.metrics.more, stateCollector{m.state.store})
	}
	return m.state
}

// prepareState prepares ctx.state of the VMs. It is connected when the state is
// taken: at the end of the build, or once the node runs if the state is on disk
// and has not been read yet. No batch is admitted before.
func (c *Component) prepareState() {
	decls := c.script.Definition.State
	if c.state = c.mem.keepState(c.opts, len(decls) > 0); c.state == nil {
		return
	}
	persistent := false
	for _, d := range decls {
		c.slots = append(c.slots, &host.StateSlot{Decl: d})
		persistent = persistent || d.Persistent
	}
	n := c.state
	n.mu.Lock()
	defer n.mu.Unlock()
	n.store.Limit(int64(c.block.Limits.State))
	c.stateLater = n.onDisk && persistent && !n.loaded
	if c.stateLater {
		c.admission.wait()
	}
}

// takeState applies the declarations to the node's state, after a migration if
// they changed.
func (c *Component) takeState(ctx context.Context) error {
	n := c.state
	if n == nil {
		return nil
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if c.stateLater && !n.loaded {
		if err := n.store.Load(); err != nil {
			return err
		}
	}
	n.loaded = true
	def := c.script.Definition
	decls := make([]state.Decl, len(def.State))
	for i, s := range def.State {
		decls[i] = s.Decl
	}
	now := c.opts.Clock.Now().UnixMilli()
	p := n.store.Plan(decls, def.Version, def.Migrate, now)
	for i, s := range c.slots {
		s.Collection = p.Collections[i]
	}
	if n.newest != nil && n.newest.instance.number > c.instance.number {
		return nil // this component was replaced before it began
	}
	if p.Changed && def.Migrate {
		if err := c.migrate(ctx, p); err != nil {
			return err
		}
	}
	p.Commit(now)
	n.newest = c
	n.keeps.Store(n.store.Persistent())
	return nil
}

// migrate calls the hook migrate(old_state, old_version, ctx), which fills
// ctx.state.
func (c *Component) migrate(ctx context.Context, p *state.Plan) error {
	w, err := c.pools.shared.get(ctx)
	if err != nil {
		return err
	}
	defer c.pools.put(w)
	old := host.OldState(c.host(w), p.Old)
	_, err = c.newCall(ctx, w, c.newTerms(ctx)).hook(&scripting.Hook{Name: scripting.HookMigrate, Args: []scripting.Value{old, p.OldVersion}})
	if err != nil {
		return fmt.Errorf("cannot migrate the state of version %d: %w", p.OldVersion, err)
	}
	return nil
}

// openState loads the state from disk, with retries until it succeeds.
func (c *Component) openState(ctx context.Context) bool {
	for backoff := minSetupBackoff; c.stateLater; backoff = min(2*backoff, maxSetupBackoff) {
		err := c.takeState(ctx)
		if err == nil {
			break
		}
		if ctx.Err() != nil {
			return false
		}
		c.health.set(aspectState, component.Health{
			State: component.Unhealthy, Time: c.opts.Clock.Now(),
			Message: err.Error() + "\nno batch is let in until the state is there; it is tried again",
		})
		if clock.Sleep(ctx, c.opts.Clock, backoff) != nil {
			return false
		}
	}
	c.state.showTrouble(c)
	return true
}

// reportDisk is called when the disk fails, and when it works again. The node
// stays healthy, because restarting weir would lose the state.
func (n *nodeState) reportDisk(err error) {
	n.troubleMu.Lock()
	defer n.troubleMu.Unlock()
	n.trouble = err
	if n.shown != nil {
		n.show(n.shown)
	}
}

// showTrouble selects c as the component whose health shows errors of the disk.
func (n *nodeState) showTrouble(c *Component) {
	if n == nil {
		return
	}
	n.troubleMu.Lock()
	defer n.troubleMu.Unlock()
	if n.shown == nil || n.shown.instance.number < c.instance.number {
		n.shown = c
	}
	n.show(c)
}

// show is called with troubleMu held.
func (n *nodeState) show(c *Component) {
	h := component.Health{State: component.Healthy, Time: c.opts.Clock.Now()}
	if n.trouble != nil {
		h.Message = "degraded: " + n.trouble.Error()
	}
	c.health.set(aspectState, h)
}

// flush writes the changes of a call.
func (n *nodeState) flush() {
	if n != nil && n.keeps.Load() {
		n.store.Flush()
	}
}

// maintain maintains the state on disk until ctx ends.
func (n *nodeState) maintain(ctx context.Context, c clock.Clock) {
	if n == nil || !n.onDisk {
		return
	}
	t := c.NewTimer(maintainInterval)
	defer t.Stop()
	for {
		n.store.Maintain()
		if !n.store.Persistent() {
			return // the state on disk was removed
		}
		select {
		case <-ctx.Done():
			return
		case <-t.C():
			t.Reset(maintainInterval)
		}
	}
}

// stateCollector collects the metrics of a node's state.
type stateCollector struct{ store *state.Store }

var (
	stateEntries = prometheus.NewDesc("weir_script_state_entries", "Entries of the script's state.", []string{"state"}, nil)
	stateBytes   = prometheus.NewDesc("weir_script_state_bytes", "Memory of the entries of the script's state, in bytes.", []string{"state"}, nil)
	stateEvicted = prometheus.NewDesc("weir_script_state_entries_evicted_total", "Entries of the script's state that went for want of room.", []string{"state"}, nil)
	stateRefused = prometheus.NewDesc("weir_script_state_entries_refused_total", "Entries that the script's state did not take: it was full, or they were too large.", []string{"state"}, nil)
	stateWritten = prometheus.NewDesc("weir_script_state_written_bytes_total", "Persistent state written to disk, in bytes.", nil, nil)
)

// Describe sends the metrics' descriptions.
func (s stateCollector) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{stateEntries, stateBytes, stateEvicted, stateRefused, stateWritten} {
		to <- d
	}
}

// Collect sends the metrics.
func (s stateCollector) Collect(to chan<- prometheus.Metric) {
	for _, c := range s.store.All() {
		name, f := c.Decl().Name, c.Stats()
		to <- prometheus.MustNewConstMetric(stateEntries, prometheus.GaugeValue, float64(f.Entries), name)
		to <- prometheus.MustNewConstMetric(stateBytes, prometheus.GaugeValue, float64(f.Bytes), name)
		to <- prometheus.MustNewConstMetric(stateEvicted, prometheus.CounterValue, float64(f.Evicted), name)
		to <- prometheus.MustNewConstMetric(stateRefused, prometheus.CounterValue, float64(f.Refused), name)
	}
	to <- prometheus.MustNewConstMetric(stateWritten, prometheus.CounterValue, float64(s.store.Written()))
}

// expire removes expired entries that are not accessed.
func (n *nodeState) expire(now time.Time) {
	if n == nil {
		return
	}
	for _, c := range n.store.All() {
		c.Expire(now.UnixMilli())
	}
}

// close writes the remaining changes. The node has ended, or weir stops.
func (n *nodeState) close() {
	if n != nil {
		n.store.Close()
	}
}

// release removes the state of a node that has ended from the shared limit.
func (n *nodeState) release() {
	if n != nil {
		n.store.Release()
	}
}

// collections returns the collections of the newest instance.
func (n *nodeState) collections() []*state.Collection {
	if n == nil {
		return nil
	}
	return n.store.All()
}

func (c *Component) stateSummaries() (out []host.StateSummary) {
	for _, col := range c.state.collections() {
		out = append(out, host.SummarizeState(col))
	}
	return out
}

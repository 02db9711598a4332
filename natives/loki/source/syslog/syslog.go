// Package syslog is loki.source.syslog: it receives syslog messages over TCP, TLS
// or UDP and forwards them as lines.
//
// Data takes the following path. A connection or the datagrams of an address are
// read (tcp.go, udp.go), split into messages (frame.go), parsed (message.go, with
// leodido/go-syslog), assigned to a stream (lines.go) and delivered. The messages
// of one read are one batch.
//
// While the receivers do not accept a batch, a TCP connection is not read, and
// its sender waits. Datagrams wait in a bounded queue; if it is full, further
// ones are dropped and counted. The protocol has no acknowledgement: messages
// that were read and not accepted when the process is killed are lost. Labels are
// only created if a rule reads them. A message that cannot be parsed is dropped,
// but the connection stays open.
package syslog

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"sort"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/clock"
	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/flow"
	"github.com/weir-run/weir/engine/server"
	"github.com/weir-run/weir/natives/loki/source/internal/source"
)

// Registration describes loki.source.syslog.
func Registration() component.Registration {
	return component.Registration{
		Name:    "loki.source.syslog",
		Sends:   batch.SignalLogs,
		NewArgs: func() any { return new(Arguments) },
		Build: func(o component.Options, args any, _ component.Component) (component.Component, error) {
			return build(o, args.(*Arguments))
		},
		Doc: component.Doc{
			Summary: "Receives syslog messages (RFC 5424, RFC 3164 or any text) over TCP, TLS or UDP and forwards them as lines. " +
				"While the receivers do not accept lines, TCP senders wait. The protocol has no acknowledgements, so messages that were read but not accepted are lost if weir is killed.",
		},
	}
}

// Component is the component of a loki.source.syslog node.
type Component struct {
	o        component.Options
	metrics  *metrics
	delivery *source.Delivery
	resolve  func(context.Context, string) string
	changed  chan struct{} // capacity 1
	// unaccepted is the number of lines that were read and that not all receivers
	// have accepted yet.
	unaccepted atomic.Int64
	telling    sync.Mutex // held while the health is determined and reported, so that reports are in order

	mu      sync.Mutex
	args    *Arguments
	by      map[string][]*listener // the wanted listeners; several for port 0
	retired []retired
}

// retired are settings that were replaced.
type retired struct {
	s     *settings
	since time.Time
}

var (
	_ component.Component = (*Component)(nil)
	_ component.Updater   = (*Component)(nil)
	_ component.Sourced   = (*Component)(nil)
	_ component.Debugger  = (*Component)(nil)
	_ component.Holder    = (*Component)(nil)
)

func build(o component.Options, a *Arguments) (*Component, error) {
	c := &Component{
		o: o, resolve: resolve, changed: make(chan struct{}, 1), by: map[string][]*listener{},
		delivery: source.NewDelivery(o.Clock, flow.NewOutput(o.Stats, a.ForwardTo)),
	}
	c.metrics = newMetrics(c)
	if err := c.Update(a); err != nil {
		return nil, err
	}
	if err := component.Register(o.Registerer, c.metrics.all()...); err != nil {
		return nil, fmt.Errorf("cannot register metrics: %w", err)
	}
	return c, nil
}

// Update applies new arguments. Listeners whose address does not change continue
// with their connections. A listener whose address changes continues until the
// new address is open.
func (c *Component) Update(args any) error {
	a := args.(*Arguments)
	tlss, err := load(a)
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	next, at := map[string][]*listener{}, map[string]int{}
	for i, la := range a.Listeners {
		k := la.key()
		if before := c.by[k]; at[k] < len(before) && before[at[k]].tls.Load() != nil && tlss[i] == nil {
			return fmt.Errorf("listener %s: %w", la.Address, server.ErrPlaintext)
		}
		at[k]++
	}
	clear(at)
	for i, la := range a.Listeners {
		k := la.key()
		var l *listener
		if before := c.by[k]; at[k] < len(before) {
			l = before[at[k]]
		} else {
			l = newListener(c, la)
		}
		at[k]++
		c.set(l, la, a)
		l.tls.Store(tlss[i])
		next[k] = append(next[k], l)
	}
	c.replace(a, next)
	c.by = next
	if c.args == nil || !slices.Equal(c.args.ForwardTo, a.ForwardTo) {
		c.delivery.To(flow.NewOutput(c.o.Stats, a.ForwardTo))
	}
	c.args = a
	c.wake()
	return nil
}

// wake makes Run check which listeners there are.
func (c *Component) wake() {
	select {
	case c.changed <- struct{}{}:
	default:
	}
}

// replace assigns removed listeners to the new listeners that replace them, in
// the order of the config: an address that changed is closed when the new one is
// open. The caller holds c.mu.
func (c *Component) replace(a *Arguments, next map[string][]*listener) {
	var gone, added []*listener
	if c.args != nil {
		gone = without(inOrder(c.args, c.by), next)
		added = without(inOrder(a, next), c.by)
	}
	for i, l := range added[:min(len(added), len(gone))] {
		l.before.Store(gone[i].serving())
	}
}

// inOrder returns the listeners of a in the order of the config.
func inOrder(a *Arguments, by map[string][]*listener) (all []*listener) {
	at := map[string]int{}
	for _, la := range a.Listeners {
		all = append(all, by[la.key()][at[la.key()]])
		at[la.key()]++
	}
	return all
}

// without returns the listeners of all that are not in by.
func without(all []*listener, by map[string][]*listener) []*listener {
	return slices.DeleteFunc(all, func(l *listener) bool { return slices.Contains(by[l.key], l) })
}

// set applies new settings to a listener, unless they are the same. The caller
// holds c.mu.
func (c *Component) set(l *listener, la *Listener, a *Arguments) {
	before := l.settings.Load()
	if before != nil && reflect.DeepEqual(before.args, la) && slices.EqualFunc(before.rules, a.RelabelRules, equal) {
		return
	}
	l.settings.Store(newSettings(la, a.RelabelRules, c.forgot))
	if before != nil {
		c.retire(before)
	}
}

func equal[T any](a, b *T) bool { return reflect.DeepEqual(a, b) }

func (c *Component) retire(s *settings) {
	c.retired = append(c.retired, retired{s, c.o.Clock.Now()})
}

func (c *Component) forgot(n int) { c.metrics.forgotten.Add(float64(n)) }

// load reads the TLS files of all listeners.
func load(a *Arguments) ([]*tls.Config, error) {
	out := make([]*tls.Config, len(a.Listeners))
	var errs []error
	for i, l := range a.Listeners {
		if s := l.TLS.server(); s != nil {
			var err error
			if out[i], err = s.Load(); err != nil {
				errs = append(errs, fmt.Errorf("listener %s: %w", l.Address, err))
			}
		}
	}
	return out, errors.Join(errs...)
}

// Sourced returns the paths of the TLS files.
func (c *Component) Sourced() (files []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, l := range c.args.Listeners {
		if s := l.TLS.server(); s != nil {
			files = append(files, s.Files()...)
		}
	}
	return files
}

// stopGrace is how long messages that were read may still wait for the receivers
// when weir stops or a listener is removed.
const stopGrace = 3 * time.Second

// Run listens until ctx ends and the messages that were read have been accepted.
func (c *Component) Run(ctx context.Context) error {
	defer c.release()
	var wg sync.WaitGroup
	defer wg.Wait()
	running := map[*listener]context.CancelFunc{}
	end := func(l *listener) {
		running[l]()
		delete(running, l)
		c.mu.Lock()
		defer c.mu.Unlock()
		c.retire(l.settings.Load())
	}
	defer func() {
		for l := range running {
			end(l)
		}
	}()
	wg.Go(func() { c.checkPeriodically(ctx) })
	for {
		wanted := c.wanted()
		needed := slices.Clone(wanted)
		for _, l := range wanted {
			if l.before.Load() != nil {
				needed = append(needed, l.before.Load())
			}
		}
		for l := range running {
			if !slices.Contains(needed, l) {
				end(l)
			}
		}
		for _, l := range wanted {
			if running[l] == nil {
				var lctx context.Context
				lctx, running[l] = context.WithCancel(ctx)
				wg.Go(func() { c.run(lctx, l) })
			}
		}
		c.report()
		select {
		case <-c.changed:
		case <-ctx.Done():
			return nil
		}
	}
}

// run runs a listener. After ctx has ended, the messages that were read may be
// sent for some time.
func (c *Component) run(ctx context.Context, l *listener) {
	base, cancel := context.WithCancel(context.WithoutCancel(ctx))
	var wg sync.WaitGroup
	wg.Go(func() {
		select {
		case <-ctx.Done():
			_ = clock.Sleep(base, c.o.Clock, stopGrace)
		case <-base.Done():
		}
		cancel()
	})
	l.run(ctx, base)
	cancel()
	wg.Wait()
}

// send sends a batch. It returns false if weir stops before the batch is
// accepted.
func (c *Component) send(ctx context.Context, b *batch.Logs) bool {
	c.unaccepted.Add(int64(b.Len()))
	defer c.unaccepted.Add(-int64(b.Len()))
	if c.delivery.Send(ctx, b) != nil {
		c.o.Stats.DropLines("stopped", b.Len())
		return false
	}
	return true
}

// Unaccepted returns the number of lines that were read and not accepted yet.
func (c *Component) Unaccepted() (samples, lines int) { return 0, int(c.unaccepted.Load()) }

// checkPeriodically checks deliveries every second and removes unused streams
// every minute.
func (c *Component) checkPeriodically(ctx context.Context) {
	swept := c.o.Clock.Now()
	for clock.Sleep(ctx, c.o.Clock, time.Second) == nil {
		c.delivery.Look()
		if now := c.o.Clock.Now(); now.Sub(swept) >= source.Recheck {
			swept = now
			c.removeIdle(now)
		}
	}
}

// release releases the handles of all streams.
func (c *Component) release() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, r := range c.retired {
		r.s.streams.Close()
	}
	c.retired = nil
}

func (c *Component) removeIdle(now time.Time) {
	for _, l := range c.wanted() {
		l.settings.Load().streams.Sweep()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(c.retired) > 0 && now.Sub(c.retired[0].since) > source.Recheck {
		c.retired[0].s.streams.Close()
		c.retired = c.retired[1:]
	}
}

// wanted returns the listeners in any order.
func (c *Component) wanted() (all []*listener) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, ls := range c.by {
		all = append(all, ls...)
	}
	return all
}

func (c *Component) countStreams() (n int) {
	for _, l := range c.wanted() {
		n += l.settings.Load().streams.Len()
	}
	return n
}

// report reports the health of all listeners.
func (c *Component) report() {
	c.telling.Lock()
	defer c.telling.Unlock()
	h := component.Health{State: component.Healthy, Time: c.o.Clock.Now()}
	var on, not []string
	for _, l := range c.info().Listeners {
		switch {
		case l.Error != "":
			h.State = component.Unhealthy
			not = append(not, l.Error)
		case l.Address != "":
			on = append(on, l.Protocol+" "+l.Address)
		}
	}
	if len(on)+len(not) < len(c.wanted()) && len(not) == 0 { // some listeners are still starting
		h.State = component.Unknown
	}
	h.Message = strings.Join(not, "; ")
	if len(on) > 0 {
		if len(not) > 0 {
			h.Message += "; "
		}
		h.Message += "listening on " + strings.Join(on, ", ")
	}
	c.o.Health(h)
}

// Info is the result of DebugInfo.
type Info struct {
	Listeners []ListenerInfo `json:"listeners"` // in the order of the config
}

// ListenerInfo is the state of one listener.
type ListenerInfo struct {
	Protocol    string            `json:"protocol"`
	Configured  string            `json:"configured_address"`
	Address     string            `json:"address"` // "" if it does not listen
	Error       string            `json:"error,omitempty"`
	Connections int               `json:"connections"`
	Streams     int               `json:"streams"`
	Labels      map[string]string `json:"labels,omitempty"`
}

// DebugInfo returns an Info.
func (c *Component) DebugInfo() any { return c.info() }

func (c *Component) info() (out Info) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, ls := range c.by {
		for _, l := range ls {
			out.Listeners = append(out.Listeners, l.info())
		}
	}
	sort.Slice(out.Listeners, func(i, j int) bool {
		a, b := out.Listeners[i], out.Listeners[j]
		return a.Protocol+a.Configured+a.Address < b.Protocol+b.Configured+b.Address
	})
	return out
}

func (l *listener) info() ListenerInfo {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.settings.Load()
	i := ListenerInfo{
		Protocol: s.args.Protocol, Configured: s.args.Address, Address: l.address, Connections: l.connections(),
		Streams: s.streams.Len(), Labels: maps.Clone(s.args.Labels),
	}
	if l.err != nil {
		i.Error = l.err.Error()
		if before := l.before.Load(); before != nil && before.listens() != "" {
			i.Error += ", until then " + before.listens() + " is served"
		}
	}
	return i
}

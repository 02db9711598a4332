package database

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weir-run/weir/engine/backoff"
	"github.com/weir-run/weir/engine/component"
)

const (
	// maxValues is the maximum size of all keys and values in bytes, because they
	// become a value in the config. remote.http has the same limit.
	maxValues = 16 << 20
	// pause is the minimum time between two reads of a store whose keys change all
	// the time.
	pause = 250 * time.Millisecond
	// soon and late are the first and the longest interval between two attempts to
	// read a store that cannot be read.
	soon = time.Second
	late = time.Minute
)

// Component is the component of a key/value store.
type Component struct {
	kind  Kind
	opts  component.Options
	reads *prometheus.CounterVec
	keys  prometheus.Gauge
	last  prometheus.Gauge

	mu     sync.Mutex
	args   any
	cancel context.CancelFunc // ends the connection with old arguments; nil before the first

	failed bool // the last attempt failed; only used by Run
}

var (
	_ component.Component = (*Component)(nil)
	_ component.Updater   = (*Component)(nil)
	_ component.Sourced   = (*Component)(nil)
)

func build(k Kind, o component.Options, args any) (*Component, error) {
	c := &Component{
		kind: k, opts: o, args: args,
		reads: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "weir_database_reads_total", Help: "Reads of the key/value store, by outcome: success or failure.",
		}, []string{"outcome"}),
		keys: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "weir_database_keys", Help: "Keys that the component exports.",
		}),
		last: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "weir_database_last_read_timestamp_seconds", Help: "Unix time of the last successful read of the key/value store.",
		}),
	}
	return c, component.Register(o.Registerer, c.reads, c.keys, c.last)
}

// Update applies new arguments. The values stay until the store was read with the
// new arguments.
func (c *Component) Update(args any) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.args = args
	if c.cancel != nil {
		c.cancel()
	}
	return nil
}

// Sourced returns the files in the arguments.
func (c *Component) Sourced() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.kind.Files == nil {
		return nil
	}
	return c.kind.Files(c.args)
}

// Run follows the store until ctx ends.
func (c *Component) Run(ctx context.Context) error {
	for ctx.Err() == nil {
		c.mu.Lock()
		one, cancel := context.WithCancel(ctx)
		args := c.args
		c.cancel = cancel
		c.mu.Unlock()
		c.follow(one, args)
		cancel()
	}
	return nil
}

// follow exports the values of a store until ctx ends.
func (c *Component) follow(ctx context.Context, args any) {
	var pauses backoff.Pauses
	for ctx.Err() == nil {
		err := c.connect(ctx, args, pauses.Reset)
		if ctx.Err() != nil {
			return
		}
		c.reads.WithLabelValues("failure").Inc()
		c.report(err)
		pauses.Pause(ctx, c.opts.Clock, backoff.Reasons{Min: soon, Max: max(soon, min(late, c.kind.Common(args).PollFrequency))})
	}
}

// connect opens the store and follows it until it cannot be read, or until ctx
// ends. It calls read after each successful read.
func (c *Component) connect(ctx context.Context, args any, read func()) (err error) {
	a := c.kind.Common(args)
	var store Store
	err = c.attempt(ctx, a, "open the store", func(ctx context.Context) (err error) {
		store, err = c.kind.Open(ctx, args, Options{UserAgent: c.opts.UserAgent})
		return err
	})
	if err != nil {
		return fmt.Errorf("cannot connect: %w", err)
	}
	defer func() {
		op := c.opts.Watch.Begin("close the store", 0)
		defer op.End()
		_ = store.Close() // there is nothing to lose
	}()
	prefixes := a.prefixes()
	for {
		var values map[string]string
		err := c.attempt(ctx, a, "read the store", func(ctx context.Context) (err error) {
			values, err = store.Get(ctx, prefixes)
			return err
		})
		if err != nil {
			return fmt.Errorf("cannot read: %w", err)
		}
		if err := c.export(a, values, prefixes); err != nil {
			return err
		}
		read()
		soonest := time.Now().Add(pause)
		if err := c.watch(ctx, store, a, prefixes); err != nil {
			return fmt.Errorf("cannot watch: %w", err)
		}
		if err := wait(ctx, time.Until(soonest)); err != nil {
			return err
		}
	}
}

// attempt calls fn with the time limit of a request.
func (c *Component) attempt(ctx context.Context, a *Arguments, what string, fn func(context.Context) error) error {
	op := c.opts.Watch.Begin(what, a.PollTimeout+time.Minute)
	defer op.End()
	ctx, cancel := context.WithTimeoutCause(ctx, a.PollTimeout, fmt.Errorf("no answer within %s", a.PollTimeout))
	defer cancel()
	err := fn(ctx)
	if err != nil && ctx.Err() != nil {
		if cause := context.Cause(ctx); !errors.Is(err, cause) {
			return fmt.Errorf("%w (%v)", cause, err)
		}
	}
	return err
}

// watch waits until something may have changed.
func (c *Component) watch(ctx context.Context, store Store, a *Arguments, prefixes []string) error {
	poll, cancel := context.WithTimeout(ctx, a.PollFrequency)
	defer cancel()
	if err := store.Watch(poll, prefixes); err != nil && poll.Err() == nil {
		return err
	}
	return ctx.Err()
}

// wait waits for d, or until ctx ends.
func wait(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// export exports what was read.
func (c *Component) export(a *Arguments, values map[string]string, prefixes []string) error {
	out := make(map[string]component.OptionalSecret, len(values))
	size := 0
	for key, value := range values {
		if name, ok := a.name(key, prefixes); ok {
			out[name] = component.OptionalSecret{IsSecret: a.IsSecret, Value: value}
			size += len(name) + len(value)
		}
	}
	if size > maxValues {
		return fmt.Errorf("the %d keys and values have %d bytes, more than the %d bytes allowed: use a longer prefix", len(out), size, maxValues)
	}
	c.reads.WithLabelValues("success").Inc()
	c.keys.Set(float64(len(out)))
	c.last.Set(float64(c.opts.Clock.Now().UnixMilli()) / 1000)
	c.opts.Export(Exports{Values: out})
	c.report(nil)
	return nil
}

// report reports the health, and logs changes of the state. Messages may contain
// port numbers, which differ at each attempt, so not every message is logged.
func (c *Component) report(err error) {
	h := component.Health{State: component.Healthy, Message: "read the store", Time: c.opts.Clock.Now()}
	if err != nil {
		h.State, h.Message = component.Unhealthy, component.HideURLs(component.Shorten(err.Error()))
	}
	switch failed := err != nil; {
	case failed == c.failed:
	case failed:
		c.opts.Logger.Error("no new values", "err", h.Message)
	default:
		c.opts.Logger.Info("the store answers again")
	}
	c.failed = err != nil
	c.opts.Health(h)
}

// Package journal is loki.source.journal: it follows systemd's journal and sends
// its entries on as lines.
//
// It needs libsystemd, by cgo, and is there when weir is built with the tag
// journal (reader_systemd.go); without it the block says what is missing
// (reader_none.go). The rule to know: the position, a cursor of the journal,
// moves only past entries that every receiver has accepted and nobody keeps in
// memory; what is read again has the same times.
package journal

import (
	"context"
	"errors"
	"path/filepath"
	"reflect"
	"sync"
	"time"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/clock"
	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/flow"
	"github.com/weir-run/weir/natives/loki/source"
)

// Registration describes loki.source.journal.
func Registration() component.Registration {
	return component.Registration{
		Name:    "loki.source.journal",
		Sends:   batch.SignalLogs,
		NewArgs: func() any { a := new(Arguments); a.SetToDefault(); return a },
		Check: func(any, func(string) bool) []*component.ArgumentError {
			if errMissing == nil {
				return nil
			}
			return []*component.ArgumentError{{Err: errMissing, Warning: true}}
		},
		Build: func(o component.Options, args any) (component.Component, error) {
			return build(o, args.(*Arguments), open, errMissing)
		},
		Doc: component.Doc{
			Summary: "Follows systemd's journal and sends its entries on as lines, from where the receivers have accepted them. " +
				"It needs a weir that was built with libsystemd: on Linux, with cgo and the build tag journal.",
		},
	}
}

// reader reads entries of a journal, for one goroutine.
type reader interface {
	next() (*entry, error) // nil when there is none now
	wait()                 // until there may be more, for a short while at most
	close() error
}

type opener func(a *Arguments, cursor string, since time.Time) (reader, error)

// Component is one loki.source.journal.
type Component struct {
	o        component.Options
	args     *Arguments
	open     opener
	source   uint64
	delivery *source.Delivery
	liner    *liner
	position *position
}

var (
	_ component.Component = (*Component)(nil)
	_ component.Updater   = (*Component)(nil)
	_ component.Debugger  = (*Component)(nil)
)

func build(o component.Options, a *Arguments, open opener, missing error) (*Component, error) {
	o.Previous = nil // kept, it would keep all that were before it
	if missing != nil {
		return nil, missing
	}
	return &Component{
		o: o, args: a, open: open, source: batch.NewPushSource(), liner: newLiner(a, o.ID),
		delivery: source.NewDelivery(o.Clock, flow.NewOutput(o.Stats, a.ForwardTo)),
	}, nil
}

// Update takes other receivers; anything else needs another component.
func (c *Component) Update(args any) error {
	a := *args.(*Arguments)
	to := a.ForwardTo
	a.ForwardTo = c.args.ForwardTo
	if !reflect.DeepEqual(&a, c.args) {
		return component.ErrRebuild
	}
	c.delivery.To(flow.NewOutput(c.o.Stats, to))
	return nil
}

// Run follows the journal until ctx ends.
func (c *Component) Run(ctx context.Context) error {
	defer c.liner.streams.Close()
	var err error
	if c.position, err = loadPosition(filepath.Join(c.o.DataPath, "cursor"), c.args.Legacy); err != nil {
		return err
	}
	r, err := c.open(c.args, c.position.at(), c.o.Clock.Now().Add(-c.args.MaxAge))
	if err != nil {
		return err
	}
	c.o.Health(component.Health{State: component.Healthy, Message: "following the journal", Time: c.o.Clock.Now()})
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	wg.Go(func() {
		for clock.Sleep(ctx, c.o.Clock, time.Second) == nil {
			c.delivery.Look()
		}
	})
	err = c.follow(ctx, r)
	cancel()
	wg.Wait()
	c.settle(ctx)
	return errors.Join(err, c.position.save(), r.close())
}

// maxRows and maxFlying bound what is on its way.
const (
	maxRows   = 1000
	maxFlying = 64
)

// follow reads and sends until ctx ends.
func (c *Component) follow(ctx context.Context, r reader) error {
	saved, swept := c.o.Clock.Now(), c.o.Clock.Now()
	for ctx.Err() == nil {
		b, cursor, err := c.read(r)
		if err != nil {
			return err
		}
		if cursor != "" {
			c.send(ctx, b, cursor)
		} else {
			r.wait()
		}
		now := c.o.Clock.Now()
		if now.Sub(saved) >= time.Second {
			saved = now
			if err := c.position.save(); err != nil {
				c.o.Logger.Warn("entries may be read again after a crash", "err", err)
			}
		}
		if now.Sub(swept) >= source.Recheck {
			swept = now
			c.liner.streams.Sweep()
		}
	}
	return nil
}

// read returns the entries that are there, as many as go into a batch, and the
// cursor of the last one.
func (c *Component) read(r reader) (b *batch.Logs, cursor string, err error) {
	b = &batch.Logs{Source: c.source}
	now := c.o.Clock.Now().UnixNano()
	none, dropped := 0, 0
	for range maxRows {
		e, err := r.next()
		if err != nil {
			return nil, "", err
		}
		if e == nil {
			break
		}
		cursor = e.cursor
		line := c.liner.line(e)
		if line == "" {
			none++
			continue
		}
		s := c.liner.stream(e, now)
		if s == nil {
			dropped++
			continue
		}
		b.Stream, b.T, b.Line = append(b.Stream, s), append(b.T, e.time()), append(b.Line, line)
	}
	c.o.Stats.DropLines("no_message", none)
	c.o.Stats.DropLines("relabel", dropped)
	return b, cursor, nil
}

// send returns when b was accepted, or ctx has ended.
func (c *Component) send(ctx context.Context, b *batch.Logs, cursor string) {
	b.Receipt = c.position.begin(cursor)
	if c.delivery.Send(ctx, b) != nil {
		c.position.refused() // it is read again
		return
	}
	b.Receipt.Accepted()
	for c.position.flying() >= maxFlying && ctx.Err() == nil {
		c.position.flush()
		_ = clock.Sleep(ctx, c.o.Clock, 100*time.Millisecond)
	}
}

// settle waits a while for who keeps lines in memory.
func (c *Component) settle(ctx context.Context) {
	c.position.flush()
	for range 20 {
		if c.position.flying() == 0 {
			return
		}
		_ = clock.Sleep(context.WithoutCancel(ctx), c.o.Clock, 100*time.Millisecond)
	}
}

// Info is what DebugInfo returns.
type Info struct {
	Streams int `json:"streams"`
}

// DebugInfo returns an Info.
func (c *Component) DebugInfo() any { return Info{c.liner.streams.Len()} }

func timeOf(ns int64) time.Time { return time.Unix(0, ns) }

// Package journal is loki.source.journal: it follows systemd's journal and sends
// its entries as lines.
//
// It reads the journal files itself (journalfile). The position of each sequence
// of entries only moves past entries that every receiver has accepted and no
// receiver only keeps in memory. An entry that is read again has the same labels,
// time and text.
package journal

import (
	"context"
	"errors"
	"path/filepath"
	"reflect"
	"runtime"
	"sync"
	"time"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/clock"
	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/flow"
	"github.com/weir-run/weir/natives/loki/source/internal/source"
	"github.com/weir-run/weir/natives/loki/source/journal/internal/journalfile"
)

// Registration describes loki.source.journal.
func Registration() component.Registration {
	return component.Registration{
		Name:    "loki.source.journal",
		Sends:   batch.SignalLogs,
		NewArgs: func() any { a := new(Arguments); a.SetToDefault(); return a },
		Check: func(args any, _ func(string) bool) []*component.ArgumentError {
			if err := checkHost(args.(*Arguments).Path, runtime.GOOS); err != nil {
				return []*component.ArgumentError{{Err: err}}
			}
			return nil
		},
		Build: func(o component.Options, args any, _ component.Component) (component.Component, error) {
			return build(o, args.(*Arguments))
		},
		Doc: component.Doc{
			Summary: "Follows systemd's journal and sends its entries as lines. " +
				"It reads the journal files directly, without libsystemd or journalctl, and needs permission to read them, for example as a member of the group systemd-journal.",
		},
	}
}

// Component is the component of a loki.source.journal node.
type Component struct {
	o        component.Options
	args     *Arguments
	source   uint64
	delivery *source.Delivery
	liner    *liner
	position *position
	reported string          // the last reported health message
	damaged  map[string]bool // files whose damage was logged
}

var (
	_ component.Component = (*Component)(nil)
	_ component.Updater   = (*Component)(nil)
	_ component.Debugger  = (*Component)(nil)
)

func build(o component.Options, a *Arguments) (*Component, error) {
	if err := checkHost(a.Path, runtime.GOOS); err != nil {
		return nil, err
	}
	return &Component{
		o: o, args: a, source: batch.NewPushSource(), liner: newLiner(a, o.ID), damaged: map[string]bool{},
		delivery: source.NewDelivery(o.Clock, flow.NewOutput(o.Stats, a.ForwardTo)),
	}, nil
}

// Update sets the receivers; other changes need a new component.
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
	now := c.o.Clock.Now()
	if c.position, err = loadPosition(filepath.Join(c.o.DataPath, "cursor"), bootID(), c.args.Legacy, now, c.o.Logger); err != nil {
		return err
	}
	position, foreign := c.position.readerPosition()
	since := now.Add(-c.args.MaxAge)
	if foreign != nil && int64(foreign.Realtime) < since.UnixMicro() {
		foreign = nil // not needed any more, and wrong if the clock is set back
	}
	r := journalfile.NewReader(journalfile.Options{Roots: roots(c.args.Path), Position: position, Foreign: foreign, Since: since, Now: c.o.Clock.Now})
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	wg.Go(func() {
		for clock.Sleep(ctx, c.o.Clock, saveInterval) == nil {
			c.delivery.Look()
			if err := c.position.save(c.o.Clock.Now()); err != nil {
				c.o.Logger.Warn("entries may be sent again after a crash", "err", err)
			}
		}
	})
	c.follow(ctx, r)
	cancel()
	wg.Wait()
	c.waitForAcks(ctx)
	return errors.Join(c.position.save(c.o.Clock.Now()), r.Close())
}

// Limits for a batch and for the batches that were sent and are not done.
const (
	maxRows    = 1000
	maxEntries = 10_000 // including entries that do not match
	maxBytes   = 4 << 20
	maxPending = 64
)

// saveInterval is the interval at which a changed position is stored. After a
// crash, entries that were accepted since then are sent again.
const saveInterval = 200 * time.Millisecond

// pollInterval is the interval at which the journal is checked while nothing is
// written.
const pollInterval = 200 * time.Millisecond

// follow reads and sends entries until ctx ends.
func (c *Component) follow(ctx context.Context, r *journalfile.Reader) {
	swept := c.o.Clock.Now()
	for ctx.Err() == nil {
		b, ends, err := c.read(r)
		c.count(r.Losses())
		c.report(r, err)
		if len(ends) > 0 {
			c.send(ctx, b, ends)
		} else {
			_ = clock.Sleep(ctx, c.o.Clock, pollInterval)
		}
		if now := c.o.Clock.Now(); now.Sub(swept) >= source.Recheck {
			swept = now
			c.liner.streams.Sweep()
		}
	}
}

// read returns a batch of the available entries and the positions of its end. An
// error occurred after these entries.
func (c *Component) read(r *journalfile.Reader) (*batch.Logs, cursors, error) {
	b, ends := &batch.Logs{Source: c.source}, cursors{}
	now := c.o.Clock.Now().UnixNano()
	none, dropped, size := 0, 0, 0
	var err error
	for n := 0; n < maxEntries && len(b.Line) < maxRows && size < maxBytes; n++ {
		var e *journalfile.Entry
		if e, err = r.Next(); e == nil {
			break
		}
		ends[e.Cursor.SeqnumID] = e.Cursor
		if !c.liner.matched(e) {
			continue
		}
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
		size += len(line)
		b.Stream, b.T, b.Line = append(b.Stream, s), append(b.T, timestamp(e.Cursor)), append(b.Line, line)
	}
	c.o.Stats.DropLines("no_message", none)
	c.o.Stats.DropLines("relabel", dropped)
	return b, ends, err
}

// send returns when b was accepted or ctx has ended.
func (c *Component) send(ctx context.Context, b *batch.Logs, ends cursors) {
	b.Ack = c.position.begin(ends)
	if len(b.Line) > 0 && c.delivery.Send(ctx, b) != nil {
		c.position.cancel() // the batch is read again
		return
	}
	b.Ack.Accepted()
	for c.position.pending() >= maxPending && ctx.Err() == nil {
		c.position.flush()
		_ = clock.Sleep(ctx, c.o.Clock, pollInterval)
	}
}

// waitForAcks waits up to two seconds for receivers that keep lines in memory.
func (c *Component) waitForAcks(ctx context.Context) {
	c.position.flush()
	for range 10 {
		if c.position.pending() == 0 {
			return
		}
		_ = clock.Sleep(context.WithoutCancel(ctx), c.o.Clock, pollInterval)
	}
}

// Info is the result of DebugInfo.
type Info struct {
	Streams int `json:"streams"`
}

// DebugInfo returns an Info.
func (c *Component) DebugInfo() any { return Info{c.liner.streams.Len()} }

package outbox

import (
	"context"
	"sync"
	"time"

	"github.com/weir-run/weir/engine/journal"
)

// GatherFor is how long a group stays open for more, at most: the sender waits
// meanwhile.
const GatherFor = 100 * time.Millisecond

// Group is what the groups of all components have in them.
type Group struct {
	deadline time.Time
	done     chan struct{}
	err      error // set before done is closed
}

func (gr *Group) base() *Group { return gr }

// Wait returns when the group is written, or why it is not. It does not take the
// caller's ctx: the outcome is known within the deadline, and a batch that is
// reported as refused must not arrive.
func (gr *Group) Wait() error {
	<-gr.done
	return gr.err
}

// Gatherer joins batches into groups. A group is what is written to the journal
// at once: a batch is in one group, so that it is accepted whole or not at all.
// The Mutex is held by who uses anything of it but Run.
type Gatherer[G interface {
	comparable
	base() *Group // it embeds a Group
}] struct {
	sync.Mutex
	Open     G    // what fills; the zero value if nothing does
	Stopping bool // groups are to be committed at once

	box   *Remote
	kick  chan struct{} // capacity 1: a group was opened
	hooks Hooks[G]
}

// Hooks are what a component does with groups. All but After are called with the
// Mutex held.
type Hooks[G any] struct {
	Close   func(gr G) []journal.Block // returns all its blocks
	Written func(gr G, err error)      // says whether they are in the journal
	After   func()                     // is called after each group that Kick told of; may be nil
}

// Init makes g ready to write to an outbox.
func (g *Gatherer[G]) Init(b *Remote, h Hooks[G]) {
	g.box, g.hooks, g.kick = b, h, make(chan struct{}, 1)
}

// Begin opens a group that is written within some time. Run looks after it once
// there is a Kick.
func (g *Gatherer[G]) Begin(gr G, within time.Duration) {
	*gr.base() = Group{deadline: Due(g.box.Clock.Now(), within), done: make(chan struct{})}
	g.Open = gr
}

// Due returns when a group that is opened now is written: groups of several shards
// that were opened within a quarter of the time are written at once. To wake up
// costs more than to write.
func Due(now time.Time, within time.Duration) time.Time {
	return now.Add(within - time.Duration(now.UnixNano()%max(int64(within)/4, 1)))
}

// Kick tells Run that a group was opened.
func (g *Gatherer[G]) Kick() {
	select {
	case g.kick <- struct{}{}:
	default:
	}
}

// Commit writes the open group to the journal, if there is one. The Mutex being
// held, blocks of a shard are written in the order of their rows.
func (g *Gatherer[G]) Commit() {
	var none G
	gr := g.Open
	if gr == none {
		return
	}
	g.Open = none
	base := gr.base()
	base.err = g.box.kind.Stopping // for who waits, should Append panic
	defer close(base.done)
	base.err = g.box.Journal.Append(g.hooks.Close(gr)...)
	g.hooks.Written(gr, base.err)
}

// Run commits groups at their deadline until ctx ends or it panics, then what is
// open, and from then on every batch at once.
func (g *Gatherer[G]) Run(ctx context.Context) {
	defer g.stop()
	timer := g.box.Clock.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		select {
		case <-g.kick:
		case <-ctx.Done():
			return
		}
		g.Lock()
		gr := g.Open
		g.Unlock()
		if gr != *new(G) { // otherwise it was full
			base := gr.base()
			timer.Reset(base.deadline.Sub(g.box.Clock.Now()))
			select {
			case <-timer.C():
				g.expire(gr)
			case <-base.done:
			case <-ctx.Done():
				return
			}
		}
		if g.hooks.After != nil {
			g.hooks.After()
		}
	}
}

// expire commits a group unless that was done.
func (g *Gatherer[G]) expire(gr G) {
	g.Lock()
	defer g.Unlock()
	if g.Open == gr {
		g.Commit()
	}
}

// stop commits what is open: nobody would after Run.
func (g *Gatherer[G]) stop() {
	g.Lock()
	defer g.Unlock()
	g.Stopping = true
	g.Commit()
}

package outbox

import (
	"context"
	"sync"
	"time"

	"github.com/weir-run/weir/engine/journal"
)

// GatherFor is the maximum time for which a group stays open for more batches.
// The sender waits meanwhile.
const GatherFor = 100 * time.Millisecond

// Group is the part that the groups of all components have in common.
type Group struct {
	deadline time.Time
	done     chan struct{}
	err      error // set before done is closed
}

func (gr *Group) base() *Group { return gr }

// Wait returns when the group is written, with the error if it could not be. It
// does not take the caller's ctx: the outcome is known within the deadline, and
// a batch that is reported as refused must not be delivered.
func (gr *Group) Wait() error {
	<-gr.done
	return gr.err
}

// Gatherer joins batches into groups. A group is written to the journal in one
// call. A batch is in one group only, so it is accepted as a whole or not at
// all. Hold the Mutex to use anything of it except Run.
type Gatherer[G interface {
	comparable
	base() *Group // it embeds a Group
}] struct {
	sync.Mutex
	Open     G    // the group being filled; the zero value if there is none
	Stopping bool // groups must be committed immediately

	box   *Remote
	kick  chan struct{} // capacity 1: a group was opened
	hooks Hooks[G]
}

// Hooks are the functions of a component that handle groups. All except After
// are called with the Mutex held.
type Hooks[G any] struct {
	Close   func(gr G) []journal.Block // returns all its blocks
	Written func(gr G, err error)      // reports whether they are in the journal
	After   func()                     // called after each group that Kick announced; may be nil
}

// Init prepares g for writing to an outbox.
func (g *Gatherer[G]) Init(b *Remote, h Hooks[G]) {
	g.box, g.hooks, g.kick = b, h, make(chan struct{}, 1)
}

// Begin opens a group that will be written within the given time. Run handles
// it after Kick.
func (g *Gatherer[G]) Begin(gr G, within time.Duration) {
	*gr.base() = Group{deadline: Due(g.box.Clock.Now(), within), done: make(chan struct{})}
	g.Open = gr
}

// Due returns when a group that is opened now is written. Groups of several
// shards that were opened within a quarter of the time are written together,
// because waking up costs more than writing.
func Due(now time.Time, within time.Duration) time.Time {
	return now.Add(within - time.Duration(now.UnixNano()%max(int64(within)/4, 1)))
}

// Kick notifies Run that a group was opened.
func (g *Gatherer[G]) Kick() {
	select {
	case g.kick <- struct{}{}:
	default:
	}
}

// Commit writes the open group, if there is one, to the journal. Because the
// Mutex is held, the blocks of a shard are written in the order of their rows.
func (g *Gatherer[G]) Commit() {
	var none G
	gr := g.Open
	if gr == none {
		return
	}
	g.Open = none
	base := gr.base()
	base.err = g.box.kind.Stopping // for waiting callers, in case Append panics
	defer close(base.done)
	base.err = g.box.Journal.Append(g.hooks.Close(gr)...)
	g.hooks.Written(gr, base.err)
}

// Run commits groups at their deadline until ctx ends or it panics. Then it
// commits the open group, and from then on every batch is committed
// immediately.
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

// expire commits a group unless it was already committed.
func (g *Gatherer[G]) expire(gr G) {
	g.Lock()
	defer g.Unlock()
	if g.Open == gr {
		g.Commit()
	}
}

// stop commits the open group, because nothing else would after Run.
func (g *Gatherer[G]) stop() {
	g.Lock()
	defer g.Unlock()
	g.Stopping = true
	g.Commit()
}

package remotewrite

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/weir-run/weir/engine/batch"
)

const (
	// lateAfter is how old a block may get before more lanes are used, and how
	// long those have to show what they can do before there are more again.
	lateAfter = time.Second
	// calmFor is how long fewer lanes must have been enough before some are
	// given up.
	calmFor = time.Minute
)

// lanes spreads sources over the lanes in use. Each has a request in flight and
// a block that fills, so there are no more of them than it takes to keep up:
// requests are fuller the fewer they are.
//
// To use another number of them moves series from lane to lane. What is
// gathered is written before that, and a barrier in the journal keeps what
// comes behind all that is in it. So lanes are added while little is waiting: in
// the first second of an outage, not at its end.
type lanes struct {
	e         *endpoint
	gatherers []*gatherer // one for each lane of the journal
	used      atomic.Int32

	mu    sync.Mutex
	since time.Time     // when used was changed or was last too small
	busy  time.Duration // of requests, in all, at that time
}

func newLanes(e *endpoint) *lanes {
	l := &lanes{e: e, since: e.Clock.Now()}
	s := e.settings.Load()
	for lane := range e.Journal.Lanes() {
		l.gatherers = append(l.gatherers, newGatherer(e, lane, s.labels))
	}
	least, _ := l.bounds(s)
	l.used.Store(int32(least))
	return l
}

// bounds returns the least and the most lanes to use. The journal may have
// fewer than the settings ask for, until it is made anew.
func (l *lanes) bounds(s *settings) (least, most int) {
	most = min(s.args.Queue.lanes(), len(l.gatherers))
	return min(s.args.Queue.MinShards, most), most
}

// add gathers a batch and returns when it is written.
func (l *lanes) add(s *settings, b *batch.Metrics) error {
	for {
		used := l.used.Load()
		g := l.gatherers[b.Source%uint64(used)]
		gr, skipped, ok := g.place(s, b, used)
		if ok {
			return g.wait(gr, skipped)
		}
	}
}

// review uses more lanes when blocks wait for long, and fewer when half of them
// would be idle half of the time. It is called after each group; no gatherer is
// locked.
func (l *lanes) review() {
	l.mu.Lock()
	defer l.mu.Unlock()
	now, used := l.e.Clock.Now(), int(l.used.Load())
	blocks, age := l.e.Journal.Waiting()
	late := blocks > 1 && age >= lateAfter
	span := now.Sub(l.since)
	if span < lateAfter || !late && span < calmFor {
		return
	}
	busy := l.e.Seconds.Busy()
	wanted := used
	if late {
		wanted *= 2
	} else if busy-l.busy <= span*time.Duration(used/2)/2 {
		wanted /= 2
	}
	l.since, l.busy = now, busy
	least, most := l.bounds(l.e.settings.Load())
	if wanted = min(max(wanted, least), most); wanted != used {
		l.use(wanted)
	}
}

// use changes the number of lanes in use.
func (l *lanes) use(n int) {
	for _, g := range l.gatherers {
		g.Lock()
		defer g.Unlock()
	}
	for _, g := range l.gatherers {
		g.Commit()
	}
	l.e.Journal.Barrier()
	l.used.Store(int32(n))
	l.e.Log.Debug("uses another number of lanes", "lanes", n)
}

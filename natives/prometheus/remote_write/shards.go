package remotewrite

import (
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weir-run/weir/engine/batch"
)

const (
	// lateAfter is how old a block may get before more shards are used, and how
	// long those have to show what they can do before there are more again.
	lateAfter = time.Second
	// calmFor is how long fewer shards must have been enough before some are
	// given up.
	calmFor = time.Minute
)

// shards distributes sources over the shards in use. Each shard has a request in
// flight and a block that fills, so there are no more of them than it takes to
// keep up: requests are fuller the fewer there are. A shard that does not keep up
// with one request at a time is spread when it is sent (spread.go).
//
// Using another number of shards moves series from shard to shard. What is gathered
// is written before that, and a barrier in the journal keeps later blocks behind
// all earlier ones. So shards are added while little is waiting: in the first second
// of an outage, not at its end.
type shards struct {
	e         *endpoint
	gatherers []*gatherer // one for each shard of the journal
	used      atomic.Int32
	came      atomic.Int64 // samples

	mu    sync.Mutex
	since time.Time // when used was changed or was last too small
	at    moment    // what had happened then
}

func newShards(e *endpoint) *shards {
	l := &shards{e: e, since: e.Clock.Now()}
	s := e.settings.Load()
	for shard := range e.Journal.Shards() {
		l.gatherers = append(l.gatherers, newGatherer(e, shard, s.labels))
	}
	least, _ := l.bounds(s)
	l.used.Store(int32(least))
	return l
}

// bounds returns the least and the most shards to use. The journal may have
// fewer than the settings ask for, until it is made anew.
func (l *shards) bounds(s *settings) (least, most int) {
	most = min(s.args.Queue.shards(), len(l.gatherers))
	return min(s.args.Queue.MinShards, most), most
}

// add gathers a batch and returns when it is written.
func (l *shards) add(s *settings, b *batch.Metrics) error {
	for {
		used := l.used.Load()
		g := l.gatherers[b.Source%uint64(used)]
		gr, skipped, ok := g.place(s, b, used)
		if ok {
			l.came.Add(int64(b.Len()))
			return g.wait(gr, skipped)
		}
	}
}

// review changes the number of shards in use. It is called after each group; no
// gatherer is locked.
//
// More shards are used when blocks wait although the endpoint answers fast, and as
// soon as it fails. An endpoint that is slow gets the blocks of each shard in
// several requests at once, whatever the number of shards (spread.go); a barrier
// would only hold up its backlog. Once nothing is late, the number follows from
// the samples that come, those that a request holds, and the time that it takes.
func (l *shards) review() {
	l.mu.Lock()
	defer l.mu.Unlock()
	now, used := l.e.Clock.Now(), int(l.used.Load())
	s, latency := l.e.settings.Load(), l.e.latency()
	blocks, age := l.e.Journal.Waiting()
	late := blocks > 1 && age >= lateAfter+s.wait+2*latency // one for the request before and one for its own
	span := now.Sub(l.since)
	if span < lateAfter || !late && span < calmFor {
		return
	}
	at := moment{l.came.Load(), l.e.answers.Load(), l.e.failures.Load()}
	busy := float64(at.samples-l.at.samples) / span.Seconds() / float64(s.maxSamples) * latency.Seconds() // shards
	answered, failed := at.answers > l.at.answers, at.failures > l.at.failures
	wanted := used
	switch {
	case late && (answered && latency < spreadFrom || failed && !answered):
		wanted *= 2
	case late:
	case busy > float64(used):
		wanted = int(math.Ceil(busy * 1.25))
	case busy <= float64(used/2)/2:
		wanted /= 2
	}
	l.since, l.at = now, at
	least, most := l.bounds(s)
	if wanted = min(max(wanted, least), most); wanted != used {
		l.setCount(wanted)
	}
}

// moment is what had happened at some time.
type moment struct {
	samples           int64 // that came
	answers, failures int64 // of the endpoint
}

// setCount changes the number of shards in use.
func (l *shards) setCount(n int) {
	for _, g := range l.gatherers {
		g.Lock()
		defer g.Unlock()
	}
	for _, g := range l.gatherers {
		g.Commit()
	}
	l.e.Journal.Barrier()
	l.used.Store(int32(n))
	l.e.Log.Debug("uses another number of shards", "shards", n)
}

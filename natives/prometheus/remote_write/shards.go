package remotewrite

import (
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weir-run/weir/engine/batch"
)

const (
	// lateAfter is the age of a block from which more shards are used. It is also
	// the time between two increases, so that the first one can take effect.
	lateAfter = time.Second
	// calmFor is how long fewer shards must have been sufficient before their
	// number is reduced.
	calmFor = time.Minute
)

// shards distributes sources over the shards in use. Each shard has a request in
// flight and an open block. Requests are fuller if there are fewer shards, so
// only as many are used as needed to keep up. A shard that cannot keep up with
// one request at a time is spread over several when it is sent (spread.go).
//
// A change of the number of shards moves series between shards. Before the
// change, gathered samples are written, and a barrier in the journal keeps later
// blocks behind all earlier ones. Therefore, shards are added while few blocks
// are waiting: in the first second of an outage, not at its end.
type shards struct {
	e         *endpoint
	gatherers []*gatherer // one for each shard of the journal
	used      atomic.Int32
	came      atomic.Int64 // samples received

	mu    sync.Mutex
	since time.Time // when used was changed or was last found too small
	at    moment    // the counters at that time
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

// bounds returns the minimum and maximum number of shards to use. The journal may
// have fewer shards than the settings request, until a new one is created.
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

// review adjusts the number of shards in use. It is called after each group, when
// no gatherer is locked.
//
// More shards are used if blocks wait although the endpoint is fast, and as soon
// as the endpoint fails. If the endpoint is slow, the blocks of each shard are
// sent in several concurrent requests, whatever the number of shards (spread.go);
// a barrier would only delay the backlog. When no block is late, the number
// results from the rate of samples, the samples per request, and the latency.
func (l *shards) review() {
	l.mu.Lock()
	defer l.mu.Unlock()
	now, used := l.e.Clock.Now(), int(l.used.Load())
	s, latency := l.e.settings.Load(), l.e.latency()
	blocks, age := l.e.Journal.Waiting()
	late := blocks > 1 && age >= lateAfter+s.wait+2*latency // one latency for the previous request and one for its own
	span := now.Sub(l.since)
	if span < lateAfter || !late && span < calmFor {
		return
	}
	at := moment{l.came.Load(), l.e.answers.Load(), l.e.failures.Load()}
	busy := float64(at.samples-l.at.samples) / span.Seconds() / float64(s.maxSamples) * latency.Seconds() // number of shards
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

// moment contains the counters at some time.
type moment struct {
	samples           int64 // samples received
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

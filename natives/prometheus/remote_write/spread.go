package remotewrite

import (
	"context"
	"slices"
	"time"

	"github.com/weir-run/weir/engine/backoff"
	"github.com/weir-run/weir/engine/journal"
	"github.com/weir-run/weir/engine/outbox"
)

const (
	// spreadFrom is the minimum latency of an endpoint whose shards may be
	// spread. Splitting blocks costs CPU time, and with a faster endpoint, one
	// request at a time is sufficient.
	spreadFrom = 20 * time.Millisecond
	// spreadWait is how long samples of a spread shard wait for a full request.
	spreadWait = 500 * time.Millisecond
	// bins is the number of groups into which the series of a shard are divided.
	bins = 1024
	// maxSpreadBytes and maxSpreadBlocks limit the memory of a spread shard.
	maxSpreadBytes  = 64 << 20
	maxSpreadBlocks = 4096
)

// spread sends the blocks of a shard in several concurrent requests. A shard is
// spread while one request at a time is not sufficient: see endpoint.behind.
//
// It reads blocks ahead and divides their samples into bins by the labels of
// their series. A request takes all samples of some bins, which are busy until it
// is done. Therefore, each series is in one request at a time, and its samples
// stay in order, whatever the number of concurrent requests.
type spread struct {
	e     *endpoint
	shard int

	bins      map[binKey]*bin
	samples   int // samples in bins and in flight
	bytes     int
	inflight  int           // number of requests
	flights   []*flight     // blocks that were read and are not done
	last      journal.Block // the last block that was read
	buf       []byte
	exhausted bool // the journal had no further block
	leaving   bool // no more blocks are read
	done      chan *shipment
}

// binKey identifies a bin. Each header value has its own bins, because a request
// has one header.
type binKey struct {
	header, value string
	n             uint64
}

// bin is a queue of waiting samples, in order.
type bin struct {
	pieces []piece
	busy   bool
}

// shipment is a request of a spread shard.
type shipment struct {
	*writeRequest
	keys    []binKey // the bins that it contains
	samples int
	bytes   int
	ok      bool // accepted or rejected, so not in the journal any more
}

// mustSpread reports whether a shard is to be spread: its samples have waited for
// a long time, more are waiting than the request p can take, and the endpoint can
// take more concurrent requests. more is true if there is a block after p.
func (e *endpoint) mustSpread(s *settings, p *writeRequest, more bool) bool {
	if !more || e.latency() < spreadFrom || e.Clock.Now().Sub(time.UnixMilli(p.pieces[0].of.Time)) < lateAfter+s.wait {
		return false
	}
	return e.inflight.idle(s.requests) || p.all*10 < s.maxSamples*9
}

// spread sends the blocks of the shard, beginning with flights, until few are
// waiting. It returns false if ctx ended and blocks are left in the journal.
func (e *endpoint) spread(ctx, posting context.Context, shard int, flights []*flight) bool {
	e.spreading.Add(1)
	defer e.spreading.Add(-1)
	e.stats.spreads.Add(1)
	w := &spread{e: e, shard: shard, bins: map[binKey]*bin{}, done: make(chan *shipment)}
	for _, f := range flights {
		w.add(f)
		w.last = f.Block
	}
	w.last.Payload = nil // the payload belongs to the caller
	timer := e.Clock.NewTimer(time.Hour)
	defer timer.Stop()
	failed := false
	for {
		s := e.settings.Load()
		goesOn := !failed && e.Sending(ctx)
		if goesOn {
			w.fill(s)
		}
		ended := e.inflight.next()
		for goesOn && w.start(ctx, posting, s) {
			w.fill(s)
		}
		if w.inflight == 0 && (!goesOn || w.samples == 0) {
			return goesOn
		}
		var stopped <-chan struct{}
		if ctx.Err() == nil {
			stopped = ctx.Done()
		}
		timer.Reset(max(w.nextDue(s), time.Millisecond))
		select {
		case sh := <-w.done:
			w.finish(sh)
			failed = failed || !sh.ok
		case <-ended:
		case <-e.Journal.Woken(shard):
		case <-timer.C():
		case <-stopped:
		}
	}
}

// limit returns the maximum number of samples that a shard may have in memory:
// for each concurrent request, the samples in it and as many waiting ones.
func (w *spread) limit(s *settings) int {
	each := s.maxSamples + min(s.maxSamples, max(s.args.Queue.Capacity-s.maxSamples, s.maxSamples/4))
	return each * (1 + s.requests/max(int(w.e.spreading.Load()), 1))
}

// fill reads blocks ahead.
func (w *spread) fill(s *settings) {
	limit := w.limit(s)
	w.flights = slices.DeleteFunc(w.flights, func(f *flight) bool { return f.left.Load() <= 0 })
	for !w.leaving && w.samples < limit && w.bytes < maxSpreadBytes && len(w.flights) < maxSpreadBlocks {
		b, ok := w.e.Journal.TryAfter(w.last, w.buf)
		if !ok {
			w.exhausted = true
			w.leaving = w.samples <= s.maxSamples/2
			return
		}
		w.last, w.buf = b, b.Payload[:0]
		if f := w.e.openFlight(b); f != nil {
			w.add(f)
		}
	}
	w.exhausted = w.leaving
}

// add divides the samples of a block into bins.
func (w *spread) add(f *flight) {
	n := 0
	err := scan(f.body, f.message, func(data []byte, hash uint64, table *symbolTable) {
		key := binKey{f.header, f.value, hash >> 32 % bins}
		b := w.bins[key]
		if b == nil {
			b = &bin{}
			w.bins[key] = b
		}
		b.pieces = append(b.pieces, piece{of: f, data: data, table: table})
		w.bytes += len(data)
		n++
	})
	f.body, f.Payload = nil, nil // the buffer is reused
	w.samples += n
	f.left.Store(int64(n))
	w.flights = append(w.flights, f)
	if err != nil || n == 0 {
		w.e.Log.Error("a block of the journal cannot be read; it is lost", "samples", f.Samples-n, "err", err)
		w.e.Drop("cannot_encode", f.Samples-n)
		w.e.Journal.Done(f.Block, f.Samples-n)
	}
	if n == 0 {
		w.e.Journal.Ack(f.Block)
	}
}

// candidate is a set of bins that may be in the same request.
type candidate struct {
	form
	keys    []binKey
	samples int
	bytes   int
	first   journal.Block // the block of the sample that has waited longest
}

func (c *candidate) full(s *settings) bool {
	return c.samples >= s.maxSamples || c.bytes >= maxBlock
}

// candidates returns the bins that can be sent now, by form.
func (w *spread) candidates(s *settings) map[form]*candidate {
	all := map[form]*candidate{}
	for key, b := range w.bins {
		if b.busy {
			continue
		}
		of := b.pieces[0].of
		c := all[of.form()]
		if c == nil {
			c = &candidate{form: of.form(), first: of.Block}
			all[c.form] = c
		}
		if of.Seq < c.first.Seq {
			c.first = of.Block
		}
		c.keys = append(c.keys, key)
		for i := range b.pieces {
			if c.full(s) || b.pieces[i].of.message != c.message {
				break
			}
			c.samples++
			c.bytes += b.pieces[i].size()
		}
	}
	return all
}

// size returns the approximate number of bytes that a piece adds to a request,
// without symbols.
func (pc *piece) size() int { return len(pc.data) + 4 }

// start sends a request if there is one and the limit allows it.
func (w *spread) start(ctx, posting context.Context, s *settings) bool {
	var next *candidate
	for _, c := range w.candidates(s) {
		if !c.full(s) && ctx.Err() == nil && !w.leaving && (w.inflight > 0 || w.exhausted) && (!w.exhausted || w.wait(s, c.first) > 0) {
			continue
		}
		if next == nil || c.first.Seq < next.first.Seq {
			next = c
		}
	}
	if next == nil || !w.e.inflight.begin(s.requests) {
		return false
	}
	sh := w.buildRequest(s, next)
	w.inflight++
	go func() {
		defer func() { w.done <- sh }()
		w.e.Guard(func() { sh.ok = w.e.deliver(ctx, posting, sh.writeRequest, new(backoff.Pauses)) })()
	}()
	return true
}

// buildRequest builds a request from the samples that have waited longest.
func (w *spread) buildRequest(s *settings, c *candidate) *shipment {
	slices.SortFunc(c.keys, func(a, b binKey) int {
		return int(int64(w.bins[a].pieces[0].of.Seq - w.bins[b].pieces[0].of.Seq))
	})
	sh := &shipment{writeRequest: &writeRequest{slot: true}}
	symbols := map[*symbolTable]bool{}
	size := 0
	for _, key := range c.keys {
		b := w.bins[key]
		// The rest of a divided bin has to wait until the request is done.
		// Therefore, a bin is divided only if the request would otherwise be far
		// from full.
		if sh.all+len(b.pieces) > s.maxSamples && sh.all*10 >= s.maxSamples*9 {
			continue
		}
		n := 0
		for ; n < len(b.pieces) && b.pieces[n].of.message == c.message && sh.all < s.maxSamples; n++ {
			pc := b.pieces[n]
			size += pc.size()
			if pc.table != nil && !symbols[pc.table] {
				symbols[pc.table] = true
				size += pc.table.size
			}
			if size > maxBlock && sh.all > 0 {
				break
			}
			sh.add(pc, 1)
			sh.bytes += len(pc.data)
		}
		if n > 0 {
			b.busy = true
			b.pieces = b.pieces[n:]
			sh.keys = append(sh.keys, key)
		}
		if sh.all == s.maxSamples || size > maxBlock {
			break
		}
	}
	sh.samples = sh.all
	slices.SortStableFunc(sh.pieces, func(a, b piece) int { return int(int64(a.of.Seq - b.of.Seq)) })
	return sh
}

// finish frees the bins of a request that has ended.
func (w *spread) finish(sh *shipment) {
	w.inflight--
	w.samples -= sh.samples
	w.bytes -= sh.bytes
	for _, key := range sh.keys {
		b := w.bins[key]
		b.busy = false
		if len(b.pieces) == 0 {
			delete(w.bins, key)
		}
	}
}

// patience returns how long samples wait for a full request. They wait longer
// while some shard has a backlog and the limit of concurrent requests is reached,
// because an incomplete request would take the place of a full one.
func (e *endpoint) patience(s *settings) time.Duration {
	if e.spreading.Load() == 0 || e.inflight.idle(s.requests) {
		return s.wait
	}
	return s.wait + 2*e.latency()
}

// wait returns how much longer a block may wait for a full request.
func (w *spread) wait(s *settings, b journal.Block) time.Duration {
	return outbox.Remaining(b, max(w.e.patience(s), spreadWait), w.e.Clock.Now())
}

// nextDue returns the time until an incomplete request is to be sent.
func (w *spread) nextDue(s *settings) time.Duration {
	due := time.Hour
	for _, c := range w.candidates(s) {
		if left := w.wait(s, c.first); left > 0 {
			due = min(due, left)
		}
	}
	return due
}

package outbox

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"github.com/cespare/xxhash/v2"

	"github.com/weir-run/weir/engine/backoff"
	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/journal"
)

// Offer contains the records of one delivery.
type Offer struct {
	Batch
	// ID is unique and is the same for every attempt to deliver the same records
	// in this process. If the records change, the ID changes. After a crash,
	// records may be offered again together with different records.
	ID string
	// Attempt starts at 1.
	Attempt int

	parts []int // for each block of the shard with records in the offer: the end of its rows
}

// shard contains the blocks and the offer in flight of one shard of the
// journal. Only the session that holds Queue.sending uses it, in one goroutine
// at a time.
type shard struct {
	q      *Queue
	number int
	source uint64 // of its batches
	blocks []block
	offer  *Offer  // nil if there is none
	bounds [2]int  // of the offer: records, bytes
	reader *Reader // nil until the first send
	pauses backoff.Pauses
}

// block is a block in flight: some of its records are not done.
type block struct {
	journal.Block // without the payload
	Batch
	size int    // approximate size of its records in bytes
	sum  uint64 // of the payload
	from int    // the rows below this are done
	done int    // number of the offer's rows that are done
}

// next creates the next offer unless there is one, and reports whether there is
// one. There is none if ctx ended and the shard is empty.
func (l *shard) next(ctx context.Context, s *QueueSettings) bool {
	bounds := [2]int{s.MaxRecords, s.MaxBytes}
	if l.offer != nil && l.bounds == bounds {
		return true
	}
	// The session has other limits. The offer may be larger than the sink accepts.
	l.offer, l.bounds = nil, bounds
	rows, bytes := 0, 0
	var parts []int
	behind, stop := l.reader.Follow(ctx)
	defer stop()
	for i := 0; ; i++ {
		if i == len(l.blocks) && !l.takeBlock(ctx, s, behind) {
			break
		}
		b := &l.blocks[i]
		if b.Signal() != l.blocks[0].Signal() {
			break
		}
		each := max(b.size/b.Len(), 1)
		n := min(b.Len()-b.from, s.MaxRecords-rows, (s.MaxBytes-bytes)/each)
		if n <= 0 && rows > 0 {
			break
		}
		n = max(n, 1)
		parts = append(parts, b.from+n)
		rows, bytes = rows+n, bytes+n*each
		if b.from+n < b.Len() || rows >= s.MaxRecords || bytes >= s.MaxBytes {
			break
		}
	}
	if len(parts) == 0 {
		return false
	}
	bs := make([]Batch, len(parts))
	id := sha256.New()
	for i, to := range parts {
		b := &l.blocks[i]
		bs[i] = b.withRows(batch.RowsBetween(b.from, to))
		fmt.Fprintln(id, b.Seq, b.Time, b.sum, b.from, to)
	}
	l.offer = &Offer{Batch: join(bs), ID: hex.EncodeToString(id.Sum(nil)[:16]), parts: parts}
	return true
}

// takeBlock takes the shard's next block. It waits for the first block until
// ctx ends, and for further blocks until the first is old enough.
func (l *shard) takeBlock(ctx context.Context, s *QueueSettings, behind Behind) bool {
	for {
		var b journal.Block
		var ok bool
		if n := len(l.blocks); n == 0 {
			b, ok = l.reader.Next(ctx)
		} else {
			b, ok = behind(l.blocks[0].Block, l.blocks[n-1].Block, s.MaxWait)
		}
		if !ok {
			return false
		}
		l.reader.Free(b) // unpack copies it
		content, size, err := unpack(b, l.source, l.q.handles, l.q.Clock.Now())
		if err != nil {
			l.q.Log.Error("a block of the journal cannot be sent; it is lost", "records", b.Samples, "err", err)
			l.q.CountLost(signalOf(b.Kind), reasonUnreadable, b.Samples)
			l.q.Journal.Ack(b)
			continue
		}
		sum := xxhash.Sum64(b.Payload)
		b.Payload = nil
		l.blocks = append(l.blocks, block{Block: b, Batch: content, size: size, sum: sum})
		return true
	}
}

// done records that more records of the offer are done.
func (l *shard) done(records int) {
	for i, to := range l.offer.parts {
		b := &l.blocks[i]
		n := min(records, to-b.from-b.done)
		b.done += n
		l.q.Journal.Done(b.Block, n)
		records -= n
	}
}

// finish finishes the records of the offer.
func (l *shard) finish() {
	for i, to := range l.offer.parts {
		l.blocks[i].from, l.blocks[i].done = to, 0
	}
	l.offer = nil
	done := 0
	for done < len(l.blocks) && l.blocks[done].from == l.blocks[done].Len() {
		l.q.Journal.Ack(l.blocks[done].Block)
		done++
	}
	rest := copy(l.blocks, l.blocks[done:])
	clear(l.blocks[rest:])
	l.blocks = l.blocks[:rest]
}

// keeps reports whether the whole offer must still be sent. If not, it removes
// the offer and the blocks that exceeded a limit.
func (l *shard) keeps() bool {
	kept := l.blocks[:0]
	for _, b := range l.blocks {
		if l.q.Journal.Keeps(b.Block) {
			kept = append(kept, b)
		}
	}
	if len(kept) == len(l.blocks) {
		return true
	}
	clear(l.blocks[len(kept):])
	l.blocks, l.offer = kept, nil
	return false
}

// setRows keeps only the given rows in the offer, ascending. The offer then
// gets a new ID.
func (o *Offer) setRows(left []int) {
	if len(left) == o.Len() {
		return
	}
	var rows batch.Rows
	for _, row := range left {
		rows.Add(row)
	}
	o.Batch = o.withRows(rows)
	sum := sha256.Sum256(fmt.Appendln([]byte(o.ID), left))
	o.ID = hex.EncodeToString(sum[:16])
}

// Part returns the rows i with from <= i < to as a separate offer. Its ID is
// derived from o's ID and the rows, so it is the same for every attempt, and
// after a restart if o's ID is. If these are all rows, it returns o itself.
func (o *Offer) Part(from, to int) *Offer {
	part := *o
	part.parts = nil
	if to-from < o.Len() {
		part.Batch = o.withRows(batch.RowsBetween(from, to))
		sum := sha256.Sum256(fmt.Appendln([]byte(o.ID), from, to))
		part.ID = hex.EncodeToString(sum[:16])
	}
	return &part
}

// NewID returns an ID for an offer that does not belong to a shard.
func NewID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // it never fails
	return hex.EncodeToString(b[:])
}

package outbox

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/clock"
	"github.com/weir-run/weir/engine/journal"
)

// MaxInFlight is the most offers of one signal that can be under way at once.
const MaxInFlight = 8

// journalShards are those of every journal: metrics, then logs.
const journalShards = 2 * MaxInFlight

func firstShard(s batch.Signals) int {
	if s == batch.SignalLogs {
		return MaxInFlight
	}
	return 0
}

// QueueSettings are what an instance of a sink wants of its queue.
type QueueSettings struct {
	Owner  journal.Owner
	Limits journal.Limits
	// An offer has at most so many records, and about so many bytes of them, but
	// one record at least.
	MaxRecords int
	MaxBytes   int
	// MaxWait is how long records wait for more of them.
	MaxWait time.Duration
	// InFlight is how many offers of one signal are under way at once, 1 to
	// MaxInFlight.
	InFlight int
	Split    Split
}

// spread says which shard records go to: more than one kind of it must not be in
// a journal without a barrier between them.
func (s *QueueSettings) spread() string {
	return fmt.Sprintf("%d %v %s", s.InFlight, s.Split.Series, strings.Join(s.Split.By, "\x00"))
}

// QueueOptions are what a queue needs for all its life.
type QueueOptions struct {
	Root   string // of the journals
	Clock  clock.Clock
	Logger *slog.Logger
	// Changed is called when Err may be another.
	Changed func()
}

// Queue is the queue of one node. Accept and the figures are safe for concurrent
// use. Make it with NewQueue.
type Queue struct {
	o       QueueOptions
	handles *batch.Interner
	counts  counts
	back    comeback
	shards  [journalShards]*shard // of who has sending

	keeping chan struct{} // capacity 1: who has it keeps the journal open
	sending chan struct{} // capacity 1: who has it sends

	mu      sync.Mutex
	openErr error

	// calls is held by Accept while it uses the journal, and by whoever changes
	// what is below.
	calls    sync.RWMutex
	began    int              // sessions
	newest   uint64           // number of one that began
	journal  *journal.Journal // nil: it is not open
	settings *QueueSettings   // of the newest session
	opened   chan struct{}    // closed while the journal is open
}

// handleTTL is how long the handle of a series is kept that does not come again.
const handleTTL = 10 * time.Minute

// NewQueue returns a queue. It does nothing until a session begins.
func NewQueue(o QueueOptions) *Queue {
	q := &Queue{
		o: o, handles: batch.NewInterner(handleTTL), keeping: make(chan struct{}, 1), sending: make(chan struct{}, 1),
		opened: make(chan struct{}),
	}
	q.reset()
	return q
}

// reset forgets what is under way.
func (q *Queue) reset() {
	q.handles.Clear()
	for i := range q.shards {
		q.shards[i] = &shard{q: q, number: i, source: batch.NewPushSource()}
	}
}

// ErrStopped is what Accept returns when the sink has stopped.
var ErrStopped = errors.New("the sink has stopped")

// Accept returns when b is in the journal. An error means that nothing of it is.
// It waits while the journal is not open or is full, until stopped is closed.
func (q *Queue) Accept(ctx context.Context, stopped <-chan struct{}, b Batch) error {
	for {
		accepted, err := q.append(b)
		if accepted || err != nil {
			return err
		}
		if err := q.room(ctx, stopped); err != nil {
			return err
		}
	}
}

// append writes b to the journal if that is open and has room.
func (q *Queue) append(b Batch) (accepted bool, err error) {
	q.calls.RLock()
	defer q.calls.RUnlock()
	if q.journal == nil || q.journal.Full() {
		return false, nil
	}
	w := pool.Get().(*buffers)
	defer w.free()
	return true, q.journal.Append(q.pack(w, b)...)
}

// room waits until the journal is open, or has room if it is. It holds nothing
// that others wait for.
func (q *Queue) room(ctx context.Context, stopped <-chan struct{}) error {
	q.calls.RLock()
	j, opened := q.journal, q.opened
	q.calls.RUnlock()
	if j == nil {
		select {
		case <-opened:
			return nil
		case <-stopped:
			return ErrStopped
		case <-ctx.Done():
			return fmt.Errorf("the journal is not open: %w", context.Cause(ctx))
		}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	var watch sync.WaitGroup
	defer watch.Wait()
	defer cancel(nil)
	watch.Go(func() {
		select {
		case <-stopped:
			cancel(ErrStopped)
		case <-ctx.Done():
		}
	})
	return j.Room(ctx)
}

// Session is one instance's use of the queue.
type Session struct {
	q *Queue
	s *QueueSettings
}

// Begin begins a session. number is ascending with the instances of a node:
// the settings of the highest are those in effect, whichever began last.
func (q *Queue) Begin(number uint64, s QueueSettings) *Session {
	q.calls.Lock()
	defer q.calls.Unlock()
	q.began++
	if old := q.settings; old == nil || number >= q.newest {
		q.newest, q.settings = number, &s
		if q.journal != nil {
			if old.spread() != s.spread() {
				q.journal.Barrier()
			}
			q.configure()
		}
	}
	return &Session{q: q, s: &s}
}

// configure gives the journal its limits. calls is held.
func (q *Queue) configure() {
	if err := q.journal.Configure(q.settings.Owner, q.settings.Limits); err != nil {
		q.o.Logger.Warn("cannot note in the journal what it is for and its limits; they are in effect", "err", err)
	}
}

// End ends a session, whose other methods have returned. The journal is closed
// when it was the last.
func (s *Session) End() {
	q := s.q
	q.calls.Lock()
	defer q.calls.Unlock()
	if q.began--; q.began > 0 {
		return
	}
	if q.journal == nil {
		return
	}
	if err := q.journal.Close(); err != nil {
		q.o.Logger.Error("the journal did not close well", "err", err)
	}
	q.counts.closed(q.journal.Stats())
	q.journal, q.opened = nil, make(chan struct{})
	q.reset()
}

// Keep opens the journal, again and again with back-off, and looks after it until
// ctx ends. While another session does so, it waits.
func (s *Session) Keep(ctx context.Context) {
	q := s.q
	select {
	case q.keeping <- struct{}{}:
		defer func() { <-q.keeping }()
	case <-ctx.Done():
		return
	}
	for backoff := time.Second; ; backoff = min(2*backoff, 30*time.Second) {
		j, err := q.open(ctx)
		if j != nil {
			_ = j.Run(ctx) // it has no error
			return
		}
		if ctx.Err() != nil {
			return
		}
		q.mu.Lock()
		first := q.openErr == nil
		q.openErr = err
		q.mu.Unlock()
		if first {
			q.o.Logger.Error("cannot open the journal; its sources wait", "err", err)
		}
		q.o.Changed()
		if clock.Sleep(ctx, q.o.Clock, backoff) != nil {
			return
		}
	}
}

// open returns the open journal.
func (q *Queue) open(ctx context.Context) (*journal.Journal, error) {
	q.calls.RLock()
	j, s := q.journal, q.settings
	q.calls.RUnlock()
	if j != nil {
		return j, nil
	}
	j, err := journal.Claim(ctx, q.o.Root, journal.Options{
		Shards: journalShards, Limits: s.Limits, Owner: s.Owner, Clock: q.o.Clock, Logger: q.o.Logger,
	})
	if err == nil && j.Shards() != journalShards {
		err = fmt.Errorf("it has %d shards and not %d: another component's blocks are in it", j.Shards(), journalShards)
		j.Close()
	}
	if err != nil {
		return nil, err
	}
	q.calls.Lock()
	defer q.calls.Unlock()
	q.mu.Lock()
	failed := q.openErr != nil
	q.openErr = nil
	q.mu.Unlock()
	q.journal = j
	if q.settings != s {
		q.configure()
	}
	close(q.opened)
	if failed {
		q.o.Logger.Info("the journal is open")
		q.o.Changed()
	}
	return j, nil
}

// Err says why the journal cannot be opened or written, nil when it can or nobody
// has tried.
func (q *Queue) Err() error {
	q.mu.Lock()
	err := q.openErr
	q.mu.Unlock()
	if err != nil {
		return fmt.Errorf("cannot open the journal: %w", err)
	}
	q.calls.RLock()
	defer q.calls.RUnlock()
	if q.journal == nil {
		return nil
	}
	return q.journal.Unwritten()
}

// Dir returns the journal's directory, "" when it is not open.
func (q *Queue) Dir() string {
	q.calls.RLock()
	defer q.calls.RUnlock()
	if q.journal == nil {
		return ""
	}
	return q.journal.Dir()
}

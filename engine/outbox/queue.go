package outbox

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

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
	// Reasons are why deliveries lose records, in addition to the journal's reasons
	// and those of the queue. Records of an Outcome that are lost for another reason
	// are kept elsewhere, and are not counted as lost.
	Reasons []string
	// Metrics are those that Collect sends.
	Metrics *Metrics
	// Changed is called when Err may have changed.
	Changed func()
}

// Queue is the outbox of a scripted sink. It belongs to a node. Accept and the
// figures are safe for concurrent use. Make it with NewQueue.
type Queue struct {
	Outbox
	metrics *Metrics
	handles *batch.Interner
	shards  [journalShards]*shard // belong to the session that has sending

	keeping chan struct{} // capacity 1: the session that has it keeps the journal open
	sending chan struct{} // capacity 1: the session that has it sends

	// calls guards:
	began    int            // sessions
	newest   uint64         // number of one that began
	settings *QueueSettings // of the newest session
}

// handleTTL is how long the handle of a series is kept that does not come again.
const handleTTL = 10 * time.Minute

// reasonUnreadable is of blocks with damage that the journal did not find.
const reasonUnreadable = "unreadable"

// NewQueue returns a queue. It does nothing until a session begins.
func NewQueue(o QueueOptions) *Queue {
	q := &Queue{metrics: o.Metrics, handles: batch.NewInterner(handleTTL), keeping: make(chan struct{}, 1), sending: make(chan struct{}, 1)}
	q.init(options{root: o.Root, rows: "records", stopping: ErrStopped, changed: o.Changed, shards: journalShards}, o.Logger, o.Clock,
		slices.Concat(o.Reasons, journal.DropReasons, []string{reasonUnreadable}), signalOf)
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
		if err := q.Room(ctx, stopped); err != nil {
			return err
		}
	}
}

// append writes b to the journal if that is open and has room.
func (q *Queue) append(b Batch) (accepted bool, err error) {
	if !q.Enter() {
		return false, nil
	}
	defer q.Leave()
	if q.Journal.Full() {
		return false, nil
	}
	w := pool.Get().(*buffers)
	defer w.free()
	return true, q.Journal.Append(q.pack(w, b)...)
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
		if q.Journal != nil && old.spread() != s.spread() {
			q.Journal.Barrier()
		}
		q.configure(config{owner: s.Owner, limits: s.Limits})
	}
	return &Session{q: q, s: &s}
}

// End ends a session, whose other methods have returned. The journal is closed
// when it was the last.
func (s *Session) End() {
	q := s.q
	q.calls.Lock()
	defer q.calls.Unlock()
	if q.began--; q.began == 0 {
		q.close()
		q.reset()
	}
}

// Keep opens the journal and looks after it until ctx ends. While another session
// does so, it waits.
func (s *Session) Keep(ctx context.Context) {
	q := s.q
	select {
	case q.keeping <- struct{}{}:
		defer func() { <-q.keeping }()
	case <-ctx.Done():
		return
	}
	if q.open(ctx, func() int { return journalShards }, nil) {
		_ = q.Journal.Run(ctx) // it has no error
	}
}

// Collect sends the metrics of the queue and of its journal. endpoint is the label
// of those of the journal.
func (q *Queue) Collect(ch chan<- prometheus.Metric, endpoint string) {
	q.collect(ch, q.metrics, endpoint)
}

// NewQueueMetrics returns the metrics of a scripted sink. They have no label
// endpoint.
func NewQueueMetrics() *Metrics {
	return newMetrics("weir_script_sink_", "records", "Samples and log lines", "")
}

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

// MaxInFlight is the maximum number of offers of one signal in flight.
const MaxInFlight = 8

// journalShards is the number of shards of every journal: first metrics, then
// logs.
const journalShards = 2 * MaxInFlight

func firstShard(s batch.Signals) int {
	if s == batch.SignalLogs {
		return MaxInFlight
	}
	return 0
}

// QueueSettings are the settings of a sink instance for its queue.
type QueueSettings struct {
	Owner  journal.Owner
	Limits journal.Limits
	// An offer has at most MaxRecords records and about MaxBytes bytes, but at
	// least one record.
	MaxRecords int
	MaxBytes   int
	// MaxWait is how long records wait for more records.
	MaxWait time.Duration
	// InFlight is the number of offers of one signal in flight, 1 to MaxInFlight.
	InFlight int
	Split    Split
}

// spread identifies how records are assigned to shards. A journal must not
// contain records of different assignments without a barrier between them.
func (s *QueueSettings) spread() string {
	return fmt.Sprintf("%d %v %s", s.InFlight, s.Split.Series, strings.Join(s.Split.By, "\x00"))
}

// QueueOptions do not change during the life of a queue.
type QueueOptions struct {
	Root   string // directory of the journals
	Clock  clock.Clock
	Logger *slog.Logger
	// Reasons are the reasons why deliveries lose records, in addition to those of
	// the journal and of the queue. Records of an Outcome with another reason are
	// stored elsewhere and are not counted as lost.
	Reasons []string
	// Metrics are the metrics that Collect sends.
	Metrics *Metrics
	// Changed is called when Err may have changed.
	Changed func()
}

// Queue is the outbox of a scripted sink. It belongs to a node. Accept and the
// statistics are safe for concurrent use. Create it with NewQueue.
type Queue struct {
	Outbox
	metrics *Metrics
	handles *batch.Interner
	shards  [journalShards]*shard // belong to the session that holds sending

	keeping chan struct{} // capacity 1: the session that holds it keeps the journal open
	sending chan struct{} // capacity 1: the session that holds it sends

	// calls guards:
	began    int            // number of sessions
	newest   uint64         // highest session number so far
	settings *QueueSettings // of the newest session
}

// handleTTL is how long the handle of an unused series is kept.
const handleTTL = 10 * time.Minute

// reasonUnreadable is the reason for blocks with damage that the journal did
// not detect.
const reasonUnreadable = "unreadable"

// NewQueue returns a queue. It does nothing until a session begins.
func NewQueue(o QueueOptions) *Queue {
	q := &Queue{metrics: o.Metrics, handles: batch.NewInterner(handleTTL), keeping: make(chan struct{}, 1), sending: make(chan struct{}, 1)}
	q.init(options{root: o.Root, rows: "records", stopping: ErrStopped, changed: o.Changed, shards: journalShards}, o.Logger, o.Clock,
		slices.Concat(o.Reasons, journal.DropReasons, []string{reasonUnreadable}), signalOf)
	q.reset()
	return q
}

// reset discards all offers in flight.
func (q *Queue) reset() {
	q.handles.Clear()
	for i := range q.shards {
		q.shards[i] = &shard{q: q, number: i, source: batch.NewPushSource()}
	}
}

// ErrStopped is the error of Accept after the sink has stopped.
var ErrStopped = errors.New("the sink has stopped")

// Accept returns nil when b is in the journal. If it returns an error, no part
// of b is in the journal. It waits while the journal is not open or is full,
// until stopped is closed.
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

// append writes b to the journal if it is open and has room.
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

// Session is the use of the queue by one instance.
type Session struct {
	q *Queue
	s *QueueSettings
}

// Begin begins a session. number increases with each instance of a node. The
// settings of the session with the highest number apply, in whatever order the
// sessions begin.
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

// End ends a session. Its other methods must have returned. If it was the last
// session, the journal is closed.
func (s *Session) End() {
	q := s.q
	q.calls.Lock()
	defer q.calls.Unlock()
	if q.began--; q.began == 0 {
		q.close()
		q.reset()
	}
}

// Keep opens the journal and maintains it until ctx ends. It waits while
// another session does this.
func (s *Session) Keep(ctx context.Context) {
	q := s.q
	select {
	case q.keeping <- struct{}{}:
		defer func() { <-q.keeping }()
	case <-ctx.Done():
		return
	}
	if q.open(ctx, func() int { return journalShards }, nil) {
		_ = q.Journal.Run(ctx) // it returns no error
	}
}

// Collect sends the metrics of the queue and of its journal. endpoint is the
// label of the journal's metrics.
func (q *Queue) Collect(ch chan<- prometheus.Metric, endpoint string) {
	q.collect(ch, q.metrics, endpoint)
}

// NewQueueMetrics returns the metrics of a scripted sink. They have no label
// endpoint.
func NewQueueMetrics() *Metrics {
	return newMetrics("weir_script_sink_", "records", "Samples and log lines", "")
}

package outbox

import (
	"fmt"
	"maps"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/journal"
)

// Account counts what became of an endpoint's rows. The zero value is ready; it
// is safe for concurrent use.
type Account struct {
	Sent, Retried atomic.Int64 // rows
	Bytes         atomic.Int64 // of requests that were accepted
	Seconds       Seconds

	mu      sync.Mutex
	dropped map[string]int64 // but for what the journal counts

	counting       sync.Mutex
	countedSent    int64            // of Sent, told to Options.Stats
	countedDropped map[string]int64 // of Remote.Dropped, told to Options.Stats
}

// Drop counts rows that will not be sent, for one of the Kind's reasons.
func (a *Account) Drop(reason string, n int) {
	if n == 0 {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.dropped == nil {
		a.dropped = map[string]int64{}
	}
	a.dropped[reason] += int64(n)
}

// Dropped returns the rows dropped by reason, and the journal's figures.
func (b *Remote) Dropped() (map[string]int64, journal.Stats) {
	var st journal.Stats
	if j := b.current(); j != nil {
		st = j.Stats()
	}
	a := &b.Account
	a.mu.Lock()
	defer a.mu.Unlock()
	all := make(map[string]int64, len(b.kind.Reasons))
	for _, reason := range b.kind.Reasons {
		all[reason] = 0
	}
	maps.Copy(all, a.dropped)
	for reason, n := range st.DroppedSamples {
		all[reason] += n
	}
	return all, st
}

// Queue returns how many rows are in the journal and not done, and how many have
// left it. It tells the node's figures what was sent and dropped since the last call.
func (b *Remote) Queue() component.Queue {
	b.counting.Lock()
	defer b.counting.Unlock()
	all, st := b.Dropped()
	q := component.Queue{Name: "endpoint " + b.label, Waiting: st.Samples}
	for reason, n := range all {
		b.o.Stats.CountDropped(b.kind.Signal, reason, int(n-b.countedDropped[reason]))
		q.Left += uint64(n)
	}
	b.countedDropped = all
	sent := b.Sent.Load()
	b.o.Stats.CountOut(b.kind.Signal, int(sent-b.countedSent))
	b.countedSent = sent
	q.Left += uint64(sent)
	return q
}

// Metrics are those of a component's outboxes.
type Metrics struct{ sent, retried, dropped, bytes, seconds, pending *prometheus.Desc }

// NewMetrics returns those whose names begin with weir_ and name, and that count
// rows of a name such as "lines". note is added to what is said of dropped ones.
func NewMetrics(name, rows, note string) *Metrics {
	name = "weir_" + name + "_"
	of := strings.ToUpper(rows[:1]) + rows[1:]
	return &Metrics{
		sent:    desc(name+rows+"_sent_total", of+" that the endpoint accepted."),
		retried: desc(name+rows+"_retried_total", of+" sent again because the request before was not answered well."),
		dropped: desc(name+rows+"_dropped_total", of+" that were taken in and will never arrive at the endpoint, by reason."+note, "reason"),
		bytes:   desc(name+"sent_bytes_total", "Bytes of request bodies that the endpoint accepted."),
		seconds: desc(name+"send_seconds", "Time from a request to its answer, by outcome.", "outcome"),
		pending: desc(name+rows+"_pending", of+" in the journal that the endpoint has not accepted yet."),
	}
}

// Describe sends the descriptions of what Remote.Collect sends.
func (m *Metrics) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{m.sent, m.retried, m.dropped, m.bytes, m.seconds, m.pending} {
		ch <- d
	}
	Describe(ch)
}

// Collect sends the figures of the endpoint and of its journal.
func (b *Remote) Collect(ch chan<- prometheus.Metric) {
	m := b.kind.Metrics
	counter := func(d *prometheus.Desc, v int64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(v), append([]string{b.label}, labels...)...)
	}
	counter(m.sent, b.Sent.Load())
	counter(m.retried, b.Retried.Load())
	counter(m.bytes, b.Bytes.Load())
	b.Seconds.Collect(ch, m.seconds, b.label)
	dropped, st := b.Dropped()
	for reason, n := range dropped {
		counter(m.dropped, n, reason)
	}
	ch <- prometheus.MustNewConstMetric(m.pending, prometheus.GaugeValue, float64(st.Samples), b.label)
	Collect(ch, b.label, st, b.Clock.Now())
}

// Debug is what the page shows of an endpoint, whatever it sends.
type Debug struct {
	Journal string // its directory, "" while it is not open
	journal.Stats
	OldestAge     string
	Dropped       map[string]int64
	LastError     string
	LastErrorTime time.Time
}

// Debug returns the state.
func (b *Remote) Debug() Debug {
	d := Debug{OldestAge: "0s"}
	d.Dropped, d.Stats = b.Dropped()
	if !d.Stats.Oldest.IsZero() {
		d.OldestAge = b.Clock.Now().Sub(d.Stats.Oldest).Round(time.Second).String()
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.opened != nil {
		d.Journal = b.opened.Dir()
	}
	if b.lastErr != nil {
		d.LastError, d.LastErrorTime = component.HideURLs(b.lastErr.Error()), b.lastTime
	} else if b.openErr != nil {
		d.LastError = b.openErr.Error()
	}
	return d
}

// Failed notes that something is to be sent again, and why.
func (b *Remote) Failed(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.failing = true
	b.lastErr, b.lastTime = err, b.Clock.Now()
}

// Answered notes that a request was answered for good: whether some of it was
// taken, and why not all of it, nil if all was.
func (b *Remote) Answered(taken bool, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.failing && taken {
		b.failing = false
		if b.back != nil {
			close(b.back)
			b.back = nil
		}
	}
	if err != nil {
		b.lastErr, b.lastTime = err, b.Clock.Now()
	}
}

// Comeback returns a channel that is closed when the endpoint next takes
// something after it did not.
func (b *Remote) Comeback() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.back == nil {
		b.back = make(chan struct{})
	}
	return b.back
}

// JournalProblem returns why the journal cannot be opened or written, nil if it
// can.
func (b *Remote) JournalProblem() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	err := b.openErr
	if err == nil && b.opened != nil {
		err = b.opened.Unwritten()
	}
	if err != nil {
		return fmt.Errorf("endpoint %s: %w", b.label, err)
	}
	return nil
}

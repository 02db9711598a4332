// Package intake is what components have in common that are sent records by
// HTTP and answer 2xx only when every receiver has accepted them: a Desk, at which
// bodies are read within a budget of memory, those that were late are remembered
// so that a retry is sent once, and shards send what several requests brought.
//
// It is not a component, and the HTTP server is natives/server. The rule to know:
// a Request outlives its client, which may come back for it.
package intake

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/clock"
	"github.com/weir-run/weir/engine/flow"
)

// Desk is where the requests of a component come in and wait for their answers.
// Each of its fields may be used by any number of requests at a time.
type Desk[A any, B comparable] struct {
	Budget   Budget
	Pending  Pending[A]
	InFlight atomic.Int64 // requests that are being read or wait

	Answers  *prometheus.CounterVec // by outcome
	Received prometheus.Counter     // bytes of bodies, as they came
	Bodies   prometheus.Counter     // bytes of bodies, decompressed
	Joined   prometheus.Counter     // requests that Pending knew

	name     string
	clock    clock.Clock
	signal   Signal[B]
	shards   [Shards]*shard[A, B]
	stopping chan struct{} // closed when requests are to be answered soon
}

// NewDesk returns a Desk whose shards send to what output returns. The names of
// its metrics begin with name, such as weir_source_api.
func NewDesk[A any, B comparable](name string, signal Signal[B], c clock.Clock, output func() *flow.Output) *Desk[A, B] {
	counter := func(what, help string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{Name: name + what, Help: help})
	}
	d := &Desk[A, B]{
		Answers: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: name + "_requests_total",
			Help: "Requests by how they were answered.",
		}, []string{"outcome"}),
		Received: counter("_received_bytes_total", "Bytes of the request bodies that were read, before decompression."),
		Bodies:   counter("_body_bytes_total", "Bytes of the bodies that were read, decompressed."),
		Joined:   counter("_repeated_requests_total", "Repeated requests: their body was being processed already, or had been accepted although the client did not receive the response."),
		name:     name, clock: c, signal: signal, stopping: make(chan struct{}),
	}
	for i := range d.shards {
		d.shards[i] = newShard[A](signal, c, output, batch.NewPushSource())
	}
	for _, o := range Outcomes {
		d.Answers.WithLabelValues(o)
	}
	return d
}

// Metrics returns what is counted, with what connections returns as a gauge.
func (d *Desk[A, B]) Metrics(connections, limitReached func() int) []prometheus.Collector {
	return []prometheus.Collector{
		d.Answers, d.Received, d.Bodies, d.Joined,
		d.Gauge("_inflight_bytes", "Memory reserved for requests that are not answered.", func() int { return int(d.Budget.Used()) }),
		d.Gauge("_inflight_requests", "Requests that are being read or wait to be accepted.", func() int { return int(d.InFlight.Load()) }),
		d.Gauge("_connections", "Open connections.", connections),
		prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: d.name + "_connection_limit_total", Help: "How often as many connections were open as conn_limit allows; further ones wait until one ends.",
		}, func() float64 { return float64(limitReached()) }),
	}
}

// Gauge returns one more metric.
func (d *Desk[A, B]) Gauge(what, help string, value func() int) prometheus.Collector {
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: d.name + what, Help: help}, func() float64 { return float64(value()) })
}

// Handler serves requests by serve, which answers those that it accepts and
// returns the answer to the others.
func (d *Desk[A, B]) Handler(log *slog.Logger, serve func(http.ResponseWriter, *http.Request) *Refusal) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() { // net/http would cut the connection and tell nobody
			if v := recover(); v != nil {
				log.Error("BUG: a request made its handler panic", "client", r.RemoteAddr, "err", v, "stack", string(debug.Stack()))
				d.Answers.WithLabelValues(Panic).Inc()
				http.Error(w, "the request made its handler panic, see the log", http.StatusInternalServerError)
			}
		}()
		if e := serve(w, r); e != nil {
			e.Write(w)
			d.Answers.WithLabelValues(e.Outcome).Inc()
		}
	})
}

// Take hands the parts of a body to the shards, and makes the request known.
// byShard has a part for each shard; one that is nil or empty is none. free is
// called when all parts have settled.
func (d *Desk[A, B]) Take(key Key, a A, byShard []B, free func()) *Request[A] {
	var none B
	empty := func(b B) bool { return b == none || d.signal.Len(b) == 0 }
	parts := 0
	for _, b := range byShard {
		if !empty(b) {
			parts++
		}
	}
	req := newRequest(key, a, parts, free)
	d.Pending.add(req)
	for i, b := range byShard {
		if !empty(b) {
			d.shards[i].add(req, b)
		}
	}
	return req
}

// Waiting is how long a client waits for its answer.
type Waiting struct {
	What         string // was sent, in the plural: samples
	Since        time.Time
	Most         time.Duration
	WriteTimeout time.Duration // the server's; 0 for none
}

// Await returns nil when all of req was accepted, and else what to answer.
func (d *Desk[A, B]) Await(w Waiting, r *http.Request, req *Request[A]) *Refusal {
	wait := w.Most
	if t := w.WriteTimeout; t > 0 {
		// An answer that comes after the timeout does not leave any more.
		wait = min(wait, t*3/4-d.clock.Now().Sub(w.Since))
	}
	timer := d.clock.NewTimer(wait)
	defer timer.Stop()
	var e *Refusal
	answered := false
	refused := func(format string, args ...any) {
		e = Refuse(http.StatusServiceUnavailable, Refused, "the "+w.What+" were not accepted"+format, args...).Later(RetryRefused)
	}
	select {
	case <-req.done:
		answered = true
		if err := req.err; err != nil {
			refused(": %w", err)
		}
	case <-timer.C():
		refused(" within %s; send them again", wait.Round(time.Millisecond))
	case <-d.stopping:
		refused(": %w", errStopsSend)
	case <-r.Context().Done():
		e = &Refusal{Outcome: Gone}
	}
	d.Pending.removeWaiter(req, answered, d.clock.Now())
	return e
}

// Ended returns the answer to a request for which there is no use in going on: its
// client has gone, or weir stops. It is nil while there is. Who decodes a body asks
// again and again, since that may take longer than either can wait.
func (d *Desk[A, B]) Ended(r *http.Request) *Refusal {
	select {
	case <-d.stopping:
		return Refuse(http.StatusServiceUnavailable, Refused, "the request was not read to its end: %w", errStopsSend).Later(RetryRefused)
	default:
	}
	if r.Context().Err() != nil {
		return &Refusal{Outcome: Gone}
	}
	return nil
}

var errStopsSend = errors.New("weir is stopping; send them again")

// stopGrace is how long requests in flight may still wait for the receivers
// when weir stops.
const stopGrace = 3 * time.Second

// Run calls serve, which serves until ctx ends and the requests in flight are
// answered, and sends what is taken meanwhile. look is called every second.
func (d *Desk[A, B]) Run(ctx context.Context, serve func(context.Context) error, look func(now time.Time)) error {
	base, cancel := context.WithCancel(context.WithoutCancel(ctx))
	var wg sync.WaitGroup
	for _, l := range d.shards {
		wg.Go(func() { l.run(base) })
	}
	wg.Go(func() {
		for clock.Sleep(base, d.clock, time.Second) == nil {
			now := d.clock.Now()
			for _, l := range d.shards {
				l.giveUpStale(now)
			}
			d.Pending.expire(now)
			look(now)
		}
	})
	wg.Go(func() {
		select {
		case <-ctx.Done():
			_ = clock.Sleep(base, d.clock, stopGrace)
		case <-base.Done():
		}
		close(d.stopping)
	})
	err := serve(ctx)
	cancel()
	wg.Wait()
	return err
}

// Package intake is the common part of components that receive records over
// HTTP and respond with 2xx only after every receiver has accepted them. A Desk
// reads bodies within a memory budget, remembers those that were late so that a
// retry is sent only once, and has shards that join the records of several
// requests.
//
// It is not a component, and the HTTP server is engine/server. A Request
// outlives its client, which may repeat the request.
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

// Desk contains the requests of a component that wait for their responses. Any
// number of requests may use its fields concurrently.
type Desk[A any, B comparable] struct {
	Budget   Budget
	Pending  Pending[A]
	InFlight atomic.Int64 // requests that are being read or waiting

	Answers  *prometheus.CounterVec // by outcome
	Received prometheus.Counter     // bytes of bodies, as received
	Bodies   prometheus.Counter     // bytes of bodies, decompressed
	Joined   prometheus.Counter     // requests that were already pending

	name     string
	clock    clock.Clock
	signal   Signal[B]
	shards   [Shards]*shard[A, B]
	stopping chan struct{} // closed when requests must be answered soon
}

// NewDesk returns a Desk whose shards send to the result of output. The names
// of its metrics begin with name, such as weir_source_api.
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

// Metrics returns the metrics, including the result of connections as a gauge.
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

// Gauge returns an additional metric.
func (d *Desk[A, B]) Gauge(what, help string, value func() int) prometheus.Collector {
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: d.name + what, Help: help}, func() float64 { return float64(value()) })
}

// Handler handles requests with serve, which responds to accepted requests and
// returns the response for the remaining ones.
func (d *Desk[A, B]) Handler(log *slog.Logger, serve func(http.ResponseWriter, *http.Request) *Refusal) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() { // net/http would close the connection without a response
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

// Take passes the parts of a body to the shards, and makes the request pending.
// byShard contains a part for each shard; nil and empty parts are ignored. free
// is called when all parts are done.
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

// Waiting contains the time limits for a client that waits for its response.
type Waiting struct {
	What         string // the records in the plural: samples
	Since        time.Time
	Most         time.Duration
	WriteTimeout time.Duration // the server's; 0 if there is none
}

// Await returns nil when the whole request was accepted, and otherwise the
// response.
func (d *Desk[A, B]) Await(w Waiting, r *http.Request, req *Request[A]) *Refusal {
	wait := w.Most
	if t := w.WriteTimeout; t > 0 {
		// A response after the timeout would not be sent.
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

// Ended returns the response to a request that need not be continued, because
// its client is gone or weir stops. Otherwise, it returns nil. Call it
// repeatedly while decoding a body, because decoding may take longer than
// either can wait.
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
// answered, and sends the records that are taken meanwhile. look is called
// every second.
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

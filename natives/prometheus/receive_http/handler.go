package receivehttp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/klauspost/compress/snappy"
	remoteapi "github.com/prometheus/client_golang/exp/api/remote"
)

// writePath is where samples are posted.
const writePath = "/api/v1/metrics/write"

func (c *Component) routes() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() { // net/http would cut the connection and tell nobody
			if v := recover(); v != nil {
				c.o.Logger.Error("BUG: a request made its handler panic", "client", r.RemoteAddr, "err", v, "stack", string(debug.Stack()))
				c.metrics.requests.WithLabelValues(outcomePanic).Inc()
				http.Error(w, "the request made its handler panic, see the log", http.StatusInternalServerError)
			}
		}()
		if e := c.serve(w, r); e != nil {
			e.write(w)
			c.metrics.requests.WithLabelValues(e.outcome).Inc()
		}
	})
}

// refusal is an answer other than 2xx.
type refusal struct {
	status  int // 0 when there is nobody to answer
	outcome string
	err     error
	retry   time.Duration // Retry-After; 0 for none
}

func (e *refusal) write(w http.ResponseWriter) {
	if e.status == 0 {
		return
	}
	if e.retry > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int((e.retry+time.Second-1)/time.Second)))
	}
	http.Error(w, e.err.Error(), e.status)
}

func refuse(status int, outcome, format string, args ...any) *refusal {
	return &refusal{status: status, outcome: outcome, err: fmt.Errorf(format, args...)}
}

// How long clients are asked to wait: those that come too many at a time, and
// those whose samples are under way but were not accepted in time. The latter
// were held for long already, and wait again when they come back.
const (
	retryBusy    = 5 * time.Second
	retryRefused = time.Second
)

func busy(format string, args ...any) *refusal {
	e := refuse(http.StatusServiceUnavailable, outcomeBusy, format, args...)
	e.retry = retryBusy
	return e
}

// serve answers a request whose samples were accepted, and returns the answer
// to any other.
func (c *Component) serve(w http.ResponseWriter, r *http.Request) *refusal {
	a, start := c.args.Load(), c.o.Clock.Now()
	message, e := negotiate(w, r, a.AcceptedMessages)
	if e != nil {
		return e
	}
	if n := c.requests.Add(1); n > int64(a.Limits.MaxRequests) {
		c.requests.Add(-1)
		return busy("there are %d requests in flight, max_requests is %d", n-1, a.Limits.MaxRequests)
	}
	defer c.requests.Add(-1)
	client, _, _ := net.SplitHostPort(r.RemoteAddr)
	if wait := c.rates.wait(client, a.Limits.MaxSampleRate, start); wait > 0 {
		e := refuse(http.StatusTooManyRequests, outcomeRate, "%s sends more than max_sample_rate, %d samples per second", client, a.Limits.MaxSampleRate)
		e.retry = wait
		return e
	}
	req, e := c.accept(r, a, message)
	if e != nil {
		return e
	}
	if req.fresh {
		c.rates.spend(client, a.Limits.MaxSampleRate, req.answer.written.samples+req.answer.written.histograms, start)
	}
	return c.await(w, r, a, message, req.request, start)
}

// negotiate returns the message that the request says its body is.
func negotiate(w http.ResponseWriter, r *http.Request, accepted []string) (string, *refusal) {
	if r.URL.Path != writePath {
		return "", refuse(http.StatusNotFound, outcomeUnsupported, "there is nothing at %.100q: samples are posted to %s", r.URL.Path, writePath)
	}
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		return "", refuse(http.StatusMethodNotAllowed, outcomeUnsupported, "samples are posted, not sent by %.20q", r.Method)
	}
	unsupported := func(format string, args ...any) (string, *refusal) {
		for _, m := range accepted {
			w.Header().Add("Accept", "application/x-protobuf;proto="+m)
		}
		w.Header().Set("Accept-Encoding", "snappy")
		return "", refuse(http.StatusUnsupportedMediaType, outcomeUnsupported, format, args...)
	}
	if enc := r.Header.Get("Content-Encoding"); enc != "" && enc != "snappy" {
		return unsupported("%.100s encoding is not accepted, only snappy", strconv.Quote(enc))
	}
	message := messageV1
	if ct := r.Header.Get("Content-Type"); ct != "" {
		m, err := remoteapi.ParseProtoMsg(ct)
		if err != nil {
			return unsupported("%w", err)
		}
		message = string(m)
	}
	if !slices.Contains(accepted, message) {
		return unsupported("message %s is not accepted, only %s; accepted_remote_write_protobuf_messages says which are", message, strings.Join(accepted, ", "))
	}
	return message, nil
}

// incoming is a request that was taken in; fresh when its body is not one that
// was under way.
type incoming struct {
	*request
	fresh bool
}

// accept reads the body and hands its samples to the lanes.
func (c *Component) accept(r *http.Request, a *Arguments, message string) (incoming, *refusal) {
	res := &reservation{b: &c.budget}
	defer res.release()
	d := c.decoders.Get().(*decoder)
	defer c.putDecoder(d)
	var e *refusal
	if d.compressed, e = readBody(r, d.compressed[:0], int64(a.Limits.MaxBodySize), res.reserve); e != nil {
		return incoming{}, e
	}
	c.metrics.received.Add(float64(len(d.compressed)))
	key := keyOf(d.compressed)
	if req := c.pending.join(key); req != nil {
		c.metrics.joined.Inc()
		return incoming{req, false}, nil
	}
	if e := c.decode(d, a, message, res); e != nil {
		return incoming{}, e
	}
	for reason, n := range d.dropped {
		c.o.Stats.Drop(reason, n)
	}
	for reason, n := range d.exDropped {
		c.metrics.exemplars.WithLabelValues(reason).Add(float64(n))
	}
	// The bodies' memory is used again for the next request; the rows' is kept.
	rows := int64(len(d.t))*rowBytes + d.extra
	res.held -= rows
	req, byLane := newRequest(key, &d.rows, answer{bad: d.bad(), written: d.written}, func() { c.budget.give(rows) })
	c.pending.add(req)
	for i, b := range byLane {
		if b != nil {
			c.lanes[i].add(part{req, b})
		}
	}
	return incoming{req, true}, nil
}

// decode decompresses the body in d and reads it into d's rows.
func (c *Component) decode(d *decoder, a *Arguments, message string, res *reservation) *refusal {
	n, err := snappy.DecodedLen(d.compressed)
	if err != nil {
		return refuse(http.StatusBadRequest, outcomeInvalid, "cannot decompress the body: %w", err)
	}
	if int64(n) > int64(a.Limits.MaxBodySize) {
		return refuse(http.StatusBadRequest, outcomeTooLarge, "the decompressed body has %d bytes, max_body_size is %d", n, a.Limits.MaxBodySize)
	}
	if !res.reserve(int64(n)) {
		return c.overBudget(a, res.needs)
	}
	if d.body, err = snappy.Decode(d.body[:cap(d.body)], d.compressed); err != nil {
		return refuse(http.StatusBadRequest, outcomeInvalid, "cannot decompress the body: %w", err)
	}
	c.metrics.bodies.Add(float64(n))
	d.known, d.held, d.limits, d.reserve, d.now = c.known.Load(), c.held, &a.Limits, res.reserve, c.o.Clock.Now()
	d.meta, d.typed = a.AppendMetadata, a.EnableTypeAndUnitLabels
	if message == messageV1 {
		err = d.decodeV1(d.body)
	} else {
		err = d.decodeV2(d.body)
	}
	switch {
	case errors.Is(err, errBusy):
		return c.overBudget(a, res.needs)
	case errors.Is(err, errSampleLimit):
		return refuse(http.StatusBadRequest, outcomeTooLarge, "%w", err)
	case err != nil:
		return refuse(http.StatusBadRequest, outcomeInvalid, "cannot read a %s: %w", message, err)
	}
	return nil
}

// overBudget is the answer to a request that needs at least so much memory.
func (c *Component) overBudget(a *Arguments, needs int64) *refusal {
	if needs > int64(a.Limits.MaxInflightSize) { // it would never be there
		return refuse(http.StatusBadRequest, outcomeTooLarge, "the request's samples take more memory than max_inflight_size, which is %d bytes", a.Limits.MaxInflightSize)
	}
	return busy("%d bytes of requests are in flight, max_inflight_size is %d", c.budget.used.Load(), a.Limits.MaxInflightSize)
}

// maxKept bounds the scratch memory that goes back into the pool.
const maxKept = 4 << 20

func (c *Component) putDecoder(d *decoder) {
	d.reset()
	if cap(d.body)+cap(d.compressed)+cap(d.t)*40+(cap(d.symbols)+cap(d.histSeen)+cap(d.exSeen))*24+cap(d.refs)*4+cap(d.region) <= maxKept {
		c.decoders.Put(d)
	}
}

// readBody appends the body to dst.
func readBody(r *http.Request, dst []byte, limit int64, reserve func(int64) bool) ([]byte, *refusal) {
	tooLarge := refuse(http.StatusRequestEntityTooLarge, outcomeTooLarge, "the body has more bytes than max_body_size, which is %d", limit)
	if r.ContentLength > limit {
		return dst, tooLarge
	}
	// Memory is reserved for what the client says it sends, or bit by bit.
	reserved := max(r.ContentLength, 64<<10)
	if !reserve(reserved) {
		return dst, busy("too many bytes of requests are in flight, max_inflight_size says how many may be")
	}
	if int64(cap(dst)) < r.ContentLength+1 && r.ContentLength >= 0 {
		dst = make([]byte, 0, r.ContentLength+1)
	}
	for {
		if len(dst) == cap(dst) {
			dst = append(dst, 0)[:len(dst)]
		}
		n, err := r.Body.Read(dst[len(dst):min(cap(dst), len(dst)+64<<10)])
		dst = dst[:len(dst)+n]
		if int64(len(dst)) > limit {
			return dst, tooLarge
		}
		if int64(len(dst)) > reserved {
			if !reserve(reserved) {
				return dst, busy("too many bytes of requests are in flight, max_inflight_size says how many may be")
			}
			reserved *= 2
		}
		if errors.Is(err, io.EOF) {
			return dst, nil
		}
		if err != nil {
			return dst, readRefusal(r.Context(), err)
		}
	}
}

// readRefusal is the answer to a body that did not come whole.
func readRefusal(ctx context.Context, err error) *refusal {
	if e, ok := errors.AsType[net.Error](err); ok && e.Timeout() {
		return refuse(http.StatusRequestTimeout, outcomeInvalid, "the body did not come within server_read_timeout: %w", err)
	}
	if ctx.Err() != nil || errors.Is(err, io.ErrUnexpectedEOF) {
		return &refusal{outcome: outcomeGone, status: http.StatusBadRequest, err: err}
	}
	return refuse(http.StatusBadRequest, outcomeInvalid, "cannot read the body: %w", err)
}

// await answers when the receivers have accepted the samples, or did not in time.
func (c *Component) await(w http.ResponseWriter, r *http.Request, a *Arguments, message string, req *request, start time.Time) *refusal {
	wait := a.Limits.MaxWait
	if t := a.Server.HTTP.WriteTimeout; t > 0 {
		// An answer that comes after the timeout does not leave any more.
		wait = min(wait, t*3/4-c.o.Clock.Now().Sub(start))
	}
	timer := c.o.Clock.NewTimer(wait)
	defer timer.Stop()
	var e *refusal
	answered := false
	select {
	case <-req.done:
		answered = true
		if err := req.err; err != nil {
			e = refuse(http.StatusServiceUnavailable, outcomeRefused, "the samples were not accepted: %w", err)
			e.retry = retryRefused
		}
	case <-timer.C():
		e = refuse(http.StatusServiceUnavailable, outcomeRefused, "the samples were not accepted within %s; send them again", wait.Round(time.Millisecond))
		e.retry = retryRefused
	case <-c.stopping:
		e = refuse(http.StatusServiceUnavailable, outcomeRefused, "weir is stopping; send the samples again")
		e.retry = retryRefused
	case <-r.Context().Done():
		e = &refusal{outcome: outcomeGone}
	}
	c.pending.leave(req, answered, c.o.Clock.Now())
	if e != nil {
		return e
	}
	if message == messageV2 {
		h := w.Header()
		h.Set("X-Prometheus-Remote-Write-Samples-Written", strconv.Itoa(req.answer.written.samples))
		h.Set("X-Prometheus-Remote-Write-Histograms-Written", strconv.Itoa(req.answer.written.histograms))
		h.Set("X-Prometheus-Remote-Write-Exemplars-Written", strconv.Itoa(req.answer.written.exemplars))
	}
	if err := req.answer.bad; err != nil {
		return refuse(http.StatusBadRequest, outcomePartial, "%w", err)
	}
	w.WriteHeader(http.StatusNoContent)
	c.metrics.requests.WithLabelValues(outcomeAccepted).Inc()
	return nil
}

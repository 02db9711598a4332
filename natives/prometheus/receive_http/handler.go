package receivehttp

import (
	"errors"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/klauspost/compress/snappy"
	remoteapi "github.com/prometheus/client_golang/exp/api/remote"

	"github.com/weir-run/weir/engine/intake"
)

// writePath is the path of write requests.
const writePath = "/api/v1/metrics/write"

// busy returns the response if too much is in flight.
func busy(format string, args ...any) *intake.Refusal {
	return intake.Refuse(http.StatusServiceUnavailable, intake.Busy, format, args...).Later(intake.RetryBusy)
}

// tooMuch returns the response if there is no memory for a body.
func tooMuch() *intake.Refusal {
	return busy("too many bytes of requests are in flight, max_inflight_size says how many may be")
}

// serve answers a request whose samples were accepted. For any other request, it
// returns the response.
func (c *Component) serve(w http.ResponseWriter, r *http.Request) *intake.Refusal {
	a, start := c.args.Load(), c.o.Clock.Now()
	message, e := negotiate(w, r, a.AcceptedMessages)
	if e != nil {
		return e
	}
	if n := c.desk.InFlight.Add(1); n > int64(a.Limits.MaxRequests) {
		c.desk.InFlight.Add(-1)
		return busy("there are %d requests in flight, max_requests is %d", n-1, a.Limits.MaxRequests)
	}
	defer c.desk.InFlight.Add(-1)
	client, _, _ := net.SplitHostPort(r.RemoteAddr)
	if wait := c.rates.wait(client, a.Limits.MaxSampleRate, start); wait > 0 {
		e := intake.Refuse(http.StatusTooManyRequests, intake.RateLimited, "%s sends more than max_sample_rate, %d samples per second", client, a.Limits.MaxSampleRate)
		e.Retry = wait
		return e
	}
	req, fresh, e := c.accept(r, a, message)
	if e != nil {
		return e
	}
	if fresh {
		c.rates.spend(client, a.Limits.MaxSampleRate, req.Answer.written.samples+req.Answer.written.histograms, start)
	}
	return c.await(w, r, a, message, req, start)
}

// negotiate returns the message of the body according to the request.
func negotiate(w http.ResponseWriter, r *http.Request, accepted []string) (string, *intake.Refusal) {
	if r.URL.Path != writePath {
		return "", intake.Refuse(http.StatusNotFound, intake.Unsupported, "there is nothing at %.100q: samples are posted to %s", r.URL.Path, writePath)
	}
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		return "", intake.Refuse(http.StatusMethodNotAllowed, intake.Unsupported, "samples are posted, not sent by %.20q", r.Method)
	}
	unsupported := func(format string, args ...any) (string, *intake.Refusal) {
		for _, m := range accepted {
			w.Header().Add("Accept", "application/x-protobuf;proto="+m)
		}
		w.Header().Set("Accept-Encoding", "snappy")
		return "", intake.Refuse(http.StatusUnsupportedMediaType, intake.Unsupported, format, args...)
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

// accept reads the body and passes its samples to the shards. fresh is false if
// the same request was already in flight.
func (c *Component) accept(r *http.Request, a *Arguments, message string) (_ *intake.Request[answer], fresh bool, _ *intake.Refusal) {
	res := c.desk.Budget.Reservation()
	defer res.Release()
	d := c.decoders.Get().(*decoder)
	defer c.putDecoder(d)
	var e *intake.Refusal
	if d.compressed, e = intake.ReadBody(r, d.compressed[:0], int64(a.Limits.MaxBodySize), "max_body_size", res.Reserve, tooMuch); e != nil {
		return nil, false, e
	}
	c.desk.Received.Add(float64(len(d.compressed)))
	key := intake.KeyOf(d.compressed)
	if req := c.desk.Pending.Join(key, false); req != nil {
		c.desk.Joined.Inc()
		return req, false, nil
	}
	if e := c.decode(d, r, a, message, res); e != nil {
		return nil, false, e
	}
	for reason, n := range d.dropped {
		c.o.Stats.Drop(reason, n)
	}
	c.histogramsReduced.Add(float64(d.reduced))
	for reason, n := range d.exDropped {
		c.exemplarsDropped.WithLabelValues(reason).Add(float64(n))
	}
	// The memory of the bodies is reused for the next request; that of the rows
	// is kept.
	rows := int64(len(d.t))*rowBytes + d.extra
	res.Keep(rows)
	told := answer{bad: d.problems.Err(), written: d.written}
	return c.desk.Take(key, told, d.split(intake.Shards), func() { c.desk.Budget.Give(rows) }), true, nil
}

// decode decompresses the body in d and decodes it into the rows of d.
func (c *Component) decode(d *decoder, r *http.Request, a *Arguments, message string, res *intake.Reservation) *intake.Refusal {
	n, err := snappy.DecodedLen(d.compressed)
	if err != nil {
		return intake.Refuse(http.StatusBadRequest, intake.Invalid, "cannot decompress the body: %w", err)
	}
	if int64(n) > int64(a.Limits.MaxBodySize) {
		return intake.Refuse(http.StatusBadRequest, intake.TooLarge, "the decompressed body has %d bytes, max_body_size is %d", n, a.Limits.MaxBodySize)
	}
	if !res.Reserve(int64(n)) {
		return c.overBudget(a, res.Needs())
	}
	if d.body, err = snappy.Decode(d.body[:cap(d.body)], d.compressed); err != nil {
		return intake.Refuse(http.StatusBadRequest, intake.Invalid, "cannot decompress the body: %w", err)
	}
	c.desk.Bodies.Add(float64(n))
	d.known, d.held, d.limits, d.reserve, d.now = c.known.Load(), c.held, &a.Limits, res.Reserve, c.o.Clock.Now()
	var end *intake.Refusal
	d.ended = func() bool { end = c.desk.Ended(r); return end != nil }
	d.meta, d.typed = a.AppendMetadata, a.EnableTypeAndUnitLabels
	if message == messageV1 {
		err = d.decodeV1(d.body)
	} else {
		err = d.decodeV2(d.body)
	}
	switch {
	case errors.Is(err, errEnded):
		return end
	case errors.Is(err, errBusy):
		return c.overBudget(a, res.Needs())
	case errors.Is(err, errExpanded):
		return intake.Refuse(http.StatusBadRequest, intake.TooLarge, "the labels that the symbols of the request stand for take more than %d times max_body_size, which is %d bytes", maxExpanded, a.Limits.MaxBodySize)
	case errors.Is(err, errSampleLimit):
		return intake.Refuse(http.StatusBadRequest, intake.TooLarge, "%w", err)
	case err != nil:
		return intake.Refuse(http.StatusBadRequest, intake.Invalid, "cannot read a %s: %w", message, err)
	}
	return nil
}

// overBudget returns the response to a request that needs at least the given
// amount of memory.
func (c *Component) overBudget(a *Arguments, needs int64) *intake.Refusal {
	if needs > int64(a.Limits.MaxInflightSize) { // the memory would never be available
		return intake.Refuse(http.StatusBadRequest, intake.TooLarge, "the request's samples take more memory than max_inflight_size, which is %d bytes", a.Limits.MaxInflightSize)
	}
	return busy("%d bytes of requests are in flight, max_inflight_size is %d", c.desk.Budget.Used(), a.Limits.MaxInflightSize)
}

// maxKept is the maximum size of scratch memory that is returned to the pool.
const maxKept = 4 << 20

func (c *Component) putDecoder(d *decoder) {
	d.reset()
	d.reserve, d.ended = nil, nil // they reference the request
	if cap(d.body)+cap(d.compressed)+cap(d.t)*40+(cap(d.symbols)+cap(d.histSeen)+cap(d.exSeen))*24+cap(d.labels)*labelBytes+cap(d.refs)*4+cap(d.region) <= maxKept {
		c.decoders.Put(d)
	}
}

// await sends the response when the receivers have accepted the samples, or when
// the time is over.
func (c *Component) await(w http.ResponseWriter, r *http.Request, a *Arguments, message string, req *intake.Request[answer], start time.Time) *intake.Refusal {
	wait := intake.Waiting{What: "samples", Since: start, Most: a.Limits.MaxWait, WriteTimeout: a.Server.HTTP.WriteTimeout}
	if e := c.desk.Await(wait, r, req); e != nil {
		return e
	}
	if message == messageV2 {
		h := w.Header()
		h.Set("X-Prometheus-Remote-Write-Samples-Written", strconv.Itoa(req.Answer.written.samples))
		h.Set("X-Prometheus-Remote-Write-Histograms-Written", strconv.Itoa(req.Answer.written.histograms))
		h.Set("X-Prometheus-Remote-Write-Exemplars-Written", strconv.Itoa(req.Answer.written.exemplars))
	}
	if err := req.Answer.bad; err != nil {
		return intake.Refuse(http.StatusBadRequest, intake.Partial, "%w", err)
	}
	w.WriteHeader(http.StatusNoContent)
	c.desk.Answers.WithLabelValues(intake.Accepted).Inc()
	return nil
}

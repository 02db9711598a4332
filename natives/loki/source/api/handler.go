package api

import (
	"errors"
	"mime"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/flow"
	"github.com/weir-run/weir/engine/intake"
	"github.com/weir-run/weir/natives/loki/push"
)

// form is the format of a body.
type form uint8

const (
	formProtobuf form = iota
	formJSON
	formRaw
)

// route answers a request that was accepted. For any other request, it returns
// the response.
func (c *Component) route(w http.ResponseWriter, r *http.Request) *intake.Refusal {
	method := http.MethodPost
	switch r.URL.Path {
	case "/ready":
		method = http.MethodGet
	case "/loki/api/v1/push", "/api/v1/push", "/loki/api/v1/raw", "/api/v1/raw":
	case "/otlp/v1/logs", "/loki/api/v1/otlp/v1/logs":
		return intake.Refuse(http.StatusNotFound, intake.Unsupported, "OTLP is not taken here: lines are pushed to %s, in protobuf or JSON", push.Path)
	default:
		return intake.Refuse(http.StatusNotFound, intake.Unsupported, "there is nothing at %.100q: lines are posted to %s or /loki/api/v1/raw", r.URL.Path, push.Path)
	}
	if r.Method != method && !(method == http.MethodGet && r.Method == http.MethodHead) {
		w.Header().Set("Allow", method)
		return intake.Refuse(http.StatusMethodNotAllowed, intake.Unsupported, "want %s, not %.20q", method, r.Method)
	}
	if method == http.MethodGet {
		_, _ = w.Write([]byte("ready\n")) // the client may be gone
		return nil
	}
	f, e := formOf(r)
	if e != nil {
		return e
	}
	return c.serve(w, r, f)
}

// formOf returns the format of the body according to the request.
func formOf(r *http.Request) (form, *intake.Refusal) {
	switch enc := r.Header.Get("Content-Encoding"); enc {
	case "", "snappy", "gzip", "deflate":
	default:
		return 0, intake.Refuse(http.StatusUnsupportedMediaType, intake.Unsupported, "encoding %.40q is not accepted, only snappy, gzip and deflate", enc)
	}
	if strings.HasSuffix(r.URL.Path, "/raw") {
		return formRaw, nil
	}
	header := r.Header.Get("Content-Type")
	if header == "" {
		return formProtobuf, nil
	}
	ct, _, err := mime.ParseMediaType(header)
	switch {
	case err == nil && ct == "application/json":
		return formJSON, nil
	case err == nil && (ct == push.ContentType || ct == "application/octet-stream"):
		return formProtobuf, nil
	}
	return 0, intake.Refuse(http.StatusUnsupportedMediaType, intake.Unsupported, "content type %.100q is not accepted, only application/json and %s", header, push.ContentType)
}

// busy returns the response if too much is in flight.
func busy(format string, args ...any) *intake.Refusal {
	return intake.Refuse(http.StatusTooManyRequests, intake.Busy, format, args...).Later(intake.RetryBusy)
}

func (c *Component) overBudget(a *Arguments, res *intake.Reservation) *intake.Refusal {
	if res.Needs() > int64(a.Limits.MaxInflightSize) { // the memory would never be available
		return intake.Refuse(http.StatusRequestEntityTooLarge, intake.TooLarge, "the request takes more memory than max_inflight_size, which is %d bytes", a.Limits.MaxInflightSize)
	}
	return busy("%d bytes of requests are in flight, max_inflight_size is %d", c.desk.Budget.Used(), a.Limits.MaxInflightSize)
}

// serve receives a request and waits until its lines were accepted.
func (c *Component) serve(w http.ResponseWriter, r *http.Request, f form) *intake.Refusal {
	a, start := c.args.Load(), c.o.Clock.Now()
	if n := c.desk.InFlight.Add(1); n > int64(a.Limits.MaxRequests) {
		c.desk.InFlight.Add(-1)
		return busy("there are %d requests in flight, max_requests is %d", n-1, a.Limits.MaxRequests)
	}
	defer c.desk.InFlight.Add(-1)
	tenant, e := tenantOf(r)
	if e != nil {
		return e
	}
	req, e := c.accept(r, a, f, tenant)
	if e != nil {
		return e
	}
	wait := intake.Waiting{What: "lines", Since: start, Most: a.Limits.MaxWait, WriteTimeout: a.Server.HTTP.WriteTimeout}
	if e := c.desk.Await(wait, r, req); e != nil {
		return e
	}
	if err := req.Answer; err != nil {
		return intake.Refuse(http.StatusBadRequest, intake.Partial, "%w", err)
	}
	w.WriteHeader(http.StatusNoContent)
	c.desk.Answers.WithLabelValues(intake.Accepted).Inc()
	return nil
}

// tenantOf returns the tenant of the request, or "".
func tenantOf(r *http.Request) (string, *intake.Refusal) {
	t := r.Header.Get(push.TenantHeader)
	if len(t) > 150 || t == "." || t == ".." {
		return "", intake.Refuse(http.StatusBadRequest, intake.Invalid, "%s is %.160q, which is no tenant", push.TenantHeader, t)
	}
	for _, c := range t {
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && !strings.ContainsRune("!-_.*'()", c) {
			return "", intake.Refuse(http.StatusBadRequest, intake.Invalid, "%s is %.160q: want one tenant, of letters, digits and !-_.*'()", push.TenantHeader, t)
		}
	}
	return t, nil
}

// accept reads the body and passes its lines to the shards, unless the same
// request is already in flight.
func (c *Component) accept(r *http.Request, a *Arguments, f form, tenant string) (*intake.Request[error], *intake.Refusal) {
	res := c.desk.Budget.Reservation()
	defer res.Release()
	encoding := r.Header.Get("Content-Encoding")
	buf := new([]byte)
	if f == formProtobuf || encoding != "" { // otherwise the lines alias it
		buf = c.bodies.Get().(*[]byte)
	}
	body, e := intake.ReadBody(r, (*buf)[:0], int64(a.MaxSize), "max_send_message_size", res.Reserve, func() *intake.Refusal { return c.overBudget(a, res) })
	own := true // nothing aliases the body
	defer func() {
		if own && cap(body) <= maxKept {
			*buf = body
			c.bodies.Put(buf)
		}
	}()
	if e != nil {
		return nil, e
	}
	c.desk.Received.Add(float64(len(body)))
	read := res.Held()
	key, alone := c.keyOf(r, a, f, tenant, body)
	if req := c.desk.Pending.Join(key, alone); req != nil {
		c.desk.Joined.Inc()
		return req, nil
	}
	var arena []byte
	if arena, own, e = c.unpack(body, r, encoding, f == formProtobuf, a, res); e != nil {
		own = true
		return nil, e
	}
	c.desk.Bodies.Add(float64(len(arena)))
	d := &decoder{set: c.set.Load(), tenant: tenant, incoming: a.UseIncomingTimestamp, now: c.o.Clock.Now().UnixNano(), reserve: res.Reserve}
	var end *intake.Refusal
	d.ended = func() bool { end = c.desk.Ended(r); return end != nil }
	if e := c.decode(d, f, arena, a, res); e != nil {
		if end != nil {
			return nil, end
		}
		return nil, e
	}
	kept := res.Held() // until the lines were accepted
	if own {
		kept -= read
	}
	res.Keep(kept)
	return c.desk.Take(key, d.problems.Err(), d.byShard[:], func() { c.desk.Budget.Give(kept) }), nil
}

// decode decodes the lines of an unpacked body into d. They alias the body.
func (c *Component) decode(d *decoder, f form, arena []byte, a *Arguments, res *intake.Reservation) *intake.Refusal {
	var err error
	switch f {
	case formProtobuf:
		err = d.protobuf(arena)
	case formJSON:
		err = d.json(arena)
	case formRaw:
		err = d.raw(arena)
	}
	switch {
	case errors.Is(err, errBusy):
		return c.overBudget(a, res)
	case errors.Is(err, errLineLimit):
		return intake.Refuse(http.StatusRequestEntityTooLarge, intake.TooLarge, "%w (%d)", err, a.Limits.LineLimit)
	case err != nil:
		return intake.Refuse(http.StatusBadRequest, intake.Invalid, "cannot read the request: %w", err)
	}
	for reason, n := range d.dropped {
		c.o.Stats.DropLines(reason, n)
	}
	if !d.incoming {
		c.date(d)
	}
	return nil
}

// maxKept is the maximum size of scratch memory that is returned to the pool.
const maxKept = 4 << 20

// keyOf returns a key that identifies repetitions of the request. Lines with
// their own times are the same lines, whichever client sends them. Other lines
// may be equal but different, so only a repetition by the same client is the same
// request; alone is true in this case.
func (c *Component) keyOf(r *http.Request, a *Arguments, f form, tenant string, body []byte) (key intake.Key, alone bool) {
	how := r.Header.Get("Content-Encoding") + string('0'+rune(f))
	if f != formRaw && a.UseIncomingTimestamp {
		return intake.KeyOf(body, how, tenant), false
	}
	client, _, _ := net.SplitHostPort(r.RemoteAddr)
	return intake.KeyOf(body, how, tenant, client), true
}

// date gives each line a time that no other line of the component has, because
// Loki treats lines with the same stream, time and text as one.
func (c *Component) date(d *decoder) {
	c.mu.Lock()
	base := max(c.o.Clock.Now().UnixNano(), c.last+1)
	c.last = base + int64(d.rows)
	c.mu.Unlock()
	for _, b := range d.byShard {
		for i := range b.Len() {
			b.T[i] += base
		}
	}
}

// signal describes lines to the shards.
var signal = intake.Signal[*batch.Logs]{
	Len: (*batch.Logs).Len,
	Join: func(source uint64, bs []*batch.Logs) *batch.Logs {
		b := *batch.JoinLogs(source, 0, bs)
		b.Source = source
		return &b
	},
	Send: (*flow.Output).SendLogs,
	Track: func(b *batch.Logs, done func()) func() {
		b.Ack = batch.NewAck(done)
		return func() {
			b.Ack.Accepted()
			// The client waits and sends nothing that could complete these lines.
			b.Ack.Flush()
		}
	},
}

// expire releases the streams of settings that no request uses any more.
func (c *Component) expire(now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(c.retired) > 0 && now.Sub(c.retired[0].since) > intake.AbandonAfter {
		c.retired[0].set.close()
		c.retired = c.retired[1:]
	}
}

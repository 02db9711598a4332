package http

import (
	"cmp"
	"errors"
	"fmt"
	nethttp "net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weir-run/weir/engine/config"
	"github.com/weir-run/weir/engine/expr"
	"github.com/weir-run/weir/engine/flow"
	"github.com/weir-run/weir/engine/service"
	"github.com/weir-run/weir/engine/tap"
)

const (
	// maxTaps is the maximum number of taps.
	maxTaps = 10
	// maxTapTime and maxTapBytes limit one tap.
	maxTapTime  = 10 * time.Minute
	maxTapBytes = 64 << 20
	// tapTick is how often a tap looks for its node and writes notes.
	tapTick = time.Second
	// flushBytes is how much a tap collects before it writes, unless there is
	// nothing else to collect.
	flushBytes = 64 << 10
)

// tapSides are the values of the parameter side.
var tapSides = map[string]flow.Side{"in": flow.In, "out": flow.Out, "diff": flow.Calls}

// tapOptions are the parameters of a tap.
func tapOptions(i service.Info, q url.Values) (o tap.Options, err error) {
	for name := range q {
		if !slices.Contains([]string{"side", "where", "limit", "rate", "format"}, name) {
			return o, fmt.Errorf("there is no parameter %q; there are side, where, limit, rate and format", name)
		}
	}
	side := "in"
	if len(i.SendsTo) > 0 {
		side = "out"
	}
	side = cmp.Or(q.Get("side"), side)
	var ok bool
	if o.Side, ok = tapSides[side]; !ok {
		return o, fmt.Errorf("side must be in, out or diff, not %q", side)
	}
	o.Format = cmp.Or(q.Get("format"), "text")
	if text := q.Get("limit"); text != "" {
		if o.Limit, err = strconv.Atoi(text); err != nil || o.Limit < 1 {
			return o, fmt.Errorf("limit must be a number greater than 0, not %q", text)
		}
	} else if o.Format != tap.FormatCalls {
		o.Rate = tap.Rate
	}
	if text := q.Get("rate"); text != "" {
		if o.Rate, err = strconv.Atoi(text); err != nil || o.Rate < 1 || o.Rate > tap.MaxRate {
			return o, fmt.Errorf("rate must be a number from 1 to %d, not %q", tap.MaxRate, text)
		}
	}
	if text := q.Get("where"); text != "" {
		progs, err := expr.CompileEither(text, expr.Bool, nil)
		if err != nil {
			return o, err
		}
		o.Where = &progs
	}
	return o, nil
}

// secretsOf returns the secrets in the arguments and exports of all nodes.
func secretsOf(host service.Host) (out []string) {
	found := func(s string) { out = append(out, s) }
	for _, i := range append(host.ListComponents(), host.Overview().Services...) {
		config.Secrets(i.Arguments, found)
		config.Secrets(i.Exports, found)
	}
	return out
}

// nodeIn returns a node inside a module or a foreach, or "". Records do not pass
// through the module itself.
func nodeIn(host service.Host, id string) (inner string) {
	for _, i := range host.ListComponents() {
		if !strings.HasPrefix(i.ID, id+"/") {
			continue
		}
		if inner = i.ID; len(i.SendsTo) > 0 {
			break
		}
	}
	return inner
}

// tapped writes the records that pass through a node until the client goes, the
// node is removed, weir stops, or a limit is reached. Its last line is the
// reason.
func (s *Service) tapped(host service.Host, w nethttp.ResponseWriter, r *nethttp.Request) {
	id := r.PathValue("id")
	i, ok := find(host, id)
	if !ok || i.Stats == nil {
		nethttp.Error(w, fmt.Sprintf("there is no node %s", id), nethttp.StatusNotFound)
		return
	}
	if inner := nodeIn(host, id); inner != "" {
		nethttp.Error(w, fmt.Sprintf("%s contains nodes; tap one of them, such as %s", id, inner), nethttp.StatusBadRequest)
		return
	}
	o, err := tapOptions(i, r.URL.Query())
	p, mistake := tap.New(o)
	if err = cmp.Or(err, mistake); err != nil {
		nethttp.Error(w, err.Error(), nethttp.StatusBadRequest)
		return
	}
	defer s.taps.Add(-1)
	if s.taps.Add(1) > maxTaps {
		nethttp.Error(w, fmt.Sprintf("there are %d taps already", maxTaps), nethttp.StatusServiceUnavailable)
		return
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	if o.Format == "json" || o.Format == tap.FormatCalls {
		w.Header().Set("Content-Type", "application/x-ndjson")
	}
	w.Header().Set("Cache-Control", "no-cache")
	f := &following{s: s, host: host, id: id, stats: i.Stats, tap: flow.NewTap(o.Side, s.o.Clock.Now), p: p, w: w}
	f.stats.Attach(f.tap)
	defer func() { f.stats.Detach(f.tap) }()
	p.Mask(secretsOf(host))
	if o.Format == tap.FormatCalls {
		begin, stop, err := f.answers.record(host, id)
		if err != nil {
			nethttp.Error(w, err.Error(), nethttp.StatusConflict)
			return
		}
		defer stop()
		f.begin, f.began = p.Begin(nil, begin), s.o.Clock.Now()
	}
	if kind, reason := f.follow(r); reason != "" {
		f.write(p.Note(p.Tick(nil), kind, reason))
	}
}

// following is the response of one tap.
type following struct {
	s     *Service
	host  service.Host
	id    string
	stats *flow.Stats // that has the tap
	tap   *flow.Tap
	p     *tap.Printer
	w     nethttp.ResponseWriter
	bytes int

	answers answers   // in the format calls
	begin   []byte    // the first line of the format calls, with the state
	began   time.Time // when the state was read: earlier calls are a part of it
}

var errTapBytes = errors.New("the tap has written too much")

// write reports an error if the client is gone or does not read, or a limit is
// reached.
func (f *following) write(text []byte) error {
	out := nethttp.NewResponseController(f.w)
	_ = out.SetWriteDeadline(time.Now().Add(streamTime)) // fails with the write
	if _, err := f.w.Write(text); err != nil {
		return err
	}
	f.bytes += len(text)
	if err := out.Flush(); err != nil {
		return err
	}
	if f.bytes > maxTapBytes {
		return errTapBytes
	}
	return nil
}

// The kinds of the last line of a tap.
const (
	endOfTap = "end"   // a limit is reached
	tapError = "error" // there is nothing to observe
)

// follow returns why the tap ended, or "" if the client is gone.
func (f *following) follow(r *nethttp.Request) (kind, reason string) {
	tick := f.s.o.Clock.NewTimer(tapTick)
	defer tick.Stop()
	began := f.s.o.Clock.Now()
	text := append([]byte{}, f.begin...) // the first write sends the headers
	for {
		switch err := f.write(text); {
		case err == errTapBytes:
			return endOfTap, fmt.Sprintf("the limit of %d MiB for one tap is reached", maxTapBytes>>20)
		case err != nil:
			return "", ""
		case f.p.Full():
			return endOfTap, "the limit of records is reached"
		}
		select {
		case <-f.tap.Ready():
			queue, missed := f.tap.Take()
			f.p.Skip(missed)
			// The answers to the calls in the queue have come.
			text = f.p.Answers(text[:0], f.answers.take())
			for _, o := range queue {
				if !o.Began.IsZero() && o.Began.Before(f.began) {
					continue
				}
				if text = f.p.Append(text, o); len(text) > flushBytes {
					if f.write(text) != nil { // the next write fails as well
						break
					}
					text = text[:0]
				}
			}
		case <-tick.C():
			text = f.p.Tick(text[:0])
			if f.s.o.Clock.Now().Sub(began) >= maxTapTime {
				return endOfTap, fmt.Sprintf("the limit of %d minutes for one tap is reached", int(maxTapTime.Minutes()))
			}
			i, ok := find(f.host, f.id)
			switch {
			case f.host.Overview().Stopping:
				return tapError, "weir stops"
			case !ok || i.Stats == nil:
				return tapError, fmt.Sprintf("%s was removed from the config", f.id)
			case i.Stats != f.stats: // it was removed and added again
				f.stats.Detach(f.tap)
				f.stats = i.Stats
				f.stats.Attach(f.tap)
			}
			f.p.Mask(secretsOf(f.host))
			tick.Reset(tapTick)
		case <-r.Context().Done():
			return "", ""
		case <-f.s.closing:
			return tapError, "weir stops"
		}
	}
}

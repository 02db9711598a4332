package http

import (
	"context"
	"fmt"
	nethttp "net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/expr"
	"github.com/weir-run/weir/engine/flow"
	"github.com/weir-run/weir/engine/service"
	"github.com/weir-run/weir/engine/tap"
)

const (
	// whyLimit and whySeconds are the defaults of the parameters limit and seconds.
	whyLimit, whySeconds = 3, 30
	maxWhyLimit          = 100
	maxWhyTargets        = 1000
	// whyTick is how often the taps are read. A record has until the second tick after
	// it was seen to pass through all nodes.
	whyTick = time.Second
)

// whyOptions are the parameters of a request.
type whyOptions struct {
	where   *expr.Programs
	limit   int
	seconds int
	targets bool
}

func readWhyOptions(q url.Values) (o whyOptions, err error) {
	for name := range q {
		if !slices.Contains([]string{"where", "limit", "seconds", "targets"}, name) {
			return o, fmt.Errorf("there is no parameter %q; there are where, limit, seconds and targets", name)
		}
	}
	number := func(name string, most, unset int) int {
		text := q.Get(name)
		if text == "" {
			return unset
		}
		n, bad := strconv.Atoi(text)
		if (bad != nil || n < 1 || n > most) && err == nil {
			err = fmt.Errorf("%s must be a number from 1 to %d, not %q", name, most, text)
		}
		return n
	}
	maxLimit := maxWhyLimit
	if q.Get("targets") == "true" {
		maxLimit = maxWhyTargets
	}
	o.limit = number("limit", maxLimit, whyLimit)
	o.seconds = number("seconds", int(maxTapTime.Seconds()), whySeconds)
	if err != nil {
		return o, err
	}
	if q.Get("where") == "" {
		return o, fmt.Errorf("where must be an expression that selects records, such as name == \"up\"")
	}
	switch text := q.Get("targets"); text {
	case "", "false":
	case "true":
		o.targets = true
		prog, err := expr.Compile(q.Get("where"), expr.Bool, nil)
		o.where = &expr.Programs{Metrics: prog}
		return o, err
	default:
		return o, fmt.Errorf("targets must be true or false, not %q", text)
	}
	progs, err := expr.CompileEither(q.Get("where"), expr.Bool, nil)
	o.where = &progs
	return o, err
}

// why is one request that follows records.
type why struct {
	host     service.Host
	id       string
	now      func() time.Time
	follower *tap.Follower
	taps     map[string]whyTap
}

type whyTap struct {
	stats *flow.Stats
	tap   *flow.Tap
}

// attach taps the node and the nodes below it, or all nodes, and removes the taps of
// nodes that are gone.
func (w *why) attach() {
	infos, receives := map[string]service.Info{}, map[string]bool{}
	var queue []string
	for _, i := range w.host.ListComponents() {
		infos[i.ID] = i
		for _, to := range i.SendsTo {
			receives[to] = true
		}
		if w.id == "*" || w.id == i.ID {
			queue = append(queue, i.ID)
		}
	}
	nodes, more := map[string]tap.Followed{}, false
	for len(queue) > 0 {
		i, ok := infos[queue[0]]
		queue = queue[1:]
		if _, seen := nodes[i.ID]; !ok || seen || i.Stats == nil {
			continue
		}
		n := tap.Followed{ID: i.ID, Component: i.Name, Position: i.Position, SendsTo: i.SendsTo, Receives: receives[i.ID]}
		if c, ok := w.host.GetComponent(i.ID); ok {
			n.Explainer, _ = c.(component.Explainer)
		}
		nodes[i.ID] = n
		queue = append(queue, i.SendsTo...)
		if old, ok := w.taps[i.ID]; !ok || old.stats != i.Stats {
			if ok {
				old.stats.Detach(old.tap)
			}
			t := whyTap{i.Stats, flow.NewTap(flow.Calls, w.now)}
			t.stats.Attach(t.tap)
			w.taps[i.ID], more = t, true
		}
	}
	for id, t := range w.taps {
		if _, ok := nodes[id]; !ok {
			t.stats.Detach(t.tap)
			delete(w.taps, id)
		}
	}
	w.follower.Nodes(nodes)
	if more {
		w.follower.Begin(w.now())
	}
	w.follower.Mask(secretsOf(w.host))
}

func (w *why) detach() {
	for _, t := range w.taps {
		t.stats.Detach(t.tap)
	}
}

// serveWhy writes the paths of records until a limit is reached. Its last line is the
// reason.
func (s *Service) serveWhy(host service.Host, rw nethttp.ResponseWriter, r *nethttp.Request) {
	id := r.PathValue("id")
	if id != "*" {
		if i, ok := find(host, id); !ok || i.Stats == nil {
			nethttp.Error(rw, fmt.Sprintf("there is no node %s", id), nethttp.StatusNotFound)
			return
		}
		if inner := nodeIn(host, id); inner != "" {
			nethttp.Error(rw, fmt.Sprintf("%s contains nodes; ask about one of them, such as %s", id, inner), nethttp.StatusBadRequest)
			return
		}
	}
	o, err := readWhyOptions(r.URL.Query())
	if err != nil {
		nethttp.Error(rw, err.Error(), nethttp.StatusBadRequest)
		return
	}
	if o.targets {
		s.whyTargets(host, rw, r, o)
		return
	}
	defer s.taps.Add(-1)
	if s.taps.Add(1) > maxTaps {
		nethttp.Error(rw, fmt.Sprintf("there are %d taps already", maxTaps), nethttp.StatusServiceUnavailable)
		return
	}
	rw.Header().Set("Content-Type", "application/x-ndjson")
	rw.Header().Set("Cache-Control", "no-cache")
	w := &why{host: host, id: id, now: s.o.Clock.Now, follower: tap.NewFollower(o.where), taps: map[string]whyTap{}}
	defer w.detach()
	w.attach()
	f := &following{s: s, w: rw}
	if kind, reason := w.follow(f, r, o); reason != "" {
		_ = f.write(w.follower.Note(nil, kind, reason)) // the client may be gone
	}
}

// follow returns why it ended, or "" if the client is gone.
func (w *why) follow(f *following, r *nethttp.Request, o whyOptions) (kind, reason string) {
	tick := f.s.o.Clock.NewTimer(whyTick)
	defer tick.Stop()
	began := w.now()
	text := []byte{} // the first write sends the headers
	for found := 0; ; {
		switch err := f.write(text); {
		case err == errTapBytes:
			return endOfTap, fmt.Sprintf("the limit of %d MiB is reached", maxTapBytes>>20)
		case err != nil:
			return "", ""
		}
		select {
		case <-tick.C():
		case <-r.Context().Done():
			return "", ""
		case <-f.s.closing:
			return tapError, "weir stops"
		}
		for id, t := range w.taps {
			queue, missed := t.tap.Take()
			w.follower.Add(id, queue, missed)
		}
		text = text[:0]
		now := w.now()
		for _, p := range w.follower.Paths(r.Context(), now.Add(-whyTick), o.limit-found) {
			text = tap.AppendPath(text, p)
			found++
		}
		w.follower.Forget(now.Add(-3 * whyTick))
		if err := w.follower.Failure(); err != nil {
			text = w.follower.Note(text, "note", fmt.Sprintf("records for which the expression fails do not match: %v", err))
		}
		overview := w.host.Overview()
		_, here := find(w.host, w.id)
		switch {
		case found >= o.limit:
			kind, reason = endOfTap, "the limit of records is reached"
		case overview.Stopping:
			kind, reason = tapError, "weir stops"
		case w.id != "*" && !here:
			kind, reason = tapError, fmt.Sprintf("%s was removed from the config", w.id)
		case now.Sub(began) >= time.Duration(o.seconds)*time.Second+2*whyTick: // the last records had time to arrive
			kind, reason = endOfTap, w.summary(r.Context(), found, o.seconds)
		}
		if reason != "" {
			_ = f.write(text) // the write of the reason fails too
			return kind, reason
		}
		w.attach()
		tick.Reset(whyTick)
	}
}

// summary tells what was found and, if that is nothing, what to try.
func (w *why) summary(ctx context.Context, found, seconds int) string {
	text := fmt.Sprintf("%d records matched in %ds; %d records at %d nodes were examined", found, seconds, w.follower.Examined, len(w.taps))
	if w.follower.Missed > 0 {
		text += fmt.Sprintf(" and %d were left out because there were too many", w.follower.Missed)
	}
	if found > 0 {
		return text
	}
	text += failingScrapes(ctx, w.host)
	switch {
	case w.follower.Examined == 0:
		return text + "; no records passed, so try more seconds"
	case w.id != "*":
		return text + "; try * for all nodes, or a simpler expression"
	}
	return text + "; try a simpler expression, or more seconds"
}

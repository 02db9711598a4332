package http

import (
	"encoding/json"
	"errors"
	"fmt"
	nethttp "net/http"
	"strconv"
	"strings"
	"time"

	"github.com/weir-run/weir/engine/config"
	"github.com/weir-run/weir/engine/service"
)

// Reloads is what /api/v0/reloads returns.
type Reloads struct {
	Reloads []service.Reload `json:"reloads"` // oldest first, at most 100
}

// Step is the data of an event "step" of /api/v0/reloads/events: a step of a new
// version of a node has begun.
type Step struct {
	Time    time.Time `json:"time"`
	Node    string    `json:"node"`
	Version string    `json:"version"`
	Step    string    `json:"step"`
}

const (
	// maxStreams is how many clients may follow the events of reloads.
	maxStreams = 20
	// heartbeat is how often a client that follows them gets something.
	heartbeat = 15 * time.Second
	// streamTime is how long one write to such a client may take. A client that reads
	// too slowly for that is disconnected.
	streamTime = 10 * time.Second
	// streamRetry is when such a client tries again after it was disconnected.
	streamRetry = 2 * time.Second
)

// Answer is what POST /-/reload returns to callers that accept JSON.
type Answer struct {
	// Outcome is applied, partial (a node stayed on its last good version), refused
	// (nothing was changed) or in progress (canaries, which were not waited for).
	Outcome string `json:"outcome"`
	// Reloads are the records of the changes that the request caused, oldest first.
	Reloads []service.Reload `json:"reloads"`
}

func newAnswer(reloads []service.Reload) Answer {
	a := Answer{Outcome: "applied", Reloads: append([]service.Reload{}, reloads...)}
	actions := map[string]string{} // the last of each node
	for _, r := range reloads {
		if r.Outcome == "refused" || r.Outcome == "partial" && a.Outcome != "refused" {
			a.Outcome = r.Outcome
		}
		for _, n := range r.Nodes {
			actions[n.ID] = n.Action
		}
	}
	for _, action := range actions {
		if action == "in progress" && a.Outcome == "applied" {
			a.Outcome = action
		}
	}
	return a
}

// Text is what there is to say of the changes, a line or more each.
func (a Answer) Text() string {
	var lines []string
	for _, r := range a.Reloads {
		if r.Message != "" {
			lines = append(lines, r.Message)
		}
	}
	return strings.Join(lines, "\n")
}

// reload reads everything again. With the parameter wait, it waits for canaries.
func reload(host service.Host, w nethttp.ResponseWriter, r *nethttp.Request) {
	records, err := host.RequestReload(r.Context(), r.URL.Query().Get("wait") == "true")
	_, refused := errors.AsType[config.Diagnostics](err)
	switch answer := newAnswer(records); {
	case err != nil && !refused:
		nethttp.Error(w, err.Error(), nethttp.StatusServiceUnavailable)
	case acceptsJSON(r):
		if w.Header().Set("Content-Type", "application/json"); refused {
			w.WriteHeader(nethttp.StatusBadRequest)
		}
		writeJSON(w, answer)
	case refused:
		nethttp.Error(w, err.Error(), nethttp.StatusBadRequest)
	default:
		fmt.Fprintln(w, answer.Text())
	}
}

// preview returns what a reload would change. The parameters config and scripts are
// another config and another folder of scripts. Only callers over the socket, who can read
// files anyway, may choose what is read.
func preview(host service.Host, w nethttp.ResponseWriter, r *nethttp.Request) {
	path, scripts := r.URL.Query().Get("config"), r.URL.Query().Get("scripts")
	if (path != "" || scripts != "") && callerOf(r).via != overSocket {
		nethttp.Error(w, "another config or another folder of scripts can be named only over the control socket", nethttp.StatusForbidden)
		return
	}
	p, err := host.PreviewReload(r.Context(), path, scripts)
	_, refused := errors.AsType[config.Diagnostics](err)
	switch {
	case refused:
		nethttp.Error(w, err.Error(), nethttp.StatusBadRequest)
	case err != nil:
		nethttp.Error(w, err.Error(), nethttp.StatusServiceUnavailable)
	default:
		writeJSON(w, p)
	}
}

func reloads(host service.Host, w nethttp.ResponseWriter, _ *nethttp.Request) {
	writeJSON(w, Reloads{Reloads: append([]service.Reload{}, host.Reloads()...)})
}

// writeJSON answers with a value. An error is the client's: it went away.
func writeJSON(w nethttp.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	_ = e.Encode(v)
}

// writeCompact is writeJSON without indentation, for long lists of numbers.
func writeCompact(w nethttp.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v)
}

// reloadEvents follows the steps of reloads until the client or weir ends. IDs begin
// with the time when weir was started: those of an earlier process mean nothing.
func (s *Service) reloadEvents(host service.Host, w nethttp.ResponseWriter, r *nethttp.Request) {
	defer s.streams.Add(-1)
	if s.streams.Add(1) > maxStreams {
		nethttp.Error(w, fmt.Sprintf("%d clients follow the events already", maxStreams), nethttp.StatusServiceUnavailable)
		return
	}
	run := strconv.FormatInt(host.Overview().Started.UnixMilli(), 10)
	events, more := host.ReloadEvents(0)
	after := uint64(0)
	if len(events) > 0 {
		after = events[len(events)-1].ID
	}
	if id := r.Header.Get("Last-Event-ID"); id != "" {
		after = 0
		if of, n, ok := strings.Cut(id, "-"); ok && of == run {
			after, _ = strconv.ParseUint(n, 10, 64) // 0 for nonsense
		}
		events, more = host.ReloadEvents(after)
	} else {
		events = nil // from now on
	}
	send, ok := startEvents(w)
	if !ok {
		return
	}
	beat := s.o.Clock.NewTimer(heartbeat)
	defer beat.Stop()
	for {
		for _, ev := range events {
			after = ev.ID
			if !send([]byte(eventText(run, ev))) {
				return
			}
		}
		select {
		case <-more:
			events, more = host.ReloadEvents(after)
			continue
		case <-beat.C():
			if !send([]byte(": heartbeat\n\n")) {
				return
			}
		case <-r.Context().Done():
			return
		case <-s.closing:
			return
		}
		events = nil
		beat.Reset(heartbeat)
	}
}

// eventText is an event as the client gets it.
func eventText(run string, ev service.ReloadEvent) string {
	name, data := reloadEvent(ev)
	text, _ := json.Marshal(data) // neither has what cannot be marshalled
	return fmt.Sprintf("id: %s-%d\nevent: %s\ndata: %s\n\n", run, ev.ID, name, text)
}

// reloadEvent returns the name and the data of an event.
func reloadEvent(ev service.ReloadEvent) (name string, data any) {
	if ev.Trial != nil {
		return "step", Step{ev.Time, ev.Node, ev.Trial.Version, ev.Trial.Step}
	}
	return "reload", ev.Reload
}

// startEvents begins a stream of server-sent events. send reports whether the client still
// reads.
func startEvents(w nethttp.ResponseWriter) (send func(event []byte) bool, ok bool) {
	h := w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-cache")
	out := nethttp.NewResponseController(w)
	send = func(event []byte) bool {
		_ = out.SetWriteDeadline(time.Now().Add(streamTime)) // fails with the write
		if _, err := w.Write(event); err != nil {
			return false
		}
		return out.Flush() == nil
	}
	return send, send(fmt.Appendf(nil, "retry: %d\n\n", streamRetry.Milliseconds()))
}

package history

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/service"
)

// Event is a change of the health of a node or of a service.
type Event struct {
	Time    time.Time             `json:"time"`
	Node    string                `json:"node"`
	From    component.HealthState `json:"from"`
	State   component.HealthState `json:"state"`
	Message string                `json:"message"` // at most 1 KiB
}

// takeHealth records the changes of health since the last point. A node that was
// unhealthy between two points leaves its last error.
func (r *Recorder) takeHealth(infos []service.Info, now time.Time) {
	for _, i := range infos {
		h, last := r.health[i.ID], i.LastError
		if h == nil {
			h = &health{lastError: last.Time}
			r.health[i.ID] = h
			if i.Health.State == component.Healthy {
				h.now = i.Health // it began well
			}
		}
		h.point = r.points
		short := last.Time.After(h.lastError) && i.Health.State == component.Healthy && h.now.State == component.Healthy
		if h.lastError = last.Time; short {
			r.add(h, i.ID, last)
		}
		if h.now.State != i.Health.State || h.now.State > component.Healthy && h.now.Message != i.Health.Message {
			r.add(h, i.ID, i.Health)
		}
	}
	for id, h := range r.health {
		if h.point != r.points {
			delete(r.health, id)
		}
	}
	old := now.Add(-Points * Step)
	keep := slices.IndexFunc(r.events, func(e Event) bool { return e.Time.After(old) })
	if keep < 0 {
		keep = len(r.events)
	}
	r.drop(0, max(keep, len(r.events)-maxEvents))
}

// add records a change of health.
func (r *Recorder) add(h *health, id string, to component.Health) {
	if h.events >= maxNodeEvents {
		if i := slices.IndexFunc(r.events, func(e Event) bool { return e.Node == id }); i >= 0 {
			r.drop(i, i+1)
		}
	}
	message := to.Message
	if len(message) > maxMessage {
		message = strings.ToValidUTF8(message[:maxMessage], "") + "…"
	}
	e := Event{Time: to.Time, Node: id, From: h.now.State, State: to.State, Message: strings.Clone(message)}
	if h.now.State == to.State {
		e.Time = r.clock.Now() // only the message has changed
	}
	at, _ := slices.BinarySearchFunc(r.events, e, func(a, b Event) int { return cmp.Or(a.Time.Compare(b.Time), -1) })
	r.events = slices.Insert(r.events, at, e)
	h.now = to
	h.events++
}

// drop removes events.
func (r *Recorder) drop(from, to int) {
	for _, e := range r.events[from:to] {
		if h := r.health[e.Node]; h != nil && h.events > 0 { // 0 after the node was added again
			h.events--
		}
	}
	r.events = slices.Delete(r.events, from, to)
}

package history

import (
	"slices"
	"time"
)

// History is the history of the last hour, or of a part of it.
type History struct {
	// Step is the time between two points, in seconds. It may be longer if the machine
	// was busy or asleep.
	Step int `json:"step"`
	// Times are the Unix times of the points, in seconds, the oldest first. All lists of
	// values have as many elements.
	Times []float64 `json:"times"`
	// Total is the history of all nodes together. In is what the nodes sent that get
	// nothing from other nodes, and Out is what the nodes sent that send to no other node.
	Total Series `json:"total"`
	// Weir is the history of weir as a whole. It is missing if nodes were asked for.
	Weir *Process `json:"weir,omitempty"`
	// Nodes are the nodes that were asked for, in this order.
	Nodes []Node `json:"nodes"`
	// Health are the changes of health, the oldest first, of the nodes that were asked
	// for, or of all nodes and services. A change that lasted for less than a step may be
	// missing.
	Health []Event `json:"health"`
	// Omitted is the number of nodes without history, because there are too many nodes.
	Omitted int `json:"omitted,omitempty"`
}

// Node is the history of a node.
type Node struct {
	ID string `json:"id"`
	Series
}

// Series are lists of values, one for each point. A value that is not known is null. A
// list is missing if all of its values are 0.
type Series struct {
	In      []Value `json:"in,omitempty"`      // samples and log lines per second that arrived
	Out     []Value `json:"out,omitempty"`     // samples and log lines per second that were sent
	Dropped []Value `json:"dropped,omitempty"` // samples and log lines per second that were dropped
	Waiting []Value `json:"waiting,omitempty"` // samples and log lines in the queue
	Oldest  []Value `json:"oldest,omitempty"`  // the age of the oldest of them, in seconds
}

func (s *series) shown(slots []int) Series {
	return Series{s.column(in, slots), s.column(out, slots), s.column(dropped, slots), s.column(waiting, slots), s.column(oldest, slots)}
}

// Since returns the history after a time. With IDs of nodes, it contains these nodes and
// their health. missing is the first ID that is not known, or "".
func (r *Recorder) Since(t time.Time, ids []string) (h History, missing string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	h = History{Step: int(Step / time.Second), Times: []float64{}, Nodes: []Node{}, Health: []Event{}, Omitted: r.omitted}
	var slots []int
	for n := max(0, r.points-Points); n < r.points; n++ {
		if ms := r.times[n%Points]; ms > t.UnixMilli() {
			slots = append(slots, n%Points)
			h.Times = append(h.Times, float64(ms)/1000)
		}
	}
	h.Total = r.total.shown(slots)
	if len(ids) == 0 {
		h.Weir = r.process.shown(slots)
	}
	for _, id := range ids {
		n := r.nodes[id]
		if n == nil && r.health[id] == nil {
			return h, id
		}
		if n == nil { // a service, or a node that other nodes are in
			n = &node{}
		}
		h.Nodes = append(h.Nodes, Node{id, n.shown(slots)})
	}
	for _, e := range r.events {
		if e.Time.After(t) && (len(ids) == 0 || slices.Contains(ids, e.Node)) {
			h.Health = append(h.Health, e)
		}
	}
	return h, ""
}

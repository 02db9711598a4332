package http

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	nethttp "net/http"
	"slices"
	"sync"
	"time"

	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/history"
	"github.com/weir-run/weir/engine/service"
)

// LiveStatus is the data of the events "status" and "change" of /api/v0/events.
type LiveStatus struct {
	Time        time.Time `json:"time"`
	Ready       bool      `json:"ready"`
	Stopping    bool      `json:"stopping"`
	ConfigError string    `json:"config_error,omitempty"`
	// Stalled are overdue operations of weir itself.
	Stalled []string `json:"stalled,omitempty"`
	// Nodes are all nodes and services in the event "status", and those that have changed
	// in the event "change".
	Nodes []LiveNode `json:"nodes"`
	// Removed are the IDs of nodes that have left the graph since the last event.
	Removed []string `json:"removed,omitempty"`
}

// LiveNode is the state of a node that changes while it runs. Rates are per second, in
// the last minute, with three significant digits. They are sent again when they have
// changed by more than 2 %.
type LiveNode struct {
	ID      string                `json:"id"`
	State   component.HealthState `json:"state"`
	Message string                `json:"message,omitempty"` // of its health
	Since   time.Time             `json:"since"`             // of its health
	In      float64               `json:"in"`
	Out     float64               `json:"out"`
	Dropped float64               `json:"dropped"`
	Waiting int64                 `json:"waiting,omitempty"` // samples and log lines in the queue
	Oldest  float64               `json:"oldest,omitempty"`  // the age of the oldest of them, in seconds
	Version string                `json:"version,omitempty"` // of the script
	Step    string                `json:"step,omitempty"`    // of a new version that is in progress
	// DroppedTotal is the number of samples and log lines that were dropped since the node
	// exists.
	DroppedTotal uint64 `json:"dropped_total,omitempty"`
	// Quarantined is the number of samples and log lines in quarantine.
	Quarantined int64 `json:"quarantined,omitempty"`
}

const (
	// liveInterval is the time between two updates.
	liveInterval = 500 * time.Millisecond
	// maxLive is how many clients may follow the updates.
	maxLive = 100
	// maxBehind is how many updates may wait for a client. If there are more, they are
	// dropped, and the client gets the whole status instead.
	maxBehind = 8
)

// live sends the state of the nodes to clients. It is computed only while there are
// clients, and once for all of them.
type live struct {
	s    *Service
	join chan struct{} // a client has joined

	mu      sync.Mutex
	clients map[*liveClient]bool // whether it has the whole status
	running bool
	closed  bool
	wg      sync.WaitGroup
}

// liveClient is a connected client.
type liveClient struct{ messages chan []byte }

func newLive(s *Service) *live {
	return &live{s: s, join: make(chan struct{}, 1), clients: map[*liveClient]bool{}}
}

// add adds a client, and returns nil if there are too many or weir stops.
func (l *live) add(host service.Host) *liveClient {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed || len(l.clients) >= maxLive {
		return nil
	}
	c := &liveClient{make(chan []byte, maxBehind)}
	l.clients[c] = false
	if !l.running {
		l.running = true
		l.wg.Go(func() { l.run(host) })
	}
	select {
	case l.join <- struct{}{}:
	default: // the loop looks at the clients anyway
	}
	return c
}

func (l *live) remove(c *liveClient) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.clients, c)
}

// close waits for the end of the loop, which follows that of the service.
func (l *live) close() {
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	l.wg.Wait()
}

// stop reports whether the loop ends because there are no clients.
func (l *live) stop() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.clients) == 0 {
		l.running = false
	}
	return !l.running
}

// run sends updates until there are no clients.
func (l *live) run(host service.Host) {
	timer := l.s.o.Clock.NewTimer(0)
	defer timer.Stop()
	past, more := host.ReloadEvents(0)
	last := uint64(0)
	if len(past) > 0 {
		last = past[len(past)-1].ID
	}
	var known LiveStatus
	var whole []byte // the event "status" for clients that join
	for !l.stop() {
		select {
		case <-timer.C():
			now := l.status(host)
			steady(known, now)
			if change, ok := changed(known, now); ok {
				l.send(liveEvent("change", change))
			}
			known, whole = now, nil
			timer.Reset(liveInterval)
		case <-l.join:
			if known.Nodes == nil {
				continue // the timer fires at once
			}
		case <-more:
			var events []service.ReloadEvent
			events, more = host.ReloadEvents(last)
			for _, ev := range events {
				last = ev.ID
				name, data := reloadEvent(ev)
				l.send(liveEvent(name, data))
			}
			continue
		case <-l.s.closing:
			return
		}
		l.welcome(func() []byte {
			if whole == nil {
				whole = liveEvent("status", known)
			}
			return whole
		})
	}
}

// send sends an event to all clients that have the whole status. It does not wait for
// any of them: a client that is too slow starts over with the next whole status.
func (l *live) send(event []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for c, welcomed := range l.clients {
		if !welcomed {
			continue
		}
		select {
		case c.messages <- event:
		default:
			c.clear()
			l.clients[c] = false
		}
	}
}

// clear removes the events that wait for the client.
func (c *liveClient) clear() {
	for {
		select {
		case <-c.messages:
		default:
			return
		}
	}
}

// welcome sends the whole status to the clients that do not have it.
func (l *live) welcome(whole func() []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for c, welcomed := range l.clients {
		if !welcomed {
			c.messages <- whole() // it has room: nothing else waits for this client
			l.clients[c] = true
		}
	}
}

func liveEvent(name string, data any) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "event: %s\ndata: ", name)
	_ = json.NewEncoder(&b).Encode(data) // it has what JSON can express
	b.WriteByte('\n')
	return b.Bytes()
}

// status returns the state of all nodes and services.
func (l *live) status(host service.Host) LiveStatus {
	infos, o := host.ListComponents(), host.Overview()
	rates := make([]history.Rates, len(infos))
	if r := l.s.o.History; r != nil {
		rates = r.Rates(infos, o.Time)
	}
	out := LiveStatus{Time: o.Time, Ready: o.Ready, Stopping: o.Stopping, ConfigError: o.ConfigError, Stalled: o.Stalled, Nodes: make([]LiveNode, 0, len(infos)+len(o.Services))}
	for k, i := range append(infos, o.Services...) {
		n := LiveNode{ID: i.ID, State: i.Health.State, Message: i.Health.Message, Since: i.Health.Time, Version: i.Version, Waiting: i.Backlog.Samples + i.Backlog.Lines}
		if k < len(rates) {
			n.In, n.Out, n.Dropped = significant(rates[k].In), significant(rates[k].Out), significant(rates[k].Dropped)
		}
		if t := i.Backlog.Oldest; !t.IsZero() {
			n.Oldest = significant(max(o.Time.Sub(t).Seconds(), 0))
		}
		if i.Trial != nil {
			n.Step = i.Trial.Step
		}
		if i.Stats != nil {
			n.DroppedTotal, n.Quarantined = i.Stats.Lost(), i.Backlog.Quarantined
		}
		out.Nodes = append(out.Nodes, n)
	}
	return out
}

// significant rounds a rate to three significant digits, so that small changes are not
// sent.
func significant(v float64) float64 {
	if v <= 0 {
		return 0
	}
	scale := math.Pow(10, 2-math.Floor(math.Log10(v)))
	return math.Round(v*scale) / scale
}

// maxDrift is by how much a rate may change before it is sent again. Records arrive in
// batches, so the rate of a steady flow is not constant.
const maxDrift = 0.02

// steady keeps the rates that were sent, if they have hardly changed.
func steady(sent, now LiveStatus) {
	old := make(map[string]LiveNode, len(sent.Nodes))
	for _, n := range sent.Nodes {
		old[n.ID] = n
	}
	keep := func(rate *float64, sent float64) {
		if math.Abs(*rate-sent) <= maxDrift*sent {
			*rate = sent
		}
	}
	for i := range now.Nodes {
		n := &now.Nodes[i]
		before := old[n.ID]
		keep(&n.In, before.In)
		keep(&n.Out, before.Out)
		keep(&n.Dropped, before.Dropped)
	}
}

// changed returns a status with the nodes that are not as they were. ok is false if
// nothing has changed.
func changed(before, now LiveStatus) (change LiveStatus, ok bool) {
	old := make(map[string]LiveNode, len(before.Nodes))
	for _, n := range before.Nodes {
		old[n.ID] = n
	}
	nodes := now.Nodes
	now.Nodes = []LiveNode{}
	for _, n := range nodes {
		if b, ok := old[n.ID]; !ok || b != n {
			now.Nodes = append(now.Nodes, n)
		}
		delete(old, n.ID)
	}
	now.Removed = slices.Sorted(maps.Keys(old))
	return now, len(now.Nodes)+len(now.Removed) > 0 || now.Ready != before.Ready || now.Stopping != before.Stopping || now.ConfigError != before.ConfigError || !slices.Equal(now.Stalled, before.Stalled)
}

// serveLive sends the state of all nodes, and then its changes, until the client or weir
// ends.
func (s *Service) serveLive(host service.Host, w nethttp.ResponseWriter, r *nethttp.Request) {
	c := s.live.add(s.shownToAll(host))
	if c == nil {
		nethttp.Error(w, fmt.Sprintf("%d clients follow the status already, or weir stops", maxLive), nethttp.StatusServiceUnavailable)
		return
	}
	defer s.live.remove(c)
	send, ok := startEvents(w)
	if !ok {
		return
	}
	beat := s.o.Clock.NewTimer(heartbeat)
	defer beat.Stop()
	for {
		select {
		case event := <-c.messages:
			if !send(event) {
				return
			}
		case <-beat.C():
			if !send([]byte(": heartbeat\n\n")) {
				return
			}
		case <-r.Context().Done():
			return
		case <-s.closing:
			return
		}
		beat.Reset(heartbeat)
	}
}

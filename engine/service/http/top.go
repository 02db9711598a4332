package http

import (
	"encoding/json"
	"fmt"
	nethttp "net/http"
	"net/http/pprof"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/weir-run/weir/engine/flow"
	"github.com/weir-run/weir/engine/service"
	"github.com/weir-run/weir/engine/usage"
)

// Usage is a line of the response of /api/v0/top. Counters only increase while the
// response lasts, so the difference of two lines is what happened between them.
type Usage struct {
	Time time.Time `json:"time"`
	// Error is why the response ends, on its last line; it has no other fields.
	Error string `json:"error,omitempty"`
	// CPUError is why the CPU time since the previous line is unknown.
	CPUError string `json:"cpu_error,omitempty"`
	// OtherCPU is the CPU time of the process that belongs to no node, such as garbage
	// collection and this response.
	OtherCPU float64     `json:"other_cpu_seconds"`
	Nodes    []NodeUsage `json:"nodes"` // in config order
}

// NodeUsage are the counters of one node. CPU, calls, errors and bytes count from the
// time when the first client began to follow; the other counters count since the node
// exists.
type NodeUsage struct {
	ID     string `json:"id"`
	Name   string `json:"name"`   // of its block
	Health string `json:"health"` // unknown, healthy, unhealthy or exited
	// CPU is the time that the process spent in the node and the goroutines that it
	// started, without the nodes that it sends to. It is measured with a sample for every
	// 10 ms.
	CPU float64 `json:"cpu_seconds"`
	// Calls are the batches that arrived, or the batches that were sent if the node
	// receives none.
	Calls  uint64 `json:"calls"`
	Errors uint64 `json:"errors"` // batches that the node did not accept
	// RecordsIn and RecordsOut are samples and log lines. RecordsOut counts a record once
	// for each receiver or endpoint that accepted it.
	RecordsIn  uint64 `json:"records_in"`
	RecordsOut uint64 `json:"records_out"`
	// BytesIn and BytesOut estimate the size of the records: of a sample, its labels and
	// 16 bytes for the value and the time, and 8 bytes for each bucket of a native
	// histogram; of a log line, its text. BytesOut counts a record once for all receivers,
	// and is 0 for a sink.
	BytesIn  uint64 `json:"bytes_in"`
	BytesOut uint64 `json:"bytes_out"`
	// Dropped are the records that the node removed, by reason, for example because of a
	// rule. Lost are the records that could not be delivered, by reason.
	Dropped map[string]uint64 `json:"dropped"`
	Lost    map[string]uint64 `json:"lost"`
	// Queue is the number of records that wait in the journal, and Oldest is when the
	// oldest of them was stored; null if none waits.
	Queue  int64      `json:"queue"`
	Oldest *time.Time `json:"oldest"`
}

// lossReasons are the reasons with which nodes that are not sinks lose records. All
// records that a sink drops are lost.
var lossReasons = []string{"endpoint_removed", "incomplete", "no_receiver", "quarantine", "queue_full", "refused", "script_error", "stopped"}

// split separates the records that a node dropped from those that it lost.
func split(reasons map[string]uint64, sink bool, dropped, lost map[string]uint64) {
	for reason, n := range reasons {
		if sink || slices.Contains(lossReasons, reason) {
			lost[reason] += n
		} else {
			dropped[reason] += n
		}
	}
}

// meters are the meters of all nodes while clients follow.
type meters struct {
	cpu usage.CPU

	mu      sync.Mutex
	clients int
	by      map[*flow.Stats]*flow.Meter
}

// follow attaches meters until it is released.
func (m *meters) follow() (release func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.clients++
	m.cpu.Start()
	return func() {
		m.cpu.Stop()
		m.mu.Lock()
		defer m.mu.Unlock()
		if m.clients--; m.clients == 0 {
			m.keep(nil)
		}
	}
}

// meter returns the meter of a node, and attaches one to a new node.
func (m *meters) meter(i service.Info) *flow.Meter {
	c := m.by[i.Stats]
	if c == nil {
		c = flow.NewMeter(i.ID)
		if m.by == nil {
			m.by = map[*flow.Stats]*flow.Meter{}
		}
		m.by[i.Stats] = c
		i.Stats.SetMeter(c)
	}
	return c
}

// keep detaches the meters of nodes that are not in nodes.
func (m *meters) keep(nodes []service.Info) {
	there := map[*flow.Stats]bool{}
	for _, i := range nodes {
		there[i.Stats] = true
	}
	for stats := range m.by {
		if !there[stats] {
			stats.SetMeter(nil)
			delete(m.by, stats)
		}
	}
}

// withRecords returns the nodes through which records pass: without the blocks that
// contain other nodes.
func withRecords(all []service.Info) (nodes []service.Info) {
	contains := map[string]bool{}
	for _, i := range all {
		for id := i.ID; strings.Contains(id, "/"); {
			id = id[:strings.LastIndexByte(id, '/')]
			contains[id] = true
		}
	}
	for _, i := range all {
		if i.Stats != nil && !contains[i.ID] && i.Name != "foreach" && !strings.HasPrefix(i.Name, "import.") {
			nodes = append(nodes, i)
		}
	}
	return nodes
}

// read returns the counters of all nodes.
func (m *meters) read(host service.Host, now time.Time) Usage {
	times, err := m.cpu.Read()
	nodes := withRecords(host.ListComponents())
	m.mu.Lock()
	defer m.mu.Unlock()
	m.keep(nodes)
	u := Usage{Time: now, Nodes: []NodeUsage{}, OtherCPU: times[""].Seconds()}
	if err != nil {
		u.CPUError = err.Error()
	}
	for _, i := range nodes {
		c, s := m.meter(i), i.Stats
		n := NodeUsage{
			ID: i.ID, Name: i.Name, Health: i.Health.State.String(), CPU: times[i.ID].Seconds(), Calls: c.In.Batches.Load(), Errors: c.Refused.Load(),
			RecordsIn: s.In.Load() + s.LinesIn.Load(), RecordsOut: s.Out.Load() + s.LinesOut.Load(),
			BytesIn: c.In.Bytes.Load(), BytesOut: c.Out.Bytes.Load(),
			Dropped: map[string]uint64{}, Lost: map[string]uint64{}, Queue: i.Backlog.Samples + i.Backlog.Lines,
		}
		if n.Calls == 0 && n.RecordsIn == 0 {
			n.Calls = c.Out.Batches.Load()
		}
		sink := len(i.SendsTo) == 0
		split(s.Dropped(), sink, n.Dropped, n.Lost)
		split(s.DroppedLines(), sink, n.Dropped, n.Lost)
		if oldest := i.Backlog.Oldest; n.Queue > 0 && !oldest.IsZero() {
			n.Oldest = &oldest
		}
		u.Nodes = append(u.Nodes, n)
	}
	return u
}

const (
	// maxFollowers is how many clients may follow the counters of nodes.
	maxFollowers = 10
	// minInterval and maxInterval limit the interval of lines.
	minInterval = 500 * time.Millisecond
	maxInterval = time.Minute
	// defaultInterval is the interval without the parameter.
	defaultInterval = 2 * time.Second
)

// topOptions are the parameters of /api/v0/top. lines is 0 if there is no limit.
func topOptions(q url.Values) (interval time.Duration, lines int, err error) {
	for name := range q {
		if name != "interval" && name != "lines" {
			return 0, 0, fmt.Errorf("there is no parameter %q; there are interval and lines", name)
		}
	}
	interval = defaultInterval
	if text := q.Get("interval"); text != "" {
		if interval, err = time.ParseDuration(text); err != nil || interval < minInterval || interval > maxInterval {
			return 0, 0, fmt.Errorf("interval must be a duration from %s to %s, such as 2s, not %q", minInterval, maxInterval, text)
		}
	}
	if text := q.Get("lines"); text != "" {
		if lines, err = strconv.Atoi(text); err != nil || lines < 1 {
			return 0, 0, fmt.Errorf("lines must be a number greater than 0, not %q", text)
		}
	}
	return interval, lines, nil
}

// top writes the counters of all nodes until the client goes or weir stops.
func (s *Service) top(host service.Host, w nethttp.ResponseWriter, r *nethttp.Request) {
	interval, lines, err := topOptions(r.URL.Query())
	if err != nil {
		nethttp.Error(w, err.Error(), nethttp.StatusBadRequest)
		return
	}
	defer s.followers.Add(-1)
	if s.followers.Add(1) > maxFollowers {
		nethttp.Error(w, fmt.Sprintf("%d clients follow the nodes already", maxFollowers), nethttp.StatusServiceUnavailable)
		return
	}
	defer s.meters.follow()()
	w.Header().Set("Content-Type", "application/x-ndjson")
	w.Header().Set("Cache-Control", "no-cache")
	out := nethttp.NewResponseController(w)
	write := func(u Usage) bool {
		_ = out.SetWriteDeadline(time.Now().Add(streamTime)) // fails with the write
		return json.NewEncoder(w).Encode(u) == nil && out.Flush() == nil
	}
	tick := s.o.Clock.NewTimer(interval)
	defer tick.Stop()
	for n := 1; ; n++ {
		if !write(s.meters.read(host, s.o.Clock.Now())) || n == lines {
			return
		}
		select {
		case <-tick.C():
			tick.Reset(interval)
		case <-r.Context().Done():
			return
		case <-s.closing:
			write(Usage{Time: s.o.Clock.Now(), Error: "weir stops", Nodes: []NodeUsage{}})
			return
		}
		if host.Overview().Stopping {
			write(Usage{Time: s.o.Clock.Now(), Error: "weir stops", Nodes: []NodeUsage{}})
			return
		}
	}
}

// cpuProfile takes a CPU profile of the process. There can be only one at a time.
func (s *Service) cpuProfile(w nethttp.ResponseWriter, r *nethttp.Request) {
	defer s.meters.cpu.Pause()()
	pprof.Profile(w, r)
}

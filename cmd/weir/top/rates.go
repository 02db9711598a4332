// Package top shows how much CPU time and data the nodes of a running weir use: as a
// table, as JSON, and on a screen that is updated. It computes rates from the counters
// that weir returns. It does not ask weir; the caller passes the counters.
package top

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/weir-run/weir/engine/config"
	"github.com/weir-run/weir/engine/service/http"
)

// Rates are the rates of all nodes in an interval.
type Rates struct {
	Time    time.Time `json:"time"`
	Seconds float64   `json:"interval_seconds"`
	// CPUError is why CPU is unknown; it is then 0.
	CPUError string  `json:"cpu_error,omitempty"`
	CPU      float64 `json:"cpu_percent"`       // of the process; 100 is one core
	OtherCPU float64 `json:"other_cpu_percent"` // the part that belongs to no node
	Nodes    []Node  `json:"nodes"`
}

// Node are the rates of a node, per second.
type Node struct {
	ID         string            `json:"id"`
	Name       string            `json:"name"` // of the block
	Health     string            `json:"health"`
	CPU        float64           `json:"cpu_percent"` // 100 is one core
	Calls      float64           `json:"calls_per_second"`
	RecordsIn  float64           `json:"records_in_per_second"`
	RecordsOut float64           `json:"records_out_per_second"`
	BytesIn    float64           `json:"bytes_in_per_second"`
	BytesOut   float64           `json:"bytes_out_per_second"`
	Dropped    float64           `json:"dropped_per_second"`
	Lost       float64           `json:"lost_per_second"`
	Errors     float64           `json:"errors_per_second"`
	Queue      int64             `json:"queue"`
	Age        float64           `json:"queue_age_seconds"`       // of the oldest record in the queue
	DroppedBy  map[string]uint64 `json:"dropped_total,omitempty"` // by reason, since the node exists
	LostBy     map[string]uint64 `json:"lost_total,omitempty"`

	receives bool // records arrived since the node exists
}

// Records returns the rate of the records that arrive, or of those that are sent if the
// node receives none, such as a source.
func (n Node) Records() float64 {
	if n.receives {
		return n.RecordsIn
	}
	return n.RecordsOut
}

// sick reports whether the node is unhealthy or has exited.
func (n Node) sick() bool { return n.Health == "unhealthy" || n.Health == "exited" }

// Bytes is like Records, for bytes.
func (n Node) Bytes() float64 {
	if n.receives {
		return n.BytesIn
	}
	return n.BytesOut
}

// Between returns the rates between two lines of weir's response. Nodes that are not
// in the first line have counted from 0.
func Between(before, now http.Usage) Rates {
	r := Rates{Time: now.Time, Seconds: now.Time.Sub(before.Time).Seconds(), CPUError: now.CPUError, Nodes: []Node{}}
	if r.Seconds <= 0 {
		r.Seconds = 1 // the clock was set back
	}
	earlier := map[string]http.NodeUsage{}
	for _, n := range before.Nodes {
		earlier[n.ID] = n
	}
	cpu := func(before, now float64) float64 {
		if r.CPUError != "" {
			return 0
		}
		return 100 * max(now-before, 0) / r.Seconds
	}
	r.OtherCPU = cpu(before.OtherCPU, now.OtherCPU)
	r.CPU = r.OtherCPU
	for _, n := range now.Nodes {
		b := earlier[n.ID]
		if n.RecordsIn < b.RecordsIn || n.RecordsOut < b.RecordsOut || n.Calls < b.Calls { // it was removed and added again
			b = http.NodeUsage{CPU: b.CPU}
		}
		rate := func(before, now uint64) float64 { return float64(now-min(before, now)) / r.Seconds }
		out := Node{
			ID: n.ID, Name: n.Name, Health: n.Health, CPU: cpu(b.CPU, n.CPU), Calls: rate(b.Calls, n.Calls),
			RecordsIn: rate(b.RecordsIn, n.RecordsIn), RecordsOut: rate(b.RecordsOut, n.RecordsOut),
			BytesIn: rate(b.BytesIn, n.BytesIn), BytesOut: rate(b.BytesOut, n.BytesOut),
			Dropped: rate(sum(b.Dropped), sum(n.Dropped)), Lost: rate(sum(b.Lost), sum(n.Lost)), Errors: rate(b.Errors, n.Errors),
			Queue: n.Queue, DroppedBy: n.Dropped, LostBy: n.Lost, receives: n.RecordsIn > 0 || n.BytesIn > 0,
		}
		if n.Oldest != nil {
			out.Age = max(now.Time.Sub(*n.Oldest).Seconds(), 0)
		}
		r.CPU += out.CPU
		r.Nodes = append(r.Nodes, out)
	}
	return r
}

func sum(by map[string]uint64) (n uint64) {
	for v := range maps.Values(by) {
		n += v
	}
	return n
}

// View selects and orders nodes.
type View struct {
	Sort    string // a name in Sorts
	Reverse bool   // the smallest first, or names from z to a
	Filter  string // a part of the ID, in upper or lower case; "" for all nodes
	Limit   int    // the maximum number of nodes; 0 for all
}

// Check returns an error if the order is unknown or the limit is negative.
func (v View) Check() error {
	if !slices.Contains(Sorts(), v.Sort) {
		return fmt.Errorf("--sort must be one of %s, not %q", strings.Join(Sorts(), ", "), v.Sort)
	}
	if v.Limit < 0 {
		return fmt.Errorf("--limit must not be negative, not %d", v.Limit)
	}
	return nil
}

// Nodes returns the nodes to show.
func (v View) Nodes(all []Node) []Node {
	out := slices.DeleteFunc(slices.Clone(all), func(n Node) bool {
		return !strings.Contains(strings.ToLower(n.ID), strings.ToLower(v.Filter))
	})
	by := columnOf(v.Sort)
	slices.SortStableFunc(out, func(a, b Node) int {
		c := strings.Compare(a.ID, b.ID)
		if by.value != nil {
			c = cmp.Or(cmp.Compare(by.value(b), by.value(a)), c)
		}
		if v.Reverse {
			return -c
		}
		return c
	})
	if v.Limit > 0 && len(out) > v.Limit {
		out = out[:v.Limit]
	}
	return out
}

// printable returns the ID of a node as one line without control characters.
func printable(id string) string {
	return strings.NewReplacer("\n", "\uFFFD", "\t", "\uFFFD").Replace(config.Printable(id))
}

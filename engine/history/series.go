package history

import (
	"math"
	"strconv"
	"time"

	"github.com/weir-run/weir/engine/flow"
	"github.com/weir-run/weir/engine/service"
)

// Value is a value of a chart. NaN, which is null in JSON, means that it is not known.
type Value float32

// MarshalJSON returns a number or null.
func (v Value) MarshalJSON() ([]byte, error) {
	if f := float64(v); !math.IsNaN(f) && !math.IsInf(f, 0) {
		return strconv.AppendFloat(nil, f, 'g', -1, 32), nil
	}
	return []byte("null"), nil
}

// The columns of a series.
const (
	in = iota
	out
	dropped
	waiting
	oldest
	columns
)

// point is a value for each column.
type point [columns]Value

// series are the values of the last hour. A column without memory is 0.
type series struct {
	known  [(Points + 63) / 64]uint64 // bits of the slots that have values
	values [columns]*[Points]Value
}

// clear forgets the values in a slot.
func (s *series) clear(slot int) { s.known[slot/64] &^= 1 << (slot % 64) }

// any reports whether there are values.
func (s *series) any() bool {
	for _, bits := range s.known {
		if bits != 0 {
			return true
		}
	}
	return false
}

// set sets the values in a slot.
func (s *series) set(slot int, p point) {
	s.known[slot/64] |= 1 << (slot % 64)
	for c, v := range p {
		if s.values[c] == nil {
			if v == 0 {
				continue
			}
			s.values[c] = new([Points]Value)
		}
		s.values[c][slot] = v
	}
}

// column returns the values of slots, or nil if they are all 0.
func (s *series) column(c int, slots []int) []Value {
	if s.values[c] == nil {
		return nil
	}
	out := make([]Value, len(slots))
	for i, slot := range slots {
		out[i] = s.values[c][slot]
		if s.known[slot/64]&(1<<(slot%64)) == 0 {
			out[i] = Value(math.NaN())
		}
	}
	return out
}

// counts are the counters of a node at one moment.
type counts struct {
	stats            *flow.Stats // that has the counters
	point            int         // when they were read
	time             time.Time
	in, out, dropped uint64
	lines            uint64 // of out
	waiting          int64
	oldest           time.Duration
}

// countsOf reads the counters of a node.
func countsOf(i service.Info, now time.Time, point int) counts {
	s := i.Stats
	c := counts{
		stats: s, point: point, time: now, waiting: i.Backlog.Samples + i.Backlog.Lines,
		in: s.In.Load() + s.LinesIn.Load(), out: s.Out.Load() + s.LinesOut.Load(), dropped: s.Lost(),
		lines: s.LinesOut.Load(),
	}
	if t := i.Backlog.Oldest; !t.IsZero() {
		c.oldest = max(now.Sub(t), 0) // the clock may have been set back
	}
	return c
}

// since returns the rates since earlier counts, if these are of the point before.
func (c counts) since(before counts) (p point, ok bool) {
	seconds := c.time.Sub(before.time).Seconds()
	if before.stats == nil || before.point != c.point-1 || seconds <= 0 {
		return p, false
	}
	if before.stats != c.stats { // the node was removed and added again
		before.in, before.out, before.dropped = 0, 0, 0
	}
	rate := func(now, before uint64) Value { return Value(float64(now-min(before, now)) / seconds) }
	p[in], p[out], p[dropped] = rate(c.in, before.in), rate(c.out, before.out), rate(c.dropped, before.dropped)
	p[waiting], p[oldest] = Value(c.waiting), Value(c.oldest.Seconds())
	return p, true
}

// linesSince returns the log lines per second that were sent since earlier counts, for
// which since has returned rates.
func (c counts) linesSince(before counts) Value {
	if before.stats != c.stats {
		before.lines = 0
	}
	return Value(float64(c.lines-min(before.lines, c.lines)) / c.time.Sub(before.time).Seconds())
}

// total is the sum of all nodes: in is what sources sent, and out is what sinks sent.
type total point

func (t *total) add(p point, source, sink bool) {
	if source {
		t[in] += p[out]
	}
	if sink {
		t[out] += p[out]
	}
	t[dropped] += p[dropped]
	t[waiting] += p[waiting]
	t[oldest] = max(t[oldest], p[oldest])
}

func (t *total) point() point { return point(*t) }

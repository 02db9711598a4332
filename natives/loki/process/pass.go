package process

import (
	"context"
	"slices"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/regex"
)

// pass is a batch on its way through the stages: its columns, which are copied
// once before they are changed, and the rows that remain. Only one goroutine uses
// it.
type pass struct {
	pl *pipeline
	in *batch.Logs

	// rows are the numbers of the remaining rows, in the order in which they are
	// sent. A stage may remove rows and may insert rows of its own, see add.
	rows []int

	stream []*batch.Stream
	t      []int64
	line   []string
	meta   [][]batch.Label // nil for none

	origin []*batch.Stream    // the streams at the beginning of the pipeline or of a match
	slots  [][]value          // extracted values, by slot and row
	extra  []map[string]value // by row: extracted values without a slot; nil unless pl.all

	own  columns       // the columns that are not shared with the batch
	free []*batch.Hold // released after the rows were sent

	meter   *regex.Meter
	slow    []int // rows that exceeded the limits of a stage
	stopped bool  // some of them because the context of the call ended

	values []value // scratch
}

// columns tells which columns have been copied.
type columns struct{ stream, t, line, meta, origin bool }

// begin returns the pass of a batch. The caller calls release afterwards.
func (pl *pipeline) begin(ctx context.Context, b *batch.Logs) *pass {
	p := pl.scratch.Get().(*pass)
	p.in, p.meter = b, regex.NewMeter(ctx)
	p.stream, p.t, p.line, p.meta, p.origin = b.Stream, b.T, b.Line, b.Meta, b.Stream
	for i := range b.Len() {
		p.rows = append(p.rows, i)
	}
	if pl.all {
		p.extra = make([]map[string]value, b.Len())
	}
	for i := range p.slots {
		p.slots[i] = slices.Grow(p.slots[i], b.Len())[:b.Len()]
	}
	return p
}

// maxScratch is the maximum number of rows of a pass whose memory is reused.
const maxScratch = 1 << 16

// release puts the pass back into the pool.
func (p *pass) release() {
	if len(p.line) > maxScratch {
		return
	}
	for i, s := range p.slots {
		clear(s)
		p.slots[i] = s[:0]
	}
	clear(p.values)
	*p = pass{pl: p.pl, rows: p.rows[:0], slots: p.slots, values: p.values[:0]}
	p.pl.scratch.Put(p)
}

// get returns an extracted value: the value of the slot if it is set, else the
// label of the same name.
func (p *pass) get(slot, row int) value {
	v := p.slots[slot][row]
	if v.kind == unset {
		if l := p.origin[row].Label(p.pl.names[slot]); l != "" {
			return value{text, l}
		}
	}
	return v
}

// set sets an extracted value.
func (p *pass) set(slot, row int, v value) { p.slots[slot][row] = v }

// setExtra sets an extracted value that has no slot.
func (p *pass) setExtra(row int, name string, v value) {
	if p.extra[row] == nil {
		p.extra[row] = map[string]value{}
	}
	p.extra[row][name] = v
}

// each calls f with all extracted values of a row, including those without a
// slot, and with the labels that no value overrides. Only stages that called
// readAll use it.
func (p *pass) each(row int, f func(name string, v value)) {
	for name, l := range p.origin[row].Labels() {
		if !slices.Contains(p.pl.names, name) {
			if _, ok := p.extra[row][name]; !ok {
				f(name, value{text, l})
			}
		}
	}
	for slot, name := range p.pl.names {
		if v := p.get(slot, row); v.exists() {
			f(name, v)
		}
	}
	for name, v := range p.extra[row] {
		f(name, v)
	}
}

// source returns the text that a stage reads: the line if slot is negative, else
// the extracted value. ok is false if the value is not text.
func (p *pass) source(slot, row int) (s string, ok bool) {
	if slot < 0 {
		return p.line[row], true
	}
	return p.get(slot, row).str()
}

// filterRows keeps the rows for which f is true and returns how many it removed.
func (p *pass) filterRows(f func(row int) bool) (removed int) {
	left := p.rows[:0]
	for _, r := range p.rows {
		if f(r) {
			left = append(left, r)
		}
	}
	removed = len(p.rows) - len(left)
	p.rows = left
	return removed
}

// guard limits the cost of matching the text of one row.
func (p *pass) guard() regex.Guard { return p.meter.Guard() }

// slowReason is the reason under which rows are counted that exceeded the limits
// of a stage.
const slowReason = "match_limit"

// tooSlow records that a row exceeded the time or size limit of a stage. The row
// is dropped after the stage, because data that the stage would have removed must
// not get through.
func (p *pass) tooSlow(row int) {
	p.slow = append(p.slow, row)
	p.stopped = p.stopped || p.meter.Err() != nil
}

// dropSlow drops the rows that exceeded the limits of a stage.
func (p *pass) dropSlow() {
	p.drop(slowReason, func(row int) bool {
		i := slices.Index(p.slow, row)
		if i >= 0 {
			p.slow = slices.Delete(p.slow, i, i+1)
		}
		return i < 0
	})
}

// drop removes the rows for which keep is false and counts them as dropped for a
// reason.
func (p *pass) drop(reason string, keep func(row int) bool) {
	p.pl.countDropped(reason, p.filterRows(keep))
}

func (p *pass) setLine(row int, s string) {
	if !p.own.line {
		p.line, p.own.line = slices.Clone(p.line), true
	}
	p.line[row] = s
}

func (p *pass) setTime(row int, ns int64) {
	if !p.own.t {
		p.t, p.own.t = slices.Clone(p.t), true
	}
	p.t[row] = ns
}

func (p *pass) setStream(row int, s *batch.Stream) {
	if p.stream[row] == s {
		return
	}
	if !p.own.stream {
		p.stream, p.own.stream = slices.Clone(p.stream), true
	}
	p.stream[row] = s
}

// metaOf returns the metadata of a row, nil if it has none. The slice is shared.
func (p *pass) metaOf(row int) []batch.Label {
	if p.meta == nil {
		return nil
	}
	return p.meta[row]
}

// setMeta sets the metadata of a row, which is sorted by name, with unique names.
// The slice must not be written to afterwards.
func (p *pass) setMeta(row int, m []batch.Label) {
	if p.meta == nil && len(m) == 0 {
		return
	}
	p.ownMeta()
	p.meta[row] = m
}

func (p *pass) ownMeta() {
	switch {
	case p.meta == nil:
		p.meta = make([][]batch.Label, len(p.line))
	case !p.own.meta:
		p.meta = slices.Clone(p.meta)
	}
	p.own.meta = true
}

// takeLabels updates the labels that extracted values fall back to, as at the
// beginning of a pipeline. The stages of a match begin with it.
func (p *pass) takeLabels() {
	for slot, name := range p.pl.names {
		var of *batch.Stream
		label := ""
		for _, r := range p.rows {
			if p.stream[r] != of {
				of = p.stream[r]
				label = of.Label(name)
			}
			if label != "" {
				p.set(slot, r, value{text, label})
			}
		}
	}
	if p.extra == nil {
		return
	}
	for _, r := range p.rows {
		for name, label := range p.stream[r].Labels() {
			if !slices.Contains(p.pl.names, name) {
				p.setExtra(r, name, value{text, label})
			}
		}
	}
}

// finish returns the remaining rows as a batch. If nothing changed, it returns
// the original batch.
func (p *pass) finish() *batch.Logs {
	if p.isWhole() {
		if p.own == (columns{origin: p.own.origin}) {
			return p.in
		}
		out := *p.in
		n := len(p.rows)
		out.Stream, out.T, out.Line = p.stream[:n:n], p.t[:n:n], p.line[:n:n]
		if out.Meta = nil; p.meta != nil {
			out.Meta = withMeta(p.meta[:n:n])
		}
		return &out
	}
	return p.copyRows()
}

// copyRows returns the remaining rows as a batch that later stages do not change.
func (p *pass) copyRows() *batch.Logs {
	out := *p.in
	out.Stream, out.T, out.Line = pick(p.stream, p.rows), pick(p.t, p.rows), pick(p.line, p.rows)
	if out.Meta = nil; p.meta != nil {
		out.Meta = withMeta(pick(p.meta, p.rows))
	}
	return &out
}

// isWhole reports whether the rows are exactly those of the batch.
func (p *pass) isWhole() bool {
	if len(p.rows) != p.in.Len() {
		return false
	}
	for i, r := range p.rows {
		if i != r {
			return false
		}
	}
	return true
}

func pick[E any](from []E, rows []int) []E {
	to := make([]E, len(rows))
	for i, r := range rows {
		to[i] = from[r]
	}
	return to
}

// withMeta returns the column, or nil if no row has metadata.
func withMeta(m [][]batch.Label) [][]batch.Label {
	if slices.ContainsFunc(m, func(ls []batch.Label) bool { return len(ls) > 0 }) {
		return m
	}
	return nil
}

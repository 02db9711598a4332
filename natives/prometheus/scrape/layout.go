package scrape

import (
	"bytes"
	"math"
	"slices"
	"sync"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/textparse"

	"github.com/weir-run/weir/engine/batch"
)

// format is the syntax of a body, as far as layouts know it.
type format uint8

const (
	otherFormat format = iota // never has a layout
	textFormat
	openMetricsFormat
)

// layout is what stays the same when a target is scraped again: the text of
// its last body without values and timestamps, cut into runs. A run is the
// text between two values: a line feed, maybe metadata and comments, then name
// and labels of the next sample and a space. Where a new body has the same
// run between two values, textparse would see the same lines, so only the
// values are parsed.
//
// Why that is so: a run starts where a lexer has just ended a value (or
// timestamp) and meets a line feed, and ends with the space before the next
// value; what the lexer makes of the bytes between depends on nothing else. A
// value ends where a space, a line feed or the body's end is, for the lexers
// as for parseValue. What the parsers keep from line to line is the type of
// the last TYPE line and the last UNIT: they matter for the labels of lines
// that are not cached, and those are never parsed from a layout.
type layout struct {
	format      format
	contentType string

	text  []byte // the runs, one after the other, then what follows the last value
	lines []layoutLine
	meta  []layoutMeta

	ok     bool // it describes a whole body
	rows   int  // samples that the body gave
	opaque int  // lines flagged so

	// column is the series of a batch made from this layout, the report's
	// among them; every batch that is made so shares it.
	column    []*batch.Series
	columnFor *settings
}

// layoutLine is one sample line. Its run is text[end of the one before:end].
type layoutLine struct {
	l     *line
	end   uint32
	meta  uint32 // end of its metadata lines in layout.meta
	key   uint32 // length of name and labels
	pad   uint16 // length of the white space behind them
	flags lineFlags
}

type lineFlags uint8

const (
	// lineHasT: a space and a timestamp follow the value.
	lineHasT lineFlags = 1 << iota
	// lineRepeated: the series was in the body before, the value is dropped.
	lineRepeated
	// lineOpaque: more follows the value (an exemplar, white space); textparse
	// looks at the line.
	lineOpaque
)

// layoutMeta is a metadata line in a run.
type layoutMeta struct {
	f    *family
	kind metaKind
	typ  model.MetricType
	text string // of help and unit; shared with the family's metadata
}

const maxLayoutText = 1 << 30

var layouts = sync.Pool{New: func() any { return new(layout) }}

// newLayout returns an empty layout to record the body in.
func newLayout(f format, contentType string) *layout {
	lo := layouts.Get().(*layout)
	lo.format, lo.contentType, lo.ok = f, contentType, true
	return lo
}

// free gives lo back; it must not be used any more. nil is fine.
func (lo *layout) free() {
	if lo == nil {
		return
	}
	clear(lo.lines)
	clear(lo.meta)
	text, lines, meta := lo.text[:0], lo.lines[:0], lo.meta[:0]
	*lo = layout{}
	// The pool serves targets of every size; one huge body must not stay for
	// all of them.
	if cap(text) <= 4<<20 {
		lo.text, lo.lines, lo.meta = text, lines, meta
	}
	layouts.Put(lo)
}

// fit moves lo to memory of its size, and gives back what it was recorded in.
func (lo *layout) fit() {
	recorded := &layout{text: lo.text, lines: lo.lines, meta: lo.meta}
	lo.text, lo.lines, lo.meta = slices.Clone(lo.text), slices.Clone(lo.lines), slices.Clone(lo.meta)
	recorded.free()
}

// recorder writes the layout of a body as its lines are met.
type recorder struct {
	*layout
	mark int // up to where the body was looked at
}

// sample records a sample line. Its name and labels are key bytes before value,
// which is where its value starts in b, and pad bytes of white space; bound is
// where what may change ends.
func (r *recorder) sample(b []byte, l *line, key, pad, value, bound int, flags lineFlags) {
	if r.layout == nil || !r.ok {
		return
	}
	if flags&lineOpaque != 0 {
		r.opaque++
	}
	l.at = int32(len(r.lines))
	r.text = append(r.text, b[r.mark:value]...)
	r.lines = append(r.lines, layoutLine{l: l, end: uint32(len(r.text)), meta: uint32(len(r.meta)), key: uint32(key), pad: uint16(pad), flags: flags})
	r.mark = bound
	r.ok = len(r.text) < maxLayoutText && pad <= math.MaxUint16
}

func (r *recorder) metadata(m layoutMeta) {
	if r.layout != nil && r.ok {
		r.meta = append(r.meta, m)
	}
}

// invalid says that the body has something that a layout cannot describe.
func (r *recorder) invalid() {
	if r.layout != nil {
		r.ok = false
	}
}

// finish records what follows the last value.
func (r *recorder) finish(b []byte, rows int) {
	if r.layout == nil || !r.ok {
		return
	}
	r.text = append(r.text, b[r.mark:]...)
	r.rows = rows
	// With many opaque lines, a parser for each costs more than one for all.
	r.ok = r.opaque <= len(r.lines)/4
}

// run returns the run before line i, or what follows the last value.
func (lo *layout) run(i int) []byte {
	from := uint32(0)
	if i > 0 {
		from = lo.lines[i-1].end
	}
	if i == len(lo.lines) {
		return lo.text[from:]
	}
	return lo.text[from:lo.lines[i].end]
}

// key returns the name and the labels of line i, as they are written.
func (lo *layout) key(i int) []byte {
	ln, run := &lo.lines[i], lo.run(i)
	end := len(run) - int(ln.pad)
	return run[end-int(ln.key) : end]
}

// variable parses what may change in the line whose value starts b: the value
// and maybe a timestamp. n is its length; the line ends there.
func (lo *layout) variable(b []byte, flags lineFlags) (v float64, t int64, n int, ok bool) {
	v, n, ok = parseValue(b)
	if !ok {
		return 0, 0, 0, false
	}
	if flags&lineHasT != 0 {
		if n == len(b) || b[n] != ' ' {
			return 0, 0, 0, false
		}
		var m int
		if lo.format == openMetricsFormat {
			t, m, ok = parseSeconds(b[n+1:])
		} else {
			t, m, ok = parseMillis(b[n+1:])
		}
		if !ok {
			return 0, 0, 0, false
		}
		n += 1 + m
	}
	if n == len(b) && lo.format == openMetricsFormat || n < len(b) && b[n] != '\n' {
		return 0, 0, 0, false
	}
	return v, t, n, true
}

// replay parses b as a body of this layout, which must have no opaque lines.
// It appends the values of its rows to vs, and to ts their timestamps, with now
// for lines without one. all is false when b is no such body, or has a
// timestamp above maxT; the rows are to be thrown away then. Without honor, timestamps are
// parsed but not used.
func (lo *layout) replay(b []byte, honor bool, now, maxT int64, vs []float64, ts []int64) (_ []float64, _ []int64, all bool) {
	p, from := 0, uint32(0)
	for i := range lo.lines {
		ln := &lo.lines[i]
		run := lo.text[from:ln.end]
		from = ln.end
		if !bytes.HasPrefix(b[p:], run) {
			return vs, ts, false
		}
		q := p + len(run)
		var v float64
		var ok bool
		var w int
		t := now
		if ln.flags == 0 {
			if v, w, ok = parseValue(b[q:]); ok && q+w < len(b) && b[q+w] != '\n' {
				ok = false
			}
		} else {
			var lineT int64
			v, lineT, w, ok = lo.variable(b[q:], ln.flags)
			if ln.flags&lineHasT != 0 && honor {
				t = lineT
			}
		}
		if !ok || t > maxT {
			return vs, ts, false
		}
		p = q + w
		if ln.flags&lineRepeated == 0 {
			vs = append(vs, v)
			ts = append(ts, t)
		}
	}
	return vs, ts, bytes.Equal(b[p:], lo.run(len(lo.lines)))
}

// nextLine returns where the line after the value that ended at p starts; 0 at
// the beginning of the body.
func nextLine(b []byte, p int) int {
	if p == 0 {
		return 0
	}
	return min(p+1, len(b))
}

// columns returns the series of a batch that is wholly of this layout. It is
// the same slice every time; nobody writes to it or behind it.
func (lo *layout) columns(s *settings, report []*batch.Series) []*batch.Series {
	if lo.column == nil || len(lo.column) != lo.rows+len(report) || lo.columnFor != s {
		lo.column = make([]*batch.Series, 0, lo.rows+len(report))
		for i := range lo.lines {
			if lo.lines[i].flags&lineRepeated == 0 {
				lo.column = append(lo.column, lo.lines[i].l.s.h)
			}
		}
		lo.column = append(lo.column, report...)
		lo.columnFor = s
	}
	return lo.column[:len(lo.column):len(lo.column)]
}

// formatOf says of which syntax p is the parser.
func formatOf(p textparse.Parser) format {
	switch p.(type) {
	case *textparse.PromParser:
		return textFormat
	case *textparse.OpenMetricsParser:
		return openMetricsFormat
	}
	return otherFormat
}

// parser returns textparse's parser for what is left of a body.
func (f format) parser(b []byte) textparse.Parser {
	if f == openMetricsFormat {
		return textparse.NewOpenMetricsParser(b, labels.NewSymbolTable())
	}
	return textparse.NewPromParser(b, labels.NewSymbolTable(), false)
}

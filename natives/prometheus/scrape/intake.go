package scrape

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/exemplar"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/textparse"

	"github.com/weir-run/weir/engine/batch"
)

// rows are the columns of a batch that is being built.
type rows struct {
	series     []*batch.Series
	t          []int64
	v          []float64
	histograms []batch.Histogram
	exemplars  []batch.Exemplar
	starts     []batch.Start
}

// reset removes the rows and allocates memory for n rows.
func (r *rows) reset(n int) {
	*r = rows{series: make([]*batch.Series, 0, n), t: r.t[:0], v: r.v[:0]}
	if cap(r.v) < n {
		r.t, r.v = make([]int64, 0, n), make([]float64, 0, n)
	}
}

func (r *rows) add(s *batch.Series, t int64, v float64) {
	r.series = append(r.series, s)
	r.t = append(r.t, t)
	r.v = append(r.v, v)
}

// intake converts one body to rows. It follows scrapeLoopAppenderV2.append of
// Prometheus, including the errors that Prometheus's storage returns for a sample
// that repeats another one or lies too far in the future.
type intake struct {
	set  *settings
	opts textparse.ParserOptions
	tags []labels.Label // labels of the target that samples get
	c    *cache
	now  int64 // the time of the scrape, Unix ms
	maxT int64 // latest timestamp to accept

	after  int64 // no earlier sample of the target is later, Unix ms
	latest int64 // no sample of this scrape is later, Unix ms

	rows
	wholly bool // all rows are those of the last layout, and series is left empty

	total       int // samples in the body
	added       int // samples after relabelling
	seriesAdded int
	repeated    int // samples dropped because the series occurred in the body before
	ahead       int // samples dropped because they are too far in the future

	invalid    map[string]int // native histograms that were dropped, by reason
	invalidErr error          // the error of the first of them
	reduced    map[string]int // native histograms whose resolution was reduced, by reason
	exDropped  map[string]int // exemplars that were dropped, by reason

	appended  int // number of samples that count towards sample_limit
	limitErr  error
	bucketErr error

	typ model.MetricType // of the last TYPE line
	fam int              // index of the family of the last metadata line, + 1; 0 if it is unknown

	rec   recorder
	plain plain

	// Scratch memory.
	lset labels.Labels
	wire []byte // labels encoded as Series.AppendWire does
	// tagsValid is true if tags have valid names and values. It is only set if
	// tagsKnown.
	tagsValid, tagsKnown bool
	exemplar             exemplar.Exemplar
	exemplars            []exemplar.Exemplar
}

// empty creates the rows of a scrape without a body: markers for all series of
// the last one.
func (in *intake) empty() {
	in.stale()
	in.c.settled = false
	in.c.done(false)
}

// body converts a body to rows. b needs one byte of spare capacity, to which
// textparse may write. After an error, the caller calls empty of a new intake.
func (in *intake) body(b []byte, contentType string) (err error) {
	if len(b) == 0 {
		in.empty()
		return nil
	}
	c, old := in.c, in.c.layout
	if old != nil && (old.contentType != contentType || in.set.cfg.SampleLimit > 0 && old.rows > int(in.set.cfg.SampleLimit)) {
		old = nil
	}
	if old != nil && c.settled && old.opaque == 0 && in.replay(old, b) {
		c.pack()
		return nil
	}
	c.changed, c.settled = false, false
	if c.layout != nil {
		in.rows.reset(c.room())
	} else if len(c.series) == 0 {
		n := min(sampleLines(b), mostExpected)
		in.rows.reset(n + reportRows)
		c.expect(n)
		defer c.expect(0)
	}
	defer func() {
		if v := recover(); v != nil { // the parser met a case that it does not handle
			err = fmt.Errorf("%w: parser panicked: %v", errInvalidBody, v)
		}
		if err != nil {
			in.rec.layout.free()
			c.exemplars.done(false)
		}
	}()
	if err := in.parse(b, contentType, old); err != nil {
		if errors.Is(err, errLabelLimit) {
			return err
		}
		return fmt.Errorf("%w: %w", errInvalidBody, err)
	}
	if in.limitErr != nil {
		return fmt.Errorf("%w: the target returned %d samples, sample_limit is %d", in.limitErr, in.appended, in.set.cfg.SampleLimit)
	}
	if in.bucketErr != nil {
		return in.bucketErr
	}
	in.stale()
	in.rec.finish(b, in.total-in.repeated)
	if in.rec.layout != nil && !in.rec.ok {
		in.rec.layout.free()
		in.rec.layout = nil
	}
	first := c.success == 0
	c.layout = nil
	if in.rec.layout != nil {
		c.layout = in.rec.layout.kept()
	}
	c.settled = !c.changed && in.ahead == 0
	c.exemplars.done(true)
	c.done(true)
	if first {
		c.pack() // later allocations stay
	}
	return nil
}

// mostExpected is the maximum number of samples for which memory is allocated in
// advance.
const mostExpected = 10_000

// sampleLines returns the approximate number of samples in b, if it is text.
func sampleLines(b []byte) int {
	return bytes.Count(b, []byte("\n")) - bytes.Count(b, []byte("\n#"))
}

// replay tries to read the whole body with the layout. If this succeeds, the
// cache need not be changed: the lines, the tracked series and the metadata are
// the same as before.
func (in *intake) replay(lo *layout, b []byte) (all bool) {
	room := in.c.room()
	in.v, in.t = make([]float64, 0, room), make([]int64, 0, room)
	in.v, in.t, all = lo.replay(in.c.lines, b, in.set.cfg.HonorTimestamps, in.now, in.maxT, in.v, in.t)
	if all {
		in.wholly = true
		in.total, in.added, in.repeated = len(lo.lines), len(lo.lines), len(lo.lines)-lo.rows
	}
	return all
}

// stale adds markers for the series that are not in the current scrape.
func (in *intake) stale() {
	stale := in.c.appendStale(nil)
	in.c.ended = len(stale)
	for _, h := range stale {
		in.rows.add(h, in.now, batch.Stale())
	}
}

// parse converts b to rows. It uses textparse, and the old layout, which may be
// nil, where it has the same lines.
func (in *intake) parse(b []byte, contentType string, old *layout) error {
	if old != nil {
		if len(b) < maxLayoutBody {
			in.rec.layout = newLayout(old.format, contentType)
		}
		return in.parseBy(old, b)
	}
	p, err := textparse.New(b, contentType, labels.NewSymbolTable(), in.opts)
	if p == nil {
		return err
	}
	if _, ok := p.(*textparse.ProtobufParser); ok && !in.opts.IgnoreNativeHistograms {
		if fixed, ok := replaceMismatches(b); ok {
			p, _ = textparse.New(fixed, contentType, labels.NewSymbolTable(), in.opts)
		}
	}
	// In OpenMetrics, start timestamps are on separate lines anywhere in the
	// body, and the parser looks for them.
	apart := formatOf(p) == openMetricsFormat && in.set.args.StartTimestampZeroIngestion
	if f := formatOf(p); f != otherFormat && !in.opts.EnableTypeAndUnitLabels && !apart && len(b) < maxLayoutBody {
		in.rec.layout = newLayout(f, contentType)
	}
	_, _, err = in.parseRest(p, b, nil)
	return err
}

// parseRest reads lines from p, up to the end of the body or until more returns
// false. more is called after each sample line with the results of parsed.
func (in *intake) parseRest(p textparse.Parser, b []byte, more func(at, bound int) bool) (at, bound int, err error) {
	for {
		et, err := p.Next()
		if errors.Is(err, io.EOF) {
			return -1, -1, nil
		}
		if err != nil {
			return -1, -1, err
		}
		switch et {
		case textparse.EntryType:
			name, typ := p.Type()
			in.metadata(name, metaType, []byte(typ))
		case textparse.EntryHelp:
			name, text := p.Help()
			in.metadata(name, metaHelp, text)
		case textparse.EntryUnit:
			name, text := p.Unit()
			in.metadata(name, metaUnit, text)
		case textparse.EntrySeries, textparse.EntryHistogram:
			at, bound, err := in.parsed(b, p, et == textparse.EntryHistogram)
			if err != nil || more != nil && !more(at, bound) {
				return at, bound, err
			}
		}
	}
}

// resumer reads a body: lines that are the same as in the old layout by the
// layout, plain lines itself, and all other lines by textparse.
type resumer struct {
	*intake
	old *layout
	b   []byte

	at   int // the index in old of the line that is expected next
	pos  int // where the next line starts
	done bool
}

// parseBy converts b to rows by a layout, and by textparse where the lines
// differ.
func (in *intake) parseBy(old *layout, b []byte) (err error) {
	r := resumer{intake: in, old: old, b: b}
	in.plain.format = old.format
	r.pos, r.at, r.done = in.follow(old, b, 0, 0)
	// Each return to textparse creates a parser, so their number is limited.
	for restarts := 0; !r.done && restarts <= 16+len(old.lines)/16; {
		if goesOn, err := r.plainLines(); err != nil {
			return err
		} else if r.done || !goesOn {
			break
		}
		opaque := r.at < len(old.lines) && old.lines[r.at].flags&lineOpaque != 0
		resumed := false
		_, _, err := in.parseRest(old.format.parser(b[r.pos:]), b, func(at, bound int) bool {
			resumed = r.resume(at, bound)
			return !resumed
		})
		if err != nil || !resumed {
			return err
		}
		if !opaque {
			restarts++
		}
	}
	if r.done {
		return nil
	}
	_, _, err = in.parseRest(old.format.parser(b[r.pos:]), b, nil)
	return err
}

// plainLines reads plain lines and the lines that follow them in the layout.
// goesOn is false if layouts cannot be used for the rest of the body.
func (r *resumer) plainLines() (goesOn bool, err error) {
	for !r.done && r.plain.line(r.b, r.pos, r.rec.variable) {
		at, bound, err := r.parsed(r.b, &r.plain, false)
		if err != nil {
			return false, err
		}
		if bound < 0 {
			r.pos = nextLine(r.b, r.plain.next)
			return false, nil
		}
		if !r.resume(at, bound) {
			r.pos = nextLine(r.b, bound)
		}
	}
	return true, nil
}

// resume follows the layout after a sample line that ends at bound. at is the
// index of the line in the layout, or -1. resume reports whether the layout
// matched further lines.
func (r *resumer) resume(at, bound int) bool {
	if bound < 0 {
		return false
	}
	try := func(at int) bool {
		if at > len(r.old.lines) {
			return false
		}
		pos, n, done := r.follow(r.old, r.b, at, bound)
		if pos == nextLine(r.b, bound) && !done {
			return false
		}
		r.pos, r.at, r.done = pos, at+n, done
		return true
	}
	if at >= 0 {
		r.at = at + 1
		return try(at + 1)
	}
	// The line replaces the expected line or was inserted before it.
	if try(r.at+1) || try(r.at) {
		return true
	}
	r.at++
	return false
}

// follow reads lines with the layout, starting with line i, as long as b has the
// same text after p. p is the end of the previous line, or 0. n is the number of
// lines read. The next line starts at pos, which may follow metadata lines that
// match the layout. done is true if b ends like the layout.
func (in *intake) follow(lo *layout, b []byte, i, p int) (pos, n int, done bool) {
	odd := lo.oddFrom(i)
	for ; i < len(lo.lines); i++ {
		ln := lo.lines[i]
		if ln.flags&lineOpaque != 0 {
			return nextLine(b, p), n, false
		}
		l, pad, q := &in.c.lines[ln.line], 1, 0
		if ln.flags&lineOdd != 0 {
			pad = int(lo.odd[odd].pad)
			q = l.oddValue(b, p, &lo.odd[odd])
		} else {
			q = l.value(b, p)
		}
		if q < 0 {
			// The metadata lines may match, although a different sample follows
			// them. If there is no text before the name, p is at the beginning of
			// a body.
			if ln.flags&lineOdd != 0 && lo.odd[odd].n > 0 && lo.odd[odd].matches(b, p) {
				in.replayMetadata(lo, odd)
				return p + int(lo.odd[odd].n), n, false
			}
			return nextLine(b, p), n, false
		}
		v, t, w, ok := lo.variable(b[q:], ln.flags)
		if !ok {
			return nextLine(b, p), n, false
		}
		if ln.flags&lineOdd != 0 {
			in.replayMetadata(lo, odd)
			odd++
		}
		flags := ln.flags &^ lineRepeated
		if in.readCached(int(ln.line), flags&lineHasT != 0, t, v) {
			flags |= lineRepeated
		}
		l.at = int32(in.rec.sample(b, int(ln.line), int(l.n), pad, q, q+w, flags))
		p = q + w
		n++
	}
	if len(b)-p != int(lo.tail.n) || !lo.tail.matches(b, p) {
		return nextLine(b, p), n, false
	}
	in.replayMetadata(lo, len(lo.odd))
	return len(b), n, true
}

// metadata applies a metadata line.
func (in *intake) metadata(name []byte, kind metaKind, text []byte) {
	f := in.c.setMeta(name, kind, text)
	in.recordMetadata(layoutMeta{family: uint32(f), kind: kind, text: kind.textOf(in.c.families[f].meta)})
}

// replayMetadata applies the metadata lines of an odd run or of the tail.
func (in *intake) replayMetadata(lo *layout, odd int) {
	from, to := uint32(0), lo.tail.meta
	if odd > 0 {
		from = lo.odd[odd-1].meta
	}
	if odd < len(lo.odd) {
		to = lo.odd[odd].meta
	}
	for _, m := range lo.meta[from:to] {
		in.c.resetMeta(m)
		in.recordMetadata(m)
	}
}

// recordMetadata records a metadata line for the lines that follow.
func (in *intake) recordMetadata(m layoutMeta) {
	in.rec.metadata(m)
	if m.kind == metaType {
		in.typ = model.MetricType(m.text)
	}
	if in.set.args.HonorMetadata {
		in.fam = int(m.family) + 1
	}
}

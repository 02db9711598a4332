// Package tap writes the batches that pass through a node for people and
// programs: it selects records, masks secrets, and finds out how the outputs of
// a call differ from its input.
//
// A flow.Tap provides the batches. The batches do not record which output row
// comes from which input row. In a comparison, a row that did not change is
// matched first; then each output row is matched with the most similar input row
// of the call (diff.go). The other rows were dropped or added.
//
// A Printer is not safe for concurrent use.
package tap

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/config"
	"github.com/weir-run/weir/engine/expr"
	"github.com/weir-run/weir/engine/flow"
)

// MaxRate is the largest Rate, and Rate is the default of taps that run until someone
// ends them: people can read along.
const (
	MaxRate = 1000
	Rate    = 20
)

// Formats are the formats of a Printer. In text, lines that begin with # are
// not records. JSON has one object per line. exposition is the text form of
// batches, with the types of metrics.
var Formats = []string{"text", "json", "exposition"}

// FormatCalls is the format of one JSON object per call of the node, with its input and
// output in the text form of batches. It is for programs and needs flow.Calls. Limit is
// then the number of calls, and Where selects records of the input.
const FormatCalls = "calls"

// Options of a Printer.
type Options struct {
	Side   flow.Side
	Format string // of Formats
	Limit  int    // the most records; 0 means no limit
	// Rate is the most records between two calls of Tick, up to MaxRate; 0 means MaxRate.
	// Later records are not examined until the next Tick.
	Rate int
	// Where selects records, or nil. A comparison has a record if the record
	// matches before or after the node.
	Where *expr.Programs
}

// Printer writes observations of a flow.Tap.
type Printer struct {
	o     Options
	masks *masks

	written   int // in total
	budget    int // until the next Tick
	leftOut   int // records beyond the budget, since the last Tick
	skipped   uint64
	unchanged int
	failure   error // the first failure of Where since the last Tick
	outside   int   // records that were sent outside of calls, in the format calls

	secrets  []string // of the config
	declared []string // by the script, in the format calls
}

// New returns a Printer. The error is one of the options.
func New(o Options) (*Printer, error) {
	if o.Format == FormatCalls && o.Side != flow.Calls {
		return nil, errors.New("the format calls needs the side diff")
	}
	if o.Format != FormatCalls && !slices.Contains(Formats, o.Format) {
		return nil, fmt.Errorf("format must be text, json or exposition, not %q", o.Format)
	}
	if o.Side == flow.Calls && o.Format == "exposition" {
		return nil, errors.New("the format exposition cannot express a comparison; use text or json")
	}
	o.Rate = cmp.Or(o.Rate, MaxRate)
	return &Printer{o: o, masks: newMasks(nil), budget: o.Rate}, nil
}

// Mask replaces the secrets that are masked in all later records.
func (p *Printer) Mask(secrets []string) {
	p.secrets = secrets
	p.masks = newMasks(slices.Concat(secrets, p.declared))
}

// Full reports whether the limit is reached.
func (p *Printer) Full() bool { return p.o.Limit > 0 && p.written >= p.o.Limit }

// Skip counts records that the tap has left out.
func (p *Printer) Skip(records uint64) { p.skipped += records }

// Tick appends the notes about the time since the last Tick.
func (p *Printer) Tick(dst []byte) []byte {
	if p.unchanged > 0 {
		dst = p.Note(dst, "note", fmt.Sprintf("unchanged records: %d", p.unchanged))
	}
	if p.leftOut > 0 {
		dst = p.Note(dst, "note", fmt.Sprintf("records left out: %d (at most %d a second are shown)", p.leftOut, p.o.Rate))
	}
	if p.skipped > 0 {
		dst = p.Note(dst, "note", fmt.Sprintf("records left out without examining them: %d (there were too many)", p.skipped))
	}
	if p.failure != nil {
		dst = p.Note(dst, "note", fmt.Sprintf("records for which the expression fails do not match: %v", p.failure))
	}
	p.unchanged, p.leftOut, p.skipped, p.failure, p.budget = 0, 0, 0, nil, p.o.Rate
	return dst
}

// event is a line in JSON.
type event struct {
	// Kind is record, or of a comparison, changed, dropped or added; otherwise
	// that of a Note.
	Kind    string    `json:"kind"`
	Time    time.Time `json:"time,omitzero"`     // when it passed
	Record  *record   `json:"record,omitempty"`  // before the node, if the node changed it
	Becomes *record   `json:"becomes,omitempty"` // the changed record
	Changes []string  `json:"changes,omitempty"`
	Text    string    `json:"text,omitempty"`
}

// Line returns a value of the type of a line in the format json, for its description.
func Line() any { return event{} }

func appendEvent(dst []byte, e any) []byte {
	b := bytes.NewBuffer(dst)
	enc := json.NewEncoder(b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(e); err != nil {
		panic("BUG: " + err.Error()) // it has only strings and times
	}
	return b.Bytes()
}

// Note appends a line that is not a record. kind is a word.
func (p *Printer) Note(dst []byte, kind, text string) []byte {
	text = component.HideURLs(p.masks.mask(text))
	if p.o.Format == "json" || p.o.Format == FormatCalls {
		return appendEvent(dst, event{Kind: kind, Text: text})
	}
	text = config.Printable(strings.ReplaceAll(text, "\n", " "))
	return append(append(append(append(append(dst, "# "...), kind...), ": "...), text...), '\n')
}

// Append appends one observation of the tap.
func (p *Printer) Append(dst []byte, o flow.Tapped) []byte {
	if p.o.Format == FormatCalls {
		return p.appendWholeCall(dst, o)
	}
	if p.budget == 0 {
		p.leftOut += max(o.In.Len(), o.Out.Len())
		return dst
	}
	if p.o.Side == flow.Calls && len(o.In.Metrics)+len(o.In.Logs) > 0 {
		return p.appendCall(dst, o)
	}
	kind := "record"
	if p.o.Side == flow.Calls {
		kind = "added"
	}
	both := flow.Batches{Metrics: append(slices.Clip(o.In.Metrics), o.Out.Metrics...), Logs: append(slices.Clip(o.In.Logs), o.Out.Logs...)}
	if p.o.Format == "exposition" {
		return p.appendExposition(dst, both)
	}
	for r := range rowsOf(both) {
		if p.matches(r) && p.room() {
			dst = p.appendRow(dst, kind, o.Time, r)
		}
	}
	return dst
}

// room reports whether there is room for one more record, and takes it.
func (p *Printer) room() bool {
	if p.Full() {
		return false
	}
	if p.budget == 0 {
		p.leftOut++
		return false
	}
	p.budget--
	p.written++
	return true
}

func (p *Printer) appendRow(dst []byte, kind string, at time.Time, r row) []byte {
	r = p.masks.row(r)
	if p.o.Format == "json" {
		return appendEvent(dst, event{Kind: kind, Time: at.UTC(), Record: r.record()})
	}
	switch kind {
	case "added":
		dst = append(dst, "+ "...)
	case "dropped":
		dst = append(dst, "- "...)
	}
	return append(r.appendText(dst), '\n')
}

func (p *Printer) appendExposition(dst []byte, b flow.Batches) []byte {
	for _, m := range b.Metrics {
		if rows := p.chosen(flow.Batches{Metrics: []*batch.Metrics{m}}); len(rows) > 0 {
			dst = batch.AppendText(dst, p.masks.metrics(m.Rows(rows)))
		}
	}
	for _, l := range b.Logs {
		if rows := p.chosen(flow.Batches{Logs: []*batch.Logs{l}}); len(rows) > 0 {
			dst = batch.AppendLogsText(dst, p.masks.logs(l.Rows(rows)))
		}
	}
	return dst
}

func (p *Printer) chosen(b flow.Batches) (rows []int) {
	for r := range rowsOf(b) {
		if p.matches(r) && p.room() {
			rows = append(rows, r.i)
		}
	}
	return rows
}

// Match reports whether an expression selects a record of the batches.
func Match(where expr.Programs, b flow.Batches) bool {
	p := Printer{o: Options{Where: &where}}
	for r := range rowsOf(b) {
		if p.matches(r) {
			return true
		}
	}
	return false
}

// matches reports whether Where selects a row. Records of a signal whose names
// the expression does not know do not match.
func (p *Printer) matches(r row) bool {
	if p.o.Where == nil {
		return true
	}
	prog := p.o.Where.Metrics
	x := expr.Sample{Series: r.series, Time: r.t}
	if r.l != nil {
		prog = p.o.Where.Logs
		x.Line, x.Meta = r.l.Line[r.i], r.l.MetaOf(r.i)
	} else {
		x.Value = r.m.V[r.i]
	}
	if prog == nil {
		return false
	}
	var ok bool
	var err error
	if _, native := r.histogram(); r.m != nil && (native || batch.IsStale(x.Value)) {
		var v expr.Verdict
		v, err = prog.WithoutValue(&x)
		ok = v != expr.False
	} else {
		ok, err = prog.Bool(&x)
	}
	if err != nil && p.failure == nil {
		p.failure = err
	}
	return ok && err == nil
}

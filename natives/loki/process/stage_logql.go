package process

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/natives/loki/logql"
)

// LogQLArguments are the arguments of stage.logql.
type LogQLArguments struct {
	// The part of a query after the selector, such as `| json | level="error" |
	// line_format "{{.msg}}"`. Lines that it filters out are dropped; the remaining
	// lines are changed to the result of the query. The stage runs Loki's own code,
	// which a weir built with -tags nologql does not contain.
	Pipeline logql.Source `alloy:"pipeline,attr"`
	// Labels of the result that become labels of the stream.
	Labels []string `alloy:"labels,attr,optional"`
	// The destination of the other labels that the pipeline creates:
	// "structured_metadata" stores them, so that Loki shows them as the query
	// would; "extracted" makes them available to the following stages only.
	// Labels are extracted in either case, if a following stage reads them.
	// __error__ and __error_details__ are extracted only: if they were stored,
	// Loki would refuse every metric query that finds the line. To keep them,
	// give them another name: `| label_format parse_error="{{.__error__}}"`.
	Parsed string `alloy:"parsed,attr,optional"`
	// Reason under which dropped lines are counted.
	DropCounterReason string `alloy:"drop_counter_reason,attr,optional"`
}

// SetToDefault keeps all labels that a query would show.
func (a *LogQLArguments) SetToDefault() {
	*a = LogQLArguments{Parsed: sourceMetadata, DropCounterReason: "logql_stage"}
}

// Validate checks the names of the labels and the value of parsed.
func (a *LogQLArguments) Validate() error {
	var errs []error
	if a.Parsed != sourceMetadata && a.Parsed != sourceExtracted {
		errs = append(errs, fmt.Errorf("parsed is %q, want structured_metadata or extracted", a.Parsed))
	}
	if a.DropCounterReason == "" {
		errs = append(errs, errors.New("drop_counter_reason is empty"))
	}
	errs = append(errs, labelNames("labels", slices.Values(a.Labels)))
	return errors.Join(errs...)
}

// logqlStage runs a LogQL pipeline.
type logqlStage struct {
	machines   sync.Pool // *logql.Machine values
	newMachine func() (*logql.Machine, error)
	reason     string
	labels     []string
	metadata   bool // parsed labels become structured metadata
	edits      bool // the pipeline may change the labels of the stream
	names      []string
	slots      []int // of names
	all        bool  // a later stage reads all values
	derived    *derivation
}

func (a *LogQLArguments) compile(c *compiler) (stage, error) {
	p, err := logql.Parse(string(a.Pipeline))
	if err != nil {
		return nil, err
	}
	s := &logqlStage{reason: a.DropCounterReason, labels: slices.Clone(a.Labels), metadata: a.Parsed == sourceMetadata, edits: p.ChangesStreams(), all: c.pl.all}
	slices.Sort(s.labels)
	s.labels = slices.Compact(s.labels)
	// The pipeline may set any value that a later stage reads.
	s.names = slices.Sorted(maps.Keys(c.slots))
	for _, n := range s.names {
		s.slots = append(s.slots, c.slots[n])
	}
	s.newMachine = p.Machines(s.metadata || s.all, slices.Concat(s.names, s.labels))
	m, err := s.newMachine() // ensures that no later call fails
	if err != nil {
		return nil, err
	}
	s.machines.Put(m)
	s.derived = c.derive(s.edit)
	return s, nil
}

// edit replaces the labels of a stream by those in the first value, if the
// pipeline changed them, and then sets the remaining labels.
func (s *logqlStage) edit(b *batch.Builder, values []value) {
	if s.edits {
		if values[0].kind != unset {
			b.SetAll(slices.Collect(labelsOf(values[0].text)))
		}
		values = values[1:]
	}
	for i, v := range values {
		if v.kind != unset {
			b.Set(s.labels[i], v.text)
		}
	}
}

func (s *logqlStage) run(_ context.Context, p *pass) {
	m, ok := s.machines.Get().(*logql.Machine)
	if !ok {
		var err error
		if m, err = s.newMachine(); err != nil {
			panic(fmt.Sprintf("BUG: a pipeline that was made before cannot be made: %v", err))
		}
	}
	defer s.machines.Put(m)
	var w logqlRows
	p.drop(s.reason, func(row int) bool {
		if !m.Process(p.stream[row], p.t[row], p.line[row], p.metaOf(row)) {
			return false
		}
		if line, changed := m.Line(); changed {
			p.setLine(row, line)
		}
		s.extract(p, m, row, &w)
		if s.metadata || s.edits || len(s.labels) > 0 {
			s.relabel(p, m, row, &w)
		}
		return true
	})
}

// logqlRows is the scratch memory of a run.
type logqlRows struct {
	labels []batch.Label
	block  []batch.Label // metadata of several rows
	text   []byte
	last   string // of text
}

// extract sets the values that later stages read.
func (s *logqlStage) extract(p *pass, m *logql.Machine, row int, w *logqlRows) {
	for i, n := range s.names {
		if v, own, ok := m.Value(n); ok && own {
			p.set(s.slots[i], row, value{text, v})
		}
	}
	if !s.all {
		return
	}
	w.labels = m.AppendParsed(w.labels[:0])
	for _, l := range w.labels {
		if _, ok := slices.BinarySearch(s.names, l.Name); ok {
			continue
		}
		if p.extra[row] == nil {
			p.extra[row] = map[string]value{}
		}
		p.extra[row][l.Name] = value{text, l.Value}
	}
}

// relabel sets the labels of the row to those of the result.
func (s *logqlStage) relabel(p *pass, m *logql.Machine, row int, w *logqlRows) {
	p.values = p.values[:0]
	edited := s.edits && m.ChangedStream()
	switch {
	case edited:
		w.labels = m.AppendStream(w.labels[:0])
		w.text = w.text[:0]
		for _, l := range w.labels {
			for _, part := range []string{l.Name, l.Value} {
				w.text = append(binary.AppendUvarint(w.text, uint64(len(part))), part...)
			}
		}
		if w.last != string(w.text) {
			w.last = string(w.text)
		}
		p.values = append(p.values, value{text, w.last})
	case s.edits:
		p.values = append(p.values, value{}) // unchanged
	}
	for _, n := range s.labels {
		v, _, ok := m.Value(n)
		if !ok {
			p.values = append(p.values, value{})
			continue
		}
		p.values = append(p.values, value{text, v})
	}
	if edited || len(s.labels) > 0 {
		p.setStream(row, s.derived.derive(p.stream[row], p.values))
	}
	s.remeta(p, m, row, w)
}

// The labels with which a pipeline reports that it could not parse a line.
const (
	errorLabel        = "__error__"
	errorDetailsLabel = "__error_details__"
)

// remeta sets the structured metadata of the row to that of the result. It
// includes the parsed labels if they are stored.
func (s *logqlStage) remeta(p *pass, m *logql.Machine, row int, w *logqlRows) {
	if !s.metadata && len(p.metaOf(row)) == 0 {
		return
	}
	w.labels = w.labels[:0]
	if len(p.metaOf(row)) > 0 {
		w.labels = m.AppendMeta(w.labels)
	}
	if s.metadata {
		w.labels = m.AppendParsed(w.labels)
		slices.SortFunc(w.labels, func(a, b batch.Label) int { return strings.Compare(a.Name, b.Name) })
	}
	w.labels = slices.DeleteFunc(w.labels, func(l batch.Label) bool {
		_, is := slices.BinarySearch(s.labels, l.Name)
		return is || l.Name == errorLabel || l.Name == errorDetailsLabel
	})
	if slices.Equal(w.labels, p.metaOf(row)) {
		return
	}
	if cap(w.block)-len(w.block) < len(w.labels) {
		w.block = make([]batch.Label, 0, max(1024, len(w.labels)))
	}
	from := len(w.block)
	w.block = append(w.block, w.labels...)
	p.setMeta(row, w.block[from:len(w.block):len(w.block)])
}

// labelsOf yields the labels that relabel has written.
func labelsOf(s string) iter.Seq[batch.Label] {
	cut := func() (part string) {
		n, size := binary.Uvarint([]byte(s[:min(len(s), binary.MaxVarintLen64)]))
		part, s = s[size:size+int(n)], s[size+int(n):]
		return part
	}
	return func(yield func(batch.Label) bool) {
		for s != "" {
			name := cut()
			if !yield(batch.Label{Name: name, Value: cut()}) {
				return
			}
		}
	}
}

//go:build !nologql

package logql

import (
	"slices"
	"strings"
	"unsafe"

	"github.com/grafana/loki/v3/pkg/logql/log"
	"github.com/grafana/loki/v3/pkg/logqlmodel"
	"github.com/prometheus/prometheus/model/labels"

	"github.com/weir-run/weir/engine/batch"
)

// Machine runs a pipeline on one line after the other. The result of Process is
// available until the next call. It must not be used concurrently.
type Machine struct {
	stages []log.Stage
	base   *log.BaseLabelsBuilder

	of      *batch.Stream
	streams map[*batch.Stream]known

	known // of the stream of the last line
	meta  labels.ScratchBuilder
	in    string
	out   []byte
	text  strings.Builder // memory for changed lines
	found []labels.Label
}

// known is the data that a Machine caches for a stream.
type known struct {
	b   *log.LabelsBuilder
	own []labels.Label
}

// Machines returns a function that creates Machines. If all is true, results have
// all labels, like those of a query. Otherwise, only the labels that the pipeline
// reads and those in names are extracted, which is faster.
func (p *Pipeline) Machines(all bool, names []string) func() (*Machine, error) {
	return func() (*Machine, error) {
		stages, err := p.newStages()
		if err != nil {
			return nil, err
		}
		m := &Machine{stages: replaceStages(stages, p.stages), streams: map[*batch.Stream]known{}, meta: labels.NewScratchBuilder(8)}
		read, ok := p.reads(stages)
		m.base = log.NewBaseLabelsBuilderWithGrouping(nil, log.NewParserHint(nil, nil, false, false, "", stages), false, false)
		if !all && ok {
			// These hints are those of metric queries. Without a name, they make
			// parsers extract nothing.
			m.base = log.NewBaseLabelsBuilderWithGrouping(nil, log.NewParserHint(append(read, names...), nil, false, true, "", stages), false, false)
		}
		return m, nil
	}
}

// maxStreams is the number of streams in the cache of a Machine; when it is
// reached, the cache is cleared.
const maxStreams = 256

// Process runs the pipeline on a line and reports whether it passes. meta is
// sorted by name.
func (m *Machine) Process(of *batch.Stream, t int64, line string, meta []batch.Label) bool {
	if of != m.of {
		m.of, m.known = of, m.know(of)
	}
	m.b.Reset()
	if len(meta) > 0 {
		m.meta.Reset()
		for _, l := range meta {
			m.meta.Add(l.Name, l.Value)
		}
		m.b.Add(log.StructuredMetadataLabel, m.meta.Labels())
	}
	m.in = line
	// Stages do not write to a line, by their contract: the lines of a query are
	// in chunks that other queries read.
	m.out = unsafe.Slice(unsafe.StringData(line), len(line))
	for _, s := range m.stages {
		var ok bool
		if m.out, ok = s.Process(t, m.out, m.b); !ok {
			return false
		}
	}
	return true
}

func (m *Machine) know(of *batch.Stream) known {
	k, ok := m.streams[of]
	if !ok {
		if len(m.streams) >= maxStreams {
			clear(m.streams)
		}
		// The hash is for results that are cached as a whole. They are not used
		// here, because there would be one for each line.
		own := of.PromLabels()
		k.b = m.base.ForLabels(own, 0)
		own.Range(func(l labels.Label) { k.own = append(k.own, l) })
		m.streams[of] = k
	}
	return k
}

// textBlock is the size of the memory blocks that are allocated for lines.
const textBlock = 64 << 10

// Line returns the line after the pipeline. changed is false if it is the
// original line.
func (m *Machine) Line() (line string, changed bool) {
	if len(m.out) == len(m.in) && (len(m.in) == 0 || unsafe.SliceData(m.out) == unsafe.StringData(m.in)) {
		return m.in, false
	}
	if m.text.Cap()-m.text.Len() < len(m.out) {
		m.text = strings.Builder{}
		m.text.Grow(max(textBlock, len(m.out)))
	}
	from := m.text.Len()
	m.text.Write(m.out) // the memory belongs to the pipeline and will be overwritten
	return m.text.String()[from:], true
}

// Value returns a label of the result, and whether it differs from the label of
// the stream.
func (m *Machine) Value(name string) (v string, own, ok bool) {
	switch name {
	case logqlmodel.ErrorLabel:
		return m.b.GetErr(), true, m.b.HasErr()
	case logqlmodel.ErrorDetailsLabel:
		return m.b.GetErrorDetails(), true, m.b.HasErrorDetails()
	}
	v, kind, ok := m.b.GetWithCategory(name)
	return v, kind != log.StreamLabel, ok
}

// ChangedStream reports whether the result has different stream labels than the
// stream itself.
func (m *Machine) ChangedStream() bool {
	m.found = m.b.UnsortedLabels(m.found[:0], log.StreamLabel)
	return !slices.Equal(m.found, m.own)
}

// AppendStream appends the stream labels of the result, sorted by name.
func (m *Machine) AppendStream(dst []batch.Label) []batch.Label {
	return m.append(dst, log.StreamLabel)
}

// AppendMeta appends the labels of the result that are structured metadata,
// sorted by name.
func (m *Machine) AppendMeta(dst []batch.Label) []batch.Label {
	return m.append(dst, log.StructuredMetadataLabel)
}

// AppendParsed appends the labels of the result that the pipeline created,
// including errors, sorted by name.
func (m *Machine) AppendParsed(dst []batch.Label) []batch.Label {
	return m.append(dst, log.ParsedLabel)
}

func (m *Machine) append(dst []batch.Label, kind log.LabelCategory) []batch.Label {
	from := len(dst)
	m.found = m.b.UnsortedLabels(m.found[:0], kind)
	for _, l := range m.found {
		if l.Name != logqlmodel.PreserveErrorLabel {
			dst = append(dst, batch.Label{Name: l.Name, Value: l.Value})
		}
	}
	slices.SortFunc(dst[from:], func(a, b batch.Label) int { return strings.Compare(a.Name, b.Name) })
	return dst
}

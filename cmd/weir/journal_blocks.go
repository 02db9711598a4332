package main

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/journal"
	"github.com/weir-run/weir/engine/outbox"
	lokiwrite "github.com/weir-run/weir/natives/loki/write"
	remotewrite "github.com/weir-run/weir/natives/prometheus/remote_write"
)

// journalReport contains the statistics of a journal, including those that depend
// on the component that wrote the blocks.
type journalReport struct {
	journal.Report
	Component string         `json:"component"`       // the component that wrote it, or "unknown"
	Samples   int            `json:"pending_samples"` // in the readable blocks, as are all following fields
	Lines     int            `json:"pending_lines"`
	Series    int            `json:"pending_series"`
	Streams   int            `json:"pending_streams"`
	Messages  map[string]int `json:"pending_messages,omitempty"` // blocks by message; for a scripted sink, by signal
	Headers   int            `json:"pending_header_values,omitempty"`
	Tenants   int            `json:"pending_tenants,omitempty"`
	Unknown   int            `json:"unknown_blocks,omitempty"` // blocks of unknown kind
	Damaged   map[string]int `json:"damaged_blocks,omitempty"` // blocks by error
}

// The components whose block kinds overlap with those of another component.
const (
	remoteWrite = "prometheus.remote_write"
	lokiWrite   = "loki.write"
)

// blockReader counts the blocks of one component.
type blockReader interface {
	Has(journal.Block) bool // Has reports whether the component has blocks of this kind.
	Add(journal.Block) error
}

// journalBlocks counts blocks by the component that wrote them.
type journalBlocks struct {
	samples remotewrite.BlockStats
	lines   lokiwrite.BlockStats
	scripts outbox.BlockStats
	unknown int
	damaged map[string]int
}

// readers returns the candidates for reading a block, in the order to try. Except
// for scripted sinks, each component has its own numbers for kinds of blocks.
// Therefore, the owner of the journal decides; if it is unknown, every reader
// that supports the kind is tried.
func (b *journalBlocks) readers(component string, of journal.Block) (readers []blockReader) {
	switch {
	case b.scripts.Has(of):
		return []blockReader{&b.scripts}
	case component == remoteWrite:
		readers = []blockReader{&b.samples}
	case component == lokiWrite:
		readers = []blockReader{&b.lines}
	case component == "":
		readers = []blockReader{&b.samples, &b.lines}
	}
	return slices.DeleteFunc(readers, func(r blockReader) bool { return !r.Has(of) })
}

// add counts a block of a component's journal. component is "" if it is unknown.
func (b *journalBlocks) add(component string, of journal.Block) {
	readers := b.readers(component, of)
	var err error
	for _, r := range readers {
		if err = r.Add(of); err == nil {
			return
		}
	}
	if len(readers) != 1 { // the owner is unknown
		b.unknown++
		return
	}
	if b.damaged == nil {
		b.damaged = map[string]int{}
	}
	b.damaged[err.Error()]++
}

// componentOf returns the name of the component of a node: loki.write for
// m.x/loki.write.default.
func componentOf(node string) string {
	base := path.Base(node)
	return base[:max(strings.LastIndexByte(base, '.'), 0)]
}

func inspectJournal(dir string) (journalReport, error) {
	before, err := journal.Inspect(dir, nil)
	if err != nil {
		return journalReport{}, err
	}
	writer := componentOf(before.Node)
	var b journalBlocks
	r, err := journal.Inspect(dir, func(of journal.Block) error { b.add(writer, of); return nil })
	r.URL = component.HideURLs(r.URL)
	return journalReport{
		Report: r, Component: b.component(writer),
		Samples: b.samples.Samples() + b.scripts.Samples.Records, Lines: b.lines.Lines() + b.scripts.Lines.Records,
		Series: b.samples.Series() + b.scripts.Samples.Series(), Streams: b.lines.Streams() + b.scripts.Lines.Series(),
		Messages: b.messages(), Headers: b.samples.Values(), Tenants: b.lines.Tenants(),
		Unknown: b.unknown, Damaged: b.damaged,
	}, err
}

// component returns the name of the component that wrote the blocks, which may be
// determined from the blocks if the journal does not contain it.
func (b *journalBlocks) component(name string) string {
	switch {
	case name != "":
		return name
	case b.scripts.Samples.Blocks+b.scripts.Lines.Blocks > 0:
		return "a scripted sink"
	case b.samples.Samples() > 0:
		return remoteWrite
	case b.lines.Lines() > 0:
		return lokiWrite
	}
	return "unknown"
}

// messages returns the number of blocks by message.
func (b *journalBlocks) messages() map[string]int {
	all := map[string]int{}
	for name, n := range b.samples.Messages() {
		all[name] = n
	}
	for name, n := range map[string]int{"metrics": b.scripts.Samples.Blocks, "logs": b.scripts.Lines.Blocks} {
		if n > 0 {
			all[name] = n
		}
	}
	return all
}

// records describes the content of the blocks.
func (r *journalReport) records() string {
	damaged := 0
	for _, n := range r.Damaged {
		damaged += n
	}
	var parts []string
	if r.Samples > 0 {
		parts = append(parts, fmt.Sprintf("%s of %d series", count(r.Samples, "sample"), r.Series))
	}
	if r.Lines > 0 {
		parts = append(parts, fmt.Sprintf("%s of %s", count(r.Lines, "line"), count(r.Streams, "stream")))
	}
	if r.Unknown > 0 {
		parts = append(parts, count(r.Unknown, "block")+" of an unknown kind")
	}
	if damaged > 0 {
		parts = append(parts, count(damaged, "damaged block"))
	}
	if parts == nil {
		return "nothing that can be read"
	}
	return strings.Join(parts, ", ")
}

// audience describes for which tenants the blocks are, if they have tenants.
func (r *journalReport) audience() (text string) {
	if r.Headers > 0 {
		text = fmt.Sprintf(", for %s of a header", count(r.Headers, "value"))
	}
	if r.Tenants > 0 {
		text += ", for " + count(r.Tenants, "tenant")
	}
	return text
}

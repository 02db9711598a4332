package process

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"slices"

	"github.com/weir-run/weir/engine/batch"
)

// PackArguments are the arguments of stage.pack.
type PackArguments struct {
	// Extracted values and labels to pack with the line. Labels are removed.
	Labels []string `alloy:"labels,attr"`
	// Whether lines get the time at which they are packed.
	IngestTimestamp bool `alloy:"ingest_timestamp,attr,optional"`
}

// SetToDefault sets the time of the line.
func (a *PackArguments) SetToDefault() { *a = PackArguments{IngestTimestamp: true} }

// Validate checks that no label has the name of the packed line.
func (a *PackArguments) Validate() error {
	if slices.Contains(a.Labels, packedLine) {
		return errors.New("labels has _entry, which is the line")
	}
	return nil
}

// packedLine is the name of the member that contains the line.
const packedLine = "_entry"

// packStage packs a line and some values into a JSON object. LogQL can unpack it.
type packStage struct {
	names   []string // sorted
	slots   []int
	ingest  bool
	derived *derivation
}

func (a *PackArguments) compile(c *compiler) (stage, error) {
	names := slices.Clone(a.Labels)
	slices.Sort(names)
	s := &packStage{names: slices.Compact(names), ingest: a.IngestTimestamp}
	for _, n := range s.names {
		s.slots = append(s.slots, c.read(n))
	}
	s.derived = c.derive(func(b *batch.Builder, packed []value) {
		for i, v := range packed {
			if v.exists() {
				b.Set(s.names[i], "")
			}
		}
	})
	return s, nil
}

func (s *packStage) run(_ context.Context, p *pass) {
	now := p.pl.clock.Now().UnixNano()
	var line bytes.Buffer
	enc := json.NewEncoder(&line)
	enc.SetEscapeHTML(false)
	add := func(v string) {
		_ = enc.Encode(v) // writing to a Buffer never fails
		line.Truncate(line.Len() - 1)
	}
	for n, r := range p.rows {
		line.Reset()
		line.WriteByte('{')
		p.values = p.values[:0]
		for i, slot := range s.slots {
			packed := value{}
			if v, ok := p.get(slot, r).str(); ok {
				add(s.names[i])
				line.WriteByte(':')
				add(v)
				line.WriteByte(',')
				packed.kind = truth
			}
			p.values = append(p.values, packed)
		}
		add(packedLine)
		line.WriteByte(':')
		add(p.line[r])
		line.WriteByte('}')
		p.setLine(r, line.String())
		p.setStream(r, s.derived.derive(p.stream[r], p.values))
		if s.ingest {
			p.setTime(r, now+int64(n)) // keeps their order
		}
	}
}

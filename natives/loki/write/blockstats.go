package write

import (
	"fmt"

	"github.com/cespare/xxhash/v2"

	"github.com/weir-run/weir/engine/journal"
	"github.com/weir-run/weir/natives/loki/push"
)

// BlockStats counts the content of journal blocks that loki.write wrote. The zero
// value is ready to use.
type BlockStats struct {
	lines   int
	streams map[uint64]struct{} // by the hash of the tenant and the labels
	tenants map[string]struct{}
}

// Has reports whether a block has a kind of this package. Other components may
// use the same number.
func (*BlockStats) Has(b journal.Block) bool { return b.Kind == kindPush }

// Add counts a block. It returns an error if the block is damaged.
func (s *BlockStats) Add(b journal.Block) error {
	tenant, p, err := openBlock(b)
	if err != nil {
		return err
	}
	raw, err := p.read()
	if err != nil {
		return err
	}
	lines, streams := 0, map[uint64]struct{}{}
	r := push.NewReader(raw)
	for r.NextStream() {
		streams[xxhash.Sum64String(tenant+"\x00"+r.Labels)] = struct{}{}
		for r.NextEntry() {
			lines++
		}
	}
	if err := r.Err(); err != nil {
		return fmt.Errorf("cannot read a block: %w", err)
	}
	if lines != b.Samples {
		return fmt.Errorf("a block has %d lines and should have %d", lines, b.Samples)
	}
	if s.streams == nil {
		s.streams, s.tenants = map[uint64]struct{}{}, map[string]struct{}{}
	}
	s.lines += lines
	for h := range streams {
		s.streams[h] = struct{}{}
	}
	if tenant != "" {
		s.tenants[tenant] = struct{}{}
	}
	return nil
}

// Lines returns the number of lines.
func (s *BlockStats) Lines() int { return s.lines }

// Streams returns the number of different streams.
func (s *BlockStats) Streams() int { return len(s.streams) }

// Tenants returns the number of tenants with lines, without the tenant of the
// endpoint.
func (s *BlockStats) Tenants() int { return len(s.tenants) }

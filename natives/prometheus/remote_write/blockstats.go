package remotewrite

import (
	"errors"

	"github.com/cespare/xxhash/v2"

	"github.com/weir-run/weir/engine/journal"
)

// BlockStats counts the content of journal blocks that prometheus.remote_write
// wrote. The zero value is ready to use.
type BlockStats struct {
	samples  int
	messages map[string]int
	values   map[string]bool
	series   map[uint64]struct{} // by the hash of their labels and of their header, if they have one
}

// Has reports whether a block has one of the kinds of this package. Other
// components may use the same numbers.
func (*BlockStats) Has(b journal.Block) bool {
	_, err := openBlock(b)
	return !errors.Is(err, errUnknownKind)
}

// Add counts a block. It returns an error if the block is damaged.
func (s *BlockStats) Add(b journal.Block) error {
	env, err := openBlock(b)
	if err != nil {
		return err
	}
	rows, err := read(env.body, env.message)
	defer func() {
		for i := range rows {
			rows[i].series.Release()
		}
	}()
	if err != nil {
		return err
	}
	if s.series == nil {
		*s = BlockStats{0, map[string]int{}, map[string]bool{}, map[uint64]struct{}{}}
	}
	s.samples += len(rows)
	s.messages[env.message.String()]++
	salt := uint64(0)
	if env.header != "" {
		s.values[env.header+": "+env.value] = true
		salt = xxhash.Sum64String(env.value)
	}
	for i := range rows {
		s.series[rows[i].series.Hash()^salt] = struct{}{}
	}
	return nil
}

// Samples returns the number of samples.
func (s *BlockStats) Samples() int { return s.samples }

// Series returns the number of different series.
func (s *BlockStats) Series() int { return len(s.series) }

// Messages returns the number of blocks by message. The keys are the names in the
// configuration.
func (s *BlockStats) Messages() map[string]int { return s.messages }

// Values returns the number of values of header_from_label.
func (s *BlockStats) Values() int { return len(s.values) }

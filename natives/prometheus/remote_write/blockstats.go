package remotewrite

import (
	"errors"

	"github.com/cespare/xxhash/v2"

	"github.com/weir-run/weir/engine/journal"
)

// BlockStats counts what is in blocks of journals that prometheus.remote_write
// wrote. The zero value is ready.
type BlockStats struct {
	samples  int
	messages map[string]int
	values   map[string]bool
	series   map[uint64]struct{} // by the hash of their labels, of which a header may be one
}

// Has reports whether the kind of a block is one of this package. Other
// components may use the same number.
func (*BlockStats) Has(b journal.Block) bool {
	_, err := openBlock(b)
	return !errors.Is(err, errUnknownKind)
}

// Add counts a block. An error means that the block is damaged.
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

// Samples returns how many samples there are.
func (s *BlockStats) Samples() int { return s.samples }

// Series returns how many different series there are.
func (s *BlockStats) Series() int { return len(s.series) }

// Messages returns how many blocks there are of each message, by its name in
// the config.
func (s *BlockStats) Messages() map[string]int { return s.messages }

// Values returns how many values of header_from_label there are.
func (s *BlockStats) Values() int { return len(s.values) }

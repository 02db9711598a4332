package source

import (
	"time"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/rule"
)

// ttl is how long a stream is known after its last line.
const ttl = 15 * time.Minute

// Recheck is how long a caller may use a stream before it calls Of again, so that
// Streams knows that the stream is in use.
const Recheck = time.Minute

// Streams are the streams of a source, by the labels of its input and after
// relabelling. Equal labels have the same handle.
//
// All methods are safe for concurrent use.
type Streams struct {
	rules   []*rule.Rule
	most    int
	forgot  func(n int)
	known   *batch.Interner
	relabel *rule.Relabeler
}

// NewStreams returns Streams that apply rules, which may be empty. most is the
// maximum number of known label sets, 0 for no limit. forgot is called with the
// number of label sets that are removed because of the limit.
func NewStreams(rules []*rule.Rule, most int, forgot func(n int)) *Streams {
	return &Streams{rules: rules, most: most, forgot: forgot, known: batch.NewInterner(ttl), relabel: rule.NewPublicRelabeler(rules)}
}

// MaxStreams is the default for the maximum number of label sets of a source. A
// sender might otherwise use different labels in each line.
const MaxStreams = 100_000

// StreamBytes is the maximum average size of the labels of known streams, in
// bytes.
const StreamBytes = 640

// Full reports whether sorted labels are unknown and the limit of label sets, or
// of the bytes of their labels, is reached. 0 is no limit.
func (s *Streams) Full(sorted []batch.Label, most int, now time.Time) bool {
	return Full(s.known, sorted, most, now)
}

// Full is Streams.Full for other handles.
func Full(in *batch.Interner, sorted []batch.Label, most int, now time.Time) bool {
	if n, bytes := in.Size(); most == 0 || n < most && bytes < most*StreamBytes {
		return false
	}
	wire := batch.AppendLabels(nil, sorted)
	return in.Lookup(batch.Hash(wire), wire, now) == nil
}

// Of returns the stream for sorted labels, or nil if the rules drop it. Labels
// whose names begin with "__" are only visible to the rules. If too many label
// sets are known, all of them are removed, and each gets a new handle when it is
// used again.
func (s *Streams) Of(sorted []batch.Label, now time.Time) *batch.Stream {
	if Full(s.known, sorted, s.most, now) {
		s.forgot(s.known.Len())
		s.known.Clear()
	}
	return s.relabel.Series(s.known.Intern(sorted, nil, now))
}

// Reads reports whether a label that begins with "__" may affect the result.
func (s *Streams) Reads(name string) bool { return rule.Reads(s.rules, name) }

// Len returns the number of known label sets.
func (s *Streams) Len() int { return s.known.Len() }

// Sweep removes unused streams. Call it about every minute.
func (s *Streams) Sweep() { s.relabel.Sweep() }

// Close releases all handles. Batches that hold them stay valid.
func (s *Streams) Close() {
	s.relabel.Close()
	s.known.Clear()
}

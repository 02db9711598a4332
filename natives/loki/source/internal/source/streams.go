package source

import (
	"time"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/rule"
)

// ttl is how long a stream is known after its last line.
const ttl = 15 * time.Minute

// Recheck is how long a caller may go on with a stream before it asks Of for it
// again, which is how Streams learns that it is used.
const Recheck = time.Minute

// Streams are the streams of a source, by the labels of what it takes in and
// what rules make of them. Equal labels are the same handle.
//
// All methods are safe for concurrent use.
type Streams struct {
	rules   []*rule.Rule
	most    int
	forgot  func(n int)
	known   *batch.Interner
	relabel *rule.Relabeler
}

// NewStreams returns Streams after rules, which may be none. most is how many label
// sets are known at a time, 0 for any number; forgot is told how many are forgotten
// when there would be more.
func NewStreams(rules []*rule.Rule, most int, forgot func(n int)) *Streams {
	return &Streams{rules: rules, most: most, forgot: forgot, known: batch.NewInterner(ttl), relabel: rule.NewPublicRelabeler(rules)}
}

// MaxStreams is how many label sets a source knows at a time unless its arguments say
// something else: who writes the lines may write other labels in each of them.
const MaxStreams = 100_000

// StreamBytes is how many bytes the labels of those that may be known take on
// average, at most.
const StreamBytes = 640

// Full reports whether sorted labels are not known while most label sets are, or as
// many bytes of labels as they may take. 0 is any number.
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

// Of returns the stream of sorted labels, of which those with names that begin
// with "__" are for the rules only; nil when the rules drop it. When too many are
// known, all are forgotten: each gets another handle when it comes again.
func (s *Streams) Of(sorted []batch.Label, now time.Time) *batch.Stream {
	if Full(s.known, sorted, s.most, now) {
		s.forgot(s.known.Len())
		s.known.Clear()
	}
	return s.relabel.Series(s.known.Intern(sorted, nil, now))
}

// Reads reports whether a label that begins with "__" may make a difference.
func (s *Streams) Reads(name string) bool { return rule.Reads(s.rules, name) }

// Len returns how many label sets are known.
func (s *Streams) Len() int { return s.known.Len() }

// Sweep forgets what is not used any more. Call it every minute or so.
func (s *Streams) Sweep() { s.relabel.Sweep() }

// Close gives all handles back. Batches that hold them stay valid.
func (s *Streams) Close() {
	s.relabel.Close()
	s.known.Clear()
}

package source

import (
	"time"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/natives/prometheus/rule"
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
	known   *batch.Interner
	relabel *rule.Relabeler
}

// NewStreams returns Streams after rules, which may be none.
func NewStreams(rules []*rule.Rule) *Streams {
	return &Streams{rules: rules, known: batch.NewInterner(ttl), relabel: rule.NewPublicRelabeler(rules)}
}

// Of returns the stream of sorted labels, of which those with names that begin
// with "__" are for the rules only; nil when the rules drop it.
func (s *Streams) Of(sorted []batch.Label, now time.Time) *batch.Stream {
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

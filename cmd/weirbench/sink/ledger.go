package sink

import (
	"bytes"
	"slices"
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/weir-run/weir/cmd/weirbench/target"
)

// staleNaN is a staleness marker.
const staleNaN uint64 = 0x7ff0000000000002

// Stats counts received data, including duplicates.
type Stats struct {
	Requests int64 `json:"requests"` // requests that were answered 2xx
	Refused  int64 `json:"refused"`  // requests refused by a fault
	Invalid  int64 `json:"invalid"`  // requests that could not be decoded
	V2       int64 `json:"v2"`       // number of requests of remote write 2.0
	Bytes    int64 `json:"bytes"`    // size of their bodies, compressed
	Raw      int64 `json:"raw"`      // size of their bodies, decompressed

	Samples    int64 `json:"samples"`    // samples of targets, including histograms, without markers
	Histograms int64 `json:"histograms"` // native histograms
	Report     int64 `json:"report"`     // samples of series that the collector adds to a scrape, such as up
	Stale      int64 `json:"stale"`      // staleness markers

	Lines      int64 `json:"lines"`      // log lines
	LineBytes  int64 `json:"line_bytes"` // size of the lines, without line ends
	Unnumbered int64 `json:"unnumbered"` // lines without a number
	Streams    int   `json:"streams"`    // number of their label sets

	Sequences  int            `json:"sequences"`  // number of series that count scrapes, and of files by level
	Gaps       int64          `json:"gaps"`       // missing numbers in sequences
	Duplicates int64          `json:"duplicates"` // duplicate numbers
	Repeats    int64          `json:"repeats"`    // duplicate requests with the same bytes
	Changed    int64          `json:"changed"`    // duplicate numbers with another timestamp, and duplicate lines in another request
	Reordered  int64          `json:"reordered"`  // numbers that arrived after a higher one
	First      map[string]int `json:"first"`      // by instance, or file and level: the first number that all its sequences reached
	Last       map[string]int `json:"last"`       // the last number that all of them have reached
}

// ledger records samples. It is a visitor for one request at a time.
type ledger struct {
	stats     Stats
	sequences map[uint64]*sequence // by hash of labels
	files     map[string]*sequence // by the name in package logfiles
	streams   map[uint64]struct{}  // by hash of labels
	instances map[string]*instance
	bodies    map[uint64]struct{} // hashes of requests
	owes      map[owed]struct{}
	forgiven  map[owed]struct{}
	down      map[string][]int64

	repeated bool      // the current request is a duplicate
	visited  []*scrape // scrapes in the current request
	cur      *sequence // the sequence of the current series
	report   bool
	up       string // the instance, if the current series is up
}

// instance is a target.
type instance struct {
	name    string
	scrapes map[int]*scrape // by number
	last    int             // the last visited number
	current *scrape         // the scrape with that number
}

// scrape is a number that all sequences of an instance have at the same time.
type scrape struct {
	t        int64     // timestamp
	answered time.Time // the last time a request that contained part of it was answered successfully; zero if never
}

// sequence is a series whose value increases by one with each scrape.
type sequence struct {
	instance    *instance // nil for a file
	first, last int
	missing     map[int]bool // numbers between first and last, at most maxMissing
}

// maxMissing limits the missing numbers that a sequence remembers. If a further
// number is missing and arrives late, it counts as a duplicate.
const maxMissing = 10_000

func newLedger() *ledger {
	return &ledger{
		sequences: map[uint64]*sequence{}, files: map[string]*sequence{}, streams: map[uint64]struct{}{}, bodies: map[uint64]struct{}{}, instances: map[string]*instance{},
		owes: map[owed]struct{}{}, forgiven: map[owed]struct{}{}, down: map[string][]int64{},
	}
}

func isReport(name []byte) bool {
	return string(name) == "up" || bytes.HasPrefix(name, []byte("scrape_"))
}

func isSequence(name []byte) bool { return bytes.HasPrefix(name, []byte(target.SequencePrefix)) }

func (l *ledger) wants(name []byte) bool { return isReport(name) || isSequence(name) }

func (l *ledger) series(key, name, of []byte) {
	l.cur, l.up, l.report = nil, "", false
	if key == nil {
		return
	}
	l.report = isReport(name)
	if string(name) == "up" {
		l.up = string(of)
	}
	if isSequence(name) {
		h := xxhash.Sum64(key)
		if l.cur = l.sequences[h]; l.cur == nil {
			in := l.instances[string(of)]
			if in == nil {
				in = &instance{name: string(of), scrapes: map[int]*scrape{}}
				l.instances[in.name] = in
			}
			l.cur = &sequence{instance: in, first: -1}
			l.sequences[h] = l.cur
		}
	}
}

func (l *ledger) sample(bits uint64, t int64, histogram bool) {
	st := &l.stats
	switch {
	case bits == staleNaN:
		st.Stale++
		return
	case l.report:
		st.Report++
		if bits == 0 && l.up != "" && !slices.Contains(l.down[l.up], t) {
			l.down[l.up] = append(l.down[l.up], t)
		}
		return
	case histogram:
		st.Histograms++
	}
	st.Samples++
	if l.cur != nil && !histogram {
		n := sequenceNumber(bits)
		l.number(l.cur, n, l.visit(l.cur.instance, n, t))
	}
}

// visit records that a scrape is in the request, and reports whether it has the
// same timestamp as before.
func (l *ledger) visit(in *instance, n int, t int64) (same bool) {
	if in.current == nil || in.last != n || len(l.visited) == 0 {
		sc := in.scrapes[n]
		if sc == nil {
			sc = &scrape{t: t}
			in.scrapes[n] = sc
		}
		in.last, in.current = n, sc
		l.visited = append(l.visited, sc)
	}
	return in.current.t == t
}

// number records the next number of a sequence. If the number is a duplicate,
// same is true if the sample is the same.
func (l *ledger) number(s *sequence, n int, same bool) {
	switch {
	case s.first < 0:
		s.first, s.last = n, n
	case n > s.last:
		l.gap(s, s.last+1, n)
		s.last = n
	case s.missing[n]:
		delete(s.missing, n)
		l.stats.Gaps--
		l.stats.Reordered++
	case n < s.first:
		// The first number that arrived was not the lowest.
		l.gap(s, n+1, s.first)
		l.stats.Reordered++
		s.first = n
	default:
		l.stats.Duplicates++
		if !same {
			l.stats.Changed++
		}
	}
}

// gap records that the numbers from from up to to-1 are missing.
func (l *ledger) gap(s *sequence, from, to int) {
	l.stats.Gaps += int64(to - from)
	for n := from; n < to && len(s.missing) < maxMissing; n++ {
		if s.missing == nil {
			s.missing = map[int]bool{}
		}
		s.missing[n] = true
	}
}

// snapshot returns the statistics. If detail is true, they include the numbers by
// instance.
func (l *ledger) snapshot(detail bool) Stats {
	st := l.stats
	st.Sequences, st.Streams = len(l.sequences)+len(l.files), len(l.streams)
	if !detail {
		return st
	}
	st.First, st.Last = map[string]int{}, map[string]int{}
	for name, s := range l.files {
		st.First[name], st.Last[name] = s.first, s.last
	}
	for _, s := range l.sequences {
		name := s.instance.name
		if first, ok := st.First[name]; !ok || s.first > first {
			st.First[name] = s.first
		}
		if last, ok := st.Last[name]; !ok || s.last < last {
			st.Last[name] = s.last
		}
	}
	return st
}

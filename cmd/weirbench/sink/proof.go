package sink

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/cespare/xxhash/v2"
	"github.com/klauspost/compress/s2"

	"github.com/weir-run/weir/cmd/weirbench/target"
)

// Proof is what a ledger says about loss, sequence by sequence.
type Proof struct {
	// Missing has, by instance and number of a scrape, in how many of the
	// instance's sequences that number is missing: before, between or after
	// what arrived, up to what was asked for. Forgiven ones are left out.
	Missing map[string]map[int]int
	// Forgiven has, by instance and number, in how many sequences it was.
	Forgiven map[string]map[int]int
	// Sequences is how many an instance has.
	Sequences map[string]int
	// Owed is how many samples of sequences were owed (see Server.Owe) and did
	// not arrive.
	Owed int
	// Down has, by instance, the times of the samples of up that were 0, Unix
	// ms: scrapes that failed.
	Down map[string][]int64
}

// owed is a sample of a sequence: its series and its number.
type owed struct {
	series uint64
	n      int
}

// Arrival says whether all samples of a request arrived, in whichever requests.
type Arrival struct {
	Known    bool
	Answered time.Time // when a request with one of their scrapes was last answered well, zero if never
}

// Owe notes that the samples of a request, compressed as it is sent, are to
// arrive: whoever writes down what a collector has accepted learns from Prove
// whether they came. It returns the number of samples, and whether they arrived
// already.
func (s *Server) Owe(body []byte, v2 bool) (samples int, a Arrival, err error) {
	a.Known = true
	samples, err = s.recordSamples(body, v2, func(l *ledger, o owed) {
		l.owes[o] = struct{}{}
		q := l.sequences[o.series]
		if q == nil || q.lacks(o.n) {
			a.Known = false
		} else if sc := q.instance.scrapes[o.n]; sc.answered.After(a.Answered) {
			a.Answered = sc.answered
		}
	})
	return samples, a, err
}

// Forgive notes that the samples of a request need not arrive: it was damaged
// on purpose.
func (s *Server) Forgive(body []byte, v2 bool) (samples int, err error) {
	return s.recordSamples(body, v2, func(l *ledger, o owed) {
		delete(l.owes, o)
		l.forgiven[o] = struct{}{}
	})
}

func (s *Server) recordSamples(body []byte, v2 bool, f func(*ledger, owed)) (samples int, err error) {
	raw, err := s2.Decode(nil, body)
	if err != nil {
		return 0, fmt.Errorf("cannot decompress the request: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	n := &noting{l: s.ledger, f: f}
	d := decoder{v: n}
	if v2 {
		err = d.v2(raw)
	} else {
		err = d.v1(raw)
	}
	return n.samples, err
}

// noting is a visitor that hands on the samples of sequences.
type noting struct {
	l        *ledger
	f        func(*ledger, owed)
	samples  int
	hash     uint64 // of the series that is visited
	sequence bool   // it is one
}

func (v *noting) wants(name []byte) bool { return isSequence(name) }

func (v *noting) series(key, name, _ []byte) {
	v.hash, v.sequence = xxhash.Sum64(key), isSequence(name)
}

func (v *noting) sample(bits uint64, _ int64, histogram bool) {
	v.samples++
	if v.sequence && !histogram && bits != staleNaN {
		v.f(v.l, owed{v.hash, sequenceNumber(bits)})
	}
}

func sequenceNumber(bits uint64) int {
	return int(math.Float64frombits(bits) - target.SequenceBase)
}

// Prove says what is missing of the scrapes 1 to last[instance].
func (s *Server) Prove(last map[string]int) Proof {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.ledger
	p := Proof{Missing: map[string]map[int]int{}, Forgiven: map[string]map[int]int{}, Sequences: map[string]int{}, Down: map[string][]int64{}}
	for instance, times := range l.down {
		p.Down[instance] = slices.Clone(times)
	}
	for h, q := range l.sequences {
		instance := q.instance.name
		p.Sequences[instance]++
		for n := 1; n <= last[instance]; n++ {
			if !q.lacks(n) {
				continue
			}
			in := p.Missing
			if _, ok := l.forgiven[owed{h, n}]; ok {
				in = p.Forgiven
			}
			if in[instance] == nil {
				in[instance] = map[int]int{}
			}
			in[instance][n]++
		}
	}
	for o := range l.owes {
		if q := l.sequences[o.series]; q == nil || q.lacks(o.n) {
			p.Owed++
		}
	}
	return p
}

// lacks reports whether number n did not arrive.
func (s *sequence) lacks(n int) bool { return n < s.first || n > s.last || s.missing[n] }

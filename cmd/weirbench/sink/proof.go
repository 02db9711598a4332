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

// Proof describes the loss of samples in a ledger, by sequence.
type Proof struct {
	// Missing contains the number of sequences in which a number is missing, by
	// instance and number of a scrape: before, between or after the numbers that
	// arrived, up to the given number. It does not include forgiven ones.
	Missing map[string]map[int]int
	// Forgiven contains the number of sequences in which a number was forgiven,
	// by instance and number.
	Forgiven map[string]map[int]int
	// Sequences is the number of sequences of each instance.
	Sequences map[string]int
	// Owed is the number of samples passed to Server.Owe that did not arrive.
	Owed int
	// Down contains the times of the samples of up with the value 0, by instance,
	// in Unix ms: scrapes that failed.
	Down map[string][]int64
}

// owed is a sample of a sequence: its series and its number.
type owed struct {
	series uint64
	n      int
}

// Arrival tells whether all samples of a request arrived, in whichever requests.
type Arrival struct {
	Known    bool
	Answered time.Time // the last time a request with one of their scrapes was answered successfully; zero if never
}

// Owe records that the samples of a request, which is compressed, must arrive.
// Callers that know what a collector has accepted can check with Prove whether it
// arrived. Owe returns the number of samples, and whether they have already
// arrived.
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

// Forgive records that the samples of a request need not arrive, because it was
// damaged on purpose.
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

// noting is a visitor that forwards the samples of sequences.
type noting struct {
	l        *ledger
	f        func(*ledger, owed)
	samples  int
	hash     uint64 // hash of the current series
	sequence bool   // the current series is a sequence
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

// Prove returns which of the scrapes 1 to last[instance] are missing.
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

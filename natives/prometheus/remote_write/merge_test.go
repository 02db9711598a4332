package remotewrite

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/tsdb/tsdbutil"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/journal"
)

// mixedBlock returns a block of n samples of all kinds.
func mixedBlock(m message, seed uint64, n int) *flight {
	rng := rand.New(rand.NewPCG(seed, 1))
	s := &settings{args: &Endpoint{Metadata: Metadata{Send: true}}, maxSamples: 1 << 30, symbols: new(atomic.Pointer[symbols])}
	s.symbols.Store(newSymbols())
	b := block{s: s, message: m}
	for i := range n {
		r := row{series: batch.FromLabels(labels.FromStrings("__name__", fmt.Sprint("m", rng.IntN(20)), "a", fmt.Sprint(i), "empty", "")), t: int64(1000*seed) + int64(i), v: rng.Float64()}
		r.series.SetMeta(&batch.Metadata{Type: "counter", Help: fmt.Sprint("Help ", rng.IntN(3)), Unit: "s"})
		switch rng.IntN(4) {
		case 0:
			r.h = &batch.Histogram{Int: tsdbutil.GenerateTestHistogram(int64(i))}
			r.start = 17
		case 1:
			r.exemplars = []batch.Exemplar{{Labels: []batch.Label{{Name: "trace", Value: fmt.Sprint(rng.IntN(5))}}, Value: 2, T: 5, HasT: true}}
		}
		if err := b.add(&r); err != nil {
			panic(err)
		}
	}
	out := b.close(0, "")
	out.Seq = seed
	f := &flight{Block: out, envelope: envelope{message: m, body: out.Payload}}
	return f
}

// texts returns the content of a request, row by row.
func texts(t *testing.T, body []byte, m message) (all []string) {
	t.Helper()
	rows, err := read(body, m)
	if err != nil {
		t.Fatal(err)
	}
	for i := range rows {
		r := &rows[i]
		text := fmt.Sprint(r.series.String(), r.t, r.v, r.start, r.exemplars)
		if r.h != nil {
			text += r.h.Int.String()
		}
		if meta := r.series.Meta(); meta != nil {
			text += fmt.Sprint(*meta)
		}
		all = append(all, text)
		r.series.Release()
	}
	return all
}

// TestMergedRequests checks that a request of several blocks, or of all their
// parts, contains the content of the blocks, in order.
func TestMergedRequests(t *testing.T) {
	for _, m := range []message{v1, v2} {
		for _, whole := range []bool{true, false} {
			p := &writeRequest{whole: whole}
			var want []string
			for seed := range uint64(5) {
				f := mixedBlock(m, seed+1, int(20*seed)+1)
				want = append(want, texts(t, f.body, m)...)
				if whole {
					p.add(piece{of: f, data: f.body}, f.Samples)
				} else if err := scan(f.body, m, func(data []byte, _ uint64, table *symbolTable) {
					p.add(piece{of: f, data: data, table: table}, 1)
				}); err != nil {
					t.Fatal(err)
				}
			}
			if err := p.prepare(m, noneOld); err != nil {
				t.Fatal(err)
			}
			if got := texts(t, p.body, m); !slices.Equal(got, want) || p.samples != len(want) {
				t.Errorf("%s, whole %v: got %d rows, want %d; the first are\n%s\n%s", m, whole, len(got), len(want), got[0], want[0])
			}
			// Halves are divided between two blocks.
			a, b, ok := p.halves()
			if !ok || a.all+b.all != p.all || a.pieces[len(a.pieces)-1].of == b.pieces[0].of {
				t.Errorf("%s, whole %v: halves of %d and %d rows", m, whole, a.all, b.all)
			}
		}
	}
}

// TestSeriesHash checks that a series has the same hash in both messages, because
// the hash determines the bin of the series.
func TestSeriesHash(t *testing.T) {
	hashes := func(m message) (all []uint64) {
		f := mixedBlock(m, 3, 100)
		if err := scan(f.body, m, func(_ []byte, hash uint64, _ *symbolTable) { all = append(all, hash) }); err != nil {
			t.Fatal(err)
		}
		return all
	}
	first := hashes(v1)
	if !slices.Equal(first, hashes(v2)) {
		t.Error("the hashes differ")
	}
	if n := len(slices.Compact(slices.Sorted(slices.Values(first)))); n != 100 {
		t.Errorf("100 series have %d hashes", n)
	}
}

// FuzzScan checks that no block makes scan or a merger panic.
func FuzzScan(f *testing.F) {
	for _, m := range []message{v1, v2} {
		f.Add(mixedBlock(m, 1, 10).body, m == v2)
	}
	f.Fuzz(func(t *testing.T, body []byte, second bool) {
		m := v1
		if second {
			m = v2
		}
		p := &writeRequest{}
		of := &flight{Block: journal.Block{Seq: 1}, envelope: envelope{message: m}}
		_ = scan(body, m, func(data []byte, _ uint64, table *symbolTable) {
			p.add(piece{of: of, data: data, table: table}, 1)
		})
		if p.all > 0 {
			_ = p.prepare(m, noneOld)
		}
	})
}

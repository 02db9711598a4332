package batch_test

import (
	"bytes"
	"fmt"
	"runtime"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/weir-run/weir/engine/batch"
)

// TestSlab: handles in shared memory behave like separately allocated handles.
func TestSlab(t *testing.T) {
	var slab batch.Slab
	var all []*batch.Series
	ids := map[uint32]bool{}
	for i := range 300 {
		if i == 100 {
			slab.Expect(120)
		}
		ls := []batch.Label{{Name: batch.NameLabel, Value: "up"}, {Name: "i", Value: fmt.Sprintf("%0*d", 1+i*i%5000, i)}}
		want := batch.NewSeries(ls)
		var wire []byte
		for _, l := range ls {
			wire = batch.AppendLabel(wire, l.Name, l.Value)
		}
		got := slab.Series(batch.Hash(wire), wire, nil)
		clear(wire) // wire belongs to the caller
		all = append(all, got)
		if !got.Equal(want) || !bytes.Equal(got.AppendWire(nil), want.AppendWire(nil)) || got.Hash() != want.Hash() {
			t.Errorf("%s is not %s", got, want)
		}
		if d := cmp.Diff(ls, got.AppendLabels(nil)); d != "" {
			t.Errorf("labels (-want +got)\n%s", d)
		}
		want.Release()
	}
	for _, s := range all {
		if ids[s.ID()] {
			t.Errorf("two have the ID %d", s.ID())
		}
		ids[s.ID()] = true
	}
	for i, s := range all {
		if s.Label("i") != fmt.Sprintf("%0*d", 1+i*i%5000, i) {
			t.Fatalf("the labels of %d were written to", i)
		}
		s.Release()
	}
}

// TestSlabIsFreed: a handle created while few were expected is freed together
// with its few neighbours.
func TestSlabIsFreed(t *testing.T) {
	var slab batch.Slab
	wire := batch.AppendLabel(nil, "a", fmt.Sprintf("%01000d", 1))
	var kept []*batch.Series
	before := heap()
	const n = 32_000
	for i := range n {
		if s := slab.Series(0, wire, nil); i%64 == 0 {
			kept = append(kept, s)
		} else {
			s.Release()
		}
	}
	// One handle in 64 lives, and keeps at most 7 other handles alive.
	if got, most := int64(heap())-int64(before), int64(n*8/64*1200); got > most {
		t.Errorf("%d handles keep %d bytes, want at most %d", len(kept), got, most)
	}
	runtime.KeepAlive(kept)
}

func heap() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

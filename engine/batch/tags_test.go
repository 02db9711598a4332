package batch_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"unsafe"

	"github.com/weir-run/weir/engine/batch"
)

// wireOf returns sorted labels in their encoding.
func wireOf(ls []batch.Label) (wire []byte) {
	for _, l := range ls {
		wire = batch.AppendLabel(wire, l.Name, l.Value)
	}
	return wire
}

// sameSeries fails unless all methods of got return the labels of want.
func sameSeries(t *testing.T, got, want *batch.Series, ls []batch.Label) {
	t.Helper()
	wire := want.AppendWire(nil)
	if w := got.AppendWire([]byte("x")); !bytes.Equal(w[1:], wire) || got.WireSize() != len(wire) {
		t.Fatalf("%v encoded is %q of %d bytes, want %q", ls, w[1:], got.WireSize(), wire)
	}
	sized := append(binary.AppendUvarint([]byte("y"), uint64(len(wire)+7)), wire...)
	if w := got.AppendSized([]byte("y"), 7); !bytes.Equal(w, sized) || got.Empty() != (len(ls) == 0) {
		t.Fatalf("%v encoded with its size is %q, want %q; empty: %t", ls, w, sized, got.Empty())
	}
	if !got.Equal(want) || !want.Equal(got) || got.Hash() != want.Hash() || !got.Is(want.Hash(), wire) || got.String() != want.String() {
		t.Fatalf("%v is not equal to %v", got, want)
	}
	if ls := got.AppendLabels(nil); !slices.Equal(ls, want.AppendLabels(nil)) {
		t.Fatalf("got labels %v, want %v", ls, want)
	}
	if d := got.PromLabels(); d.String() != want.PromLabels().String() || got.Name() != want.Name() {
		t.Fatalf("got Prometheus's labels %v, want %v", d, want)
	}
	var b batch.Builder
	b.Reset(got)
	if !b.Matches(want) || b.Series(got) != got {
		t.Fatalf("a builder of %v does not match %v", got, want)
	}
	for i := range ls {
		if v := got.Label(ls[i].Name); v != ls[i].Value {
			t.Fatalf("%v has %s=%q, want %q", got, ls[i].Name, v, ls[i].Value)
		}
		n := 0
		for name, value := range got.Labels() {
			if n++; name == ls[i].Name {
				if value != ls[i].Value || n != i+1 {
					t.Fatalf("label %d of %v is %s=%q", n, got, name, value)
				}
				break
			}
		}
		// A series with a changed label or without one of its labels is not equal.
		b.Set(ls[i].Name, ls[i].Value+"!")
		if other := batch.NewSeries(b.Labels()); other.Equal(got) || got.Equal(other) || b.Matches(got) {
			t.Fatalf("%v is equal to %v", got, other)
		}
		b.Set(ls[i].Name, "")
		if b.Matches(got) || got.Is(got.Hash(), wireOf(b.Labels())) {
			t.Fatalf("%v matches %v", b.Labels(), got)
		}
		b.Set(ls[i].Name, ls[i].Value)
	}
	if changed := append(slices.Clone(wire[:max(len(wire)-1, 0)]), '?'); len(wire) > 0 && got.Is(got.Hash(), changed) && wire[len(wire)-1] != '?' {
		t.Fatalf("%v is another wire", got)
	}
	for _, name := range []string{"", "nope", "__name"} {
		if v := got.Label(name); v != want.Label(name) {
			t.Fatalf("%v has %q=%q", got, name, v)
		}
	}
}

// TestTags: a series behaves the same whether or not some of its labels are in
// Tags, wherever they are in the order of names.
func TestTags(t *testing.T) {
	r := newRandom(11)
	names := []string{"__name__", "a", "b", "c", "instance", "job", "le", "z", strings.Repeat("n", 130), "exported_job"}
	value := func() string {
		switch r.IntN(8) {
		case 0:
			return strings.Repeat("v", 100+r.IntN(60))
		case 1:
			return strings.Repeat("w", 16_300+r.IntN(200))
		}
		return pick(r, oddStrings)
	}
	slab := new(batch.Slab)
	shared := 0
	for i := range 1000 {
		if i%50 == 0 {
			slab = new(batch.Slab)
			slab.Expect(r.IntN(60))
		}
		var own, tags, all batch.Builder
		for range r.IntN(6) {
			own.Set(pick(r, names), value())
		}
		for range r.IntN(6) {
			tags.Set(pick(r, names), value())
		}
		conflict := r.IntN(5) == 0 // the series' own wins over the target's, as with honor_labels
		for _, l := range tags.Labels() {
			all.Set(l.Name, l.Value)
		}
		for _, l := range own.Labels() {
			if conflict || all.Get(l.Name) == "" {
				all.Set(l.Name, l.Value)
			}
		}
		ls := slices.Clone(all.Labels())
		wire := wireOf(ls)
		target := batch.NewTags(wireOf(tags.Labels()))
		if !target.Is(wireOf(tags.Labels())) || target.Is(append(wireOf(tags.Labels()), 'x')) {
			t.Fatal("tags are not what they were made of")
		}
		got := slab.Series(batch.Hash(wire), wire, target)
		want := batch.NewSeries(ls)
		clear(wire) // wire belongs to the caller
		sameSeries(t, got, want, ls)
		again := wireOf(ls)
		if twice := slab.Series(batch.Hash(again), again, target); !twice.Equal(got) {
			t.Fatalf("%v is not equal to itself", got)
		}
		if len(tags.Labels()) > 0 && !conflict {
			shared++
		}
		d := got.Derive(ls)
		sameSeries(t, d, got, ls)
		if got.Meta() != nil || d.Source() != got {
			t.Fatal("a derived one has another source")
		}
	}
	if shared < 250 {
		t.Errorf("only %d series had tags", shared)
	}
}

// fleetBody returns the labels of target i's series: the series of its kind,
// and some that only this target has.
func fleetBody(kind string, i, n int) (wires [][]byte, tags *batch.Tags) {
	instance := fmt.Sprintf("host-%d:9100", i)
	tags = batch.NewTags(wireOf([]batch.Label{{Name: "instance", Value: instance}, {Name: "job", Value: kind}}))
	for j := range n {
		ls := []batch.Label{{Name: batch.NameLabel, Value: kind + "_seconds_total"}, {Name: "device", Value: fmt.Sprint(j)},
			{Name: "instance", Value: instance}, {Name: "job", Value: kind}, {Name: "mode", Value: "idle"}}
		if j%100 == 50 { // one that only this target has
			ls[1].Value = instance
		}
		wires = append(wires, wireOf(ls))
		if i > 0 && j%150 == 120 { // and one more
			ls[1].Value = instance + "+"
			wires = append(wires, wireOf(ls))
		}
		if i == 0 && j%200 == 70 { // or a few more that other targets do not have
			for k := range 5 {
				ls[1].Value = fmt.Sprint("only", k)
				wires = append(wires, wireOf(ls))
			}
		}
	}
	return wires, tags
}

func makeSeries(slab *batch.Slab, wires [][]byte, tags *batch.Tags) (out []*batch.Series) {
	slab.Expect(len(wires))
	defer slab.Expect(0)
	for _, w := range wires {
		out = append(out, slab.Series(batch.Hash(w), w, tags))
	}
	return out
}

// place returns the address of a series' name in memory.
func place(s *batch.Series) *byte { return unsafe.StringData(s.Name()) }

// TestFleetSharesLabels: the labels that the targets of a fleet have in common
// are stored once, even if each target also has its own series, and another
// kind of target starts at the same time.
func TestFleetSharesLabels(t *testing.T) {
	const n = 1000
	places := map[*byte]bool{}
	var kept []*batch.Series
	made := 0
	for i := range 10 {
		for _, kind := range []string{"fleet_a", "fleet_b"} {
			wires, tags := fleetBody(kind, i, n)
			for j, s := range makeSeries(new(batch.Slab), wires, tags) {
				if !bytes.Equal(s.AppendWire(nil), wires[j]) {
					t.Fatalf("series %d of target %d is %v", j, i, s)
				}
				places[place(s)] = true
				kept = append(kept, s)
				made++
			}
		}
	}
	// About 17 in 1,000 series exist for one target only.
	if most := 2*n + 2*10*40; len(places) > most {
		t.Errorf("%d series have their labels in %d places, want at most %d", made, len(places), most)
	}
	runtime.KeepAlive(kept)
}

// TestFleetIsForgotten: the labels of a removed fleet are freed. After one
// target is removed, only the labels that other targets use are left.
func TestFleetIsForgotten(t *testing.T) {
	const n = 4000
	before := heap()
	round := func(kind string) (kept []*batch.Series) {
		for i := range 5 {
			wires, tags := fleetBody(kind, i, n)
			for _, s := range makeSeries(new(batch.Slab), wires, tags) {
				kept = append(kept, s)
				s.Release()
			}
		}
		return kept
	}
	const rounds = 20
	for i := range rounds {
		kept := round(fmt.Sprint("gone_", i))
		if len(kept) < n || kept[0].Name() != fmt.Sprint("gone_", i, "_seconds_total") {
			t.Fatal("no fleet")
		}
	}
	runtime.GC() // the clean-ups have run after one GC, or will
	if got, most := int64(heap())-int64(before), int64(rounds*n*20); got > most {
		t.Errorf("%d fleets that are gone keep %d bytes, want less than %d", rounds, got, most)
	}
}

// TestFleetConcurrent: targets start at the same time.
func TestFleetConcurrent(t *testing.T) {
	for round := range 5 {
		var wg sync.WaitGroup
		for i := range 8 {
			wg.Go(func() {
				wires, tags := fleetBody(fmt.Sprint("together_", round), i, 600)
				var slab batch.Slab
				all := makeSeries(&slab, wires, tags)
				for j := range 100 { // churn, in what is left of the memory
					w := wireOf([]batch.Label{{Name: "a", Value: fmt.Sprint(i, j)}})
					all, wires = append(all, slab.Series(batch.Hash(w), w, tags)), append(wires, w)
				}
				for j, s := range all {
					if !bytes.Equal(s.AppendWire(nil), wires[j]) {
						t.Errorf("series %d of target %d is %v", j, i, s)
					}
					s.Release()
				}
			})
		}
		wg.Wait()
	}
}

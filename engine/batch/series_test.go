package batch_test

import (
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/prompb"

	"github.com/weir-run/weir/engine/batch"
)

// AppendWire writes the same bytes as Prometheus's own encoder of remote write
// 1.0.
func TestSeriesWireIsPrompb(t *testing.T) {
	f := func(ls ...batch.Label) {
		t.Helper()
		var want prompb.TimeSeries
		for _, l := range ls {
			want.Labels = append(want.Labels, prompb.Label{Name: l.Name, Value: l.Value})
		}
		bytes, err := want.Marshal()
		if err != nil {
			t.Fatal(err)
		}
		s := batch.NewSeries(ls)
		if diff := cmp.Diff(string(bytes), string(s.AppendWire(nil))); diff != "" {
			t.Errorf("%v (-want +got):\n%s", ls, diff)
		}
		if got := s.AppendLabels(nil); !slices.Equal(got, ls) {
			t.Errorf("got labels %v, want %v", got, ls)
		}
		if got := batch.FromLabels(s.PromLabels()); !got.Equal(s) || got == s {
			t.Errorf("%v comes back from Prometheus's labels as %v", s, got)
		}
	}

	f()
	f(batch.Label{Name: "__name__", Value: "up"})
	f(batch.Label{Name: "a", Value: "1"}, batch.Label{Name: "b", Value: "\xff\n"})
	for _, n := range []int{1, 120, 127, 128, 129, 16380, 16384, 3_000_000} { // the varint grows
		long := string(make([]byte, n))
		f(batch.Label{Name: "a", Value: long}, batch.Label{Name: "b", Value: "x"})
		f(batch.Label{Name: "b" + long, Value: long})
	}
	r := newRandom(7)
	for range 500 {
		f(r.labels()...)
	}
}

func TestSeriesLookup(t *testing.T) {
	s := batch.FromLabels(labels.FromStrings("__name__", "up", "job", "api", "z", ""))
	for name, want := range map[string]string{"__name__": "up", "job": "api", "z": "", "jo": "", "": ""} {
		if got := s.Label(name); got != want {
			t.Errorf("label %q: got %q, want %q", name, got, want)
		}
	}
	if s.Name() != "up" || s.String() != `up{job="api"}` {
		t.Errorf("got %q, %q", s.Name(), s)
	}
	for n := range s.Labels() {
		if n != "__name__" {
			t.Errorf("iteration went on to %s", n)
		}
		break
	}
}

func TestSeriesEqualAndHash(t *testing.T) {
	a, b := named("a"), named("a")
	if a == b || !a.Equal(b) || a.Hash() != b.Hash() || a.ID() == b.ID() {
		t.Error("two handles with equal labels must differ in nothing but themselves")
	}
	if c := named("c"); a.Equal(c) {
		t.Error("other labels are equal")
	}
}

func TestSeriesMetadataIsInherited(t *testing.T) {
	s := named("a")
	d := s.Derive([]batch.Label{{Name: batch.NameLabel, Value: "b"}})
	e := d.Derive([]batch.Label{{Name: batch.NameLabel, Value: "c"}})
	if e.Meta() != nil || e.Source() != d || s.Source() != nil {
		t.Fatalf("got metadata %v, source %v", e.Meta(), e.Source())
	}
	meta := &batch.Metadata{Type: model.MetricTypeGauge}
	s.SetMeta(meta)
	if e.Meta() != meta {
		t.Error("a derived series does not have its source's metadata")
	}
	own := &batch.Metadata{Help: "own"}
	d.SetMeta(own)
	if e.Meta() != own || s.Meta() != meta {
		t.Error("metadata of its own does not win")
	}
}

func TestSeriesRelease(t *testing.T) {
	s := named("a")
	d := s.Derive(nil).Derive(nil)
	if d.Released() {
		t.Fatal("released before anything was")
	}
	d.Release()
	if s.Released() || !d.Released() {
		t.Error("releasing a derived series released its source")
	}
	e := s.Derive(nil)
	s.Release()
	s.Release()
	if !e.Released() {
		t.Error("a series outlives the one it was derived from")
	}
	// The ID was freed only once, so two new series do not share it.
	x, y := named("x"), named("y")
	if x.ID() == y.ID() {
		t.Errorf("both got ID %d", x.ID())
	}
}

func TestSeriesIDsAreUniqueAmongTheLiving(t *testing.T) {
	var mu sync.Mutex
	live := map[uint32]bool{}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			var mine []*batch.Series
			for i := range 3000 {
				s := batch.NewSeries(nil)
				mu.Lock()
				if live[s.ID()] {
					t.Errorf("ID %d is given twice", s.ID())
				}
				live[s.ID()] = true
				mu.Unlock()
				mine = append(mine, s)
				if i%3 == 0 {
					old := mine[len(mine)/2]
					mine = slices.Delete(mine, len(mine)/2, len(mine)/2+1)
					mu.Lock()
					delete(live, old.ID())
					mu.Unlock()
					old.Release()
				}
			}
			for _, s := range mine {
				mu.Lock()
				delete(live, s.ID())
				mu.Unlock()
				s.Release()
			}
		})
	}
	wg.Wait()
}

func TestBuilder(t *testing.T) {
	s := batch.FromLabels(labels.FromStrings("__name__", "up", "job", "api"))
	var b batch.Builder
	b.Reset(s)
	if b.Series(s) != s || !b.Matches(s) {
		t.Error("unchanged labels gave another handle")
	}
	b.Set("job", "web")
	b.Set("zone", "1")
	b.Set("area", "2")
	b.Set("__name__", "")
	b.Set("gone", "")
	if got := fmt.Sprint(b.Labels()); got != "[{area 2} {job web} {zone 1}]" {
		t.Errorf("got %s", got)
	}
	if b.Get("job") != "web" || b.Get("__name__") != "" {
		t.Errorf("got %q and %q", b.Get("job"), b.Get("__name__"))
	}
	d := b.Series(s)
	if d.Source() != s || d.String() != `{area="2",job="web",zone="1"}` {
		t.Errorf("got %v from %v", d, d.Source())
	}
	if b.Matches(s) || !b.Matches(d) {
		t.Error("Matches is wrong about other labels")
	}
	b.Set("zone", "") // a prefix of d's labels
	if b.Matches(d) {
		t.Error("fewer labels match")
	}
	b.Reset(nil)
	if len(b.Labels()) != 0 || b.Series(nil).String() != "{}" {
		t.Errorf("a reset builder has %v", b.Labels())
	}
	// A handle does not retain memory of the builder.
	if d.Label("job") != "web" {
		t.Error("Reset changed a series")
	}
}

// Builder behaves like a map.
func TestBuilderAgainstMap(t *testing.T) {
	r := newRandom(3)
	var b batch.Builder
	want := map[string]string{}
	for range 5000 {
		n, v := pick(r, oddStrings), pick(r, oddStrings)
		b.Set(n, v)
		if v == "" {
			delete(want, n)
		} else {
			want[n] = v
		}
		got := map[string]string{}
		for _, l := range b.Labels() {
			got[l.Name] = l.Value
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("after %q=%q (-want +got):\n%s", n, v, diff)
		}
		if !slices.IsSortedFunc(b.Labels(), func(a, b batch.Label) int {
			if a.Name < b.Name {
				return -1
			}
			return 1
		}) {
			t.Fatalf("not sorted: %v", b.Labels())
		}
	}
}

func ExampleBuilder() {
	up := batch.FromLabels(labels.FromStrings("__name__", "up", "job", "api"))
	var b batch.Builder
	b.Reset(up)
	b.Set("region", "eu")
	fmt.Println(b.Series(up))
	// Output: up{job="api",region="eu"}
}

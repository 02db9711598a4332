package batch_test

import (
	"sync"
	"testing"
	"time"

	"github.com/weir-run/weir/engine/batch"
)

var epoch = time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC)

func TestInterner(t *testing.T) {
	in := batch.NewInterner(time.Minute)
	up := []batch.Label{{Name: batch.NameLabel, Value: "up"}}
	meta := &batch.Metadata{Help: "h"}
	a := in.Intern(up, meta, epoch)
	if b := in.Intern(up, nil, epoch); a != b || a.Meta() != meta || a.Source() != nil {
		t.Errorf("got %p and %p with %v, %v", a, b, a.Meta(), a.Source())
	}
	up[0].Value = "down" // the labels were copied
	if a.Name() != "up" {
		t.Error("the handle changed with the caller's labels")
	}
	if b := in.Intern(up, nil, epoch); a == b || in.Len() != 2 {
		t.Errorf("other labels got the same handle; %d known", in.Len())
	}
	in.Clear()
	if in.Len() != 0 || !a.Released() {
		t.Errorf("after Clear: %d known, released %v", in.Len(), a.Released())
	}
}

func TestInternerTTL(t *testing.T) {
	in := batch.NewInterner(time.Minute)
	ls := func(name string) []batch.Label { return []batch.Label{{Name: batch.NameLabel, Value: name}} }
	used, idle := in.Intern(ls("used"), nil, epoch), in.Intern(ls("idle"), nil, epoch)
	for s := 10; s <= 90; s += 10 {
		if got := in.Intern(ls("used"), nil, epoch.Add(time.Duration(s)*time.Second)); got != used {
			t.Fatalf("after %d s: a used handle was replaced", s)
		}
	}
	if used.Released() || !idle.Released() || in.Len() != 1 {
		t.Errorf("used released %v, idle released %v, %d known", used.Released(), idle.Released(), in.Len())
	}
	if got := in.Intern(ls("idle"), nil, epoch.Add(91*time.Second)); got == idle {
		t.Error("a released handle came back")
	}

	forever := batch.NewInterner(0)
	s := forever.Intern(ls("s"), nil, epoch)
	forever.Intern(ls("t"), nil, epoch.Add(10000*time.Hour))
	if s.Released() {
		t.Error("a ttl of zero ended")
	}
}

func TestInternerConcurrent(t *testing.T) {
	in := batch.NewInterner(time.Second)
	got := make([][]*batch.Series, 4)
	var wg sync.WaitGroup
	for w := range got {
		wg.Go(func() {
			for i := range 2000 {
				got[w] = append(got[w], in.Intern([]batch.Label{{Name: "i", Value: string(rune('a' + i%500))}}, nil, epoch))
			}
		})
	}
	wg.Wait()
	for w := range got {
		for i := range got[w] {
			if got[w][i] != got[0][i] {
				t.Fatalf("record %d got two handles", i)
			}
		}
	}
	if in.Len() != 500 {
		t.Errorf("%d known, want 500", in.Len())
	}
}

func TestInternerLookup(t *testing.T) {
	in := batch.NewInterner(time.Minute)
	s := in.Intern([]batch.Label{{Name: batch.NameLabel, Value: "up"}}, nil, epoch)
	wire := s.AppendWire(nil)
	for i := 1; i < 5; i++ { // a look-up counts as a use
		if got := in.Lookup(batch.Hash(wire), wire, epoch.Add(time.Duration(i)*50*time.Second)); got != s {
			t.Fatalf("got %v, want %v", got, s)
		}
	}
	if n := testing.AllocsPerRun(100, func() { in.Lookup(batch.Hash(wire), wire, epoch) }); n != 0 {
		t.Errorf("a look-up allocates %v times", n)
	}
	if got := in.Lookup(batch.Hash(wire[1:]), wire[1:], epoch); got != nil {
		t.Errorf("got %v for bytes that nobody interned", got)
	}
	var all []*batch.Series
	in.Each(func(s *batch.Series) { all = append(all, s) })
	if len(all) != 1 || all[0] != s {
		t.Errorf("got %v, want the one series", all)
	}
	if got := in.Lookup(batch.Hash(wire), wire, epoch.Add(time.Hour)); got != nil || !s.Released() {
		t.Errorf("got %v an hour later, want it to be forgotten", got)
	}
}

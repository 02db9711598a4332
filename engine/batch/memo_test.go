package batch_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/weir-run/weir/engine/batch"
)

func TestMemo(t *testing.T) {
	var m batch.Memo[string]
	a, b := named("a"), named("b")
	if _, ok := m.Get(a); ok {
		t.Error("an empty memo knows something")
	}
	if got := m.Put(a, "first"); got != "first" {
		t.Errorf("got %q", got)
	}
	if got := m.Put(a, "second"); got != "first" {
		t.Errorf("the second writer won: %q", got)
	}
	if v, ok := m.Get(a); v != "first" || !ok {
		t.Errorf("got %q, %v", v, ok)
	}
	if _, ok := m.Get(b); ok {
		t.Error("knows a series nobody put")
	}
}

func TestMemoMissesAnotherSeriesAtTheID(t *testing.T) {
	var m batch.Memo[string]
	var evicted []string
	m.Evicted = func(s *batch.Series, v string) { evicted = append(evicted, s.Name()+" "+v) }
	a := named("a")
	m.Put(a, "old")
	a.Release()
	b := named("b")
	if b.ID() != a.ID() {
		t.Fatalf("ID %d was not reused, got %d", a.ID(), b.ID())
	}
	if v, ok := m.Get(b); ok {
		t.Errorf("a reused ID answers %q", v)
	}
	if got := m.Put(b, "new"); got != "new" {
		t.Errorf("got %q", got)
	}
	if _, ok := m.Get(a); ok {
		t.Error("the old series still answers")
	}
	if fmt.Sprint(evicted) != "[a old]" {
		t.Errorf("evicted %v", evicted)
	}
}

func TestMemoSweepAndClear(t *testing.T) {
	var m batch.Memo[int]
	m.Sweep(nil)
	var all []*batch.Series
	for i := range 5000 { // several chunks
		s := named("s")
		all = append(all, s)
		m.Put(s, i)
	}
	for i, s := range all {
		if i%2 == 0 {
			s.Release()
		}
	}
	swept := map[int]bool{}
	m.Sweep(func(s *batch.Series, v int) {
		if all[v] != s || swept[v] {
			t.Errorf("swept %d of %v", v, s)
		}
		swept[v] = true
	})
	if len(swept) != 2500 || swept[1] {
		t.Errorf("swept %d entries", len(swept))
	}
	for i, s := range all {
		if _, ok := m.Get(s); ok != (i%2 == 1) {
			t.Fatalf("entry %d: known %v", i, ok)
		}
	}
	n := 0
	m.Clear(func(*batch.Series, int) { n++ })
	if _, ok := m.Get(all[1]); ok || n != 2500 {
		t.Errorf("cleared %d entries, one left: %v", n, ok)
	}
	for i, s := range all {
		if i%2 == 1 {
			s.Release()
		}
	}
}

// Every concurrent writer gets the value of the first one, even while the memo
// grows and is swept.
func TestMemoConcurrent(t *testing.T) {
	var m batch.Memo[*int]
	const n = 4000
	all := make([]*batch.Series, n)
	for i := range all {
		all[i] = named("s")
	}
	got := make([][]*int, 4)
	var wg sync.WaitGroup
	for w := range got {
		wg.Go(func() {
			mine := make([]*int, n)
			for i := range n {
				if w%2 == 1 {
					i = n - 1 - i
				}
				v, ok := m.Get(all[i])
				if !ok {
					v = m.Put(all[i], new(int))
				}
				mine[i] = v
				if i%1000 == 0 {
					m.Sweep(func(*batch.Series, *int) { t.Error("a living series was swept") })
				}
			}
			got[w] = mine
		})
	}
	wg.Wait()
	for i, s := range all {
		for w := range got {
			if got[w][i] != got[0][i] {
				t.Fatalf("series %d: writers have two values", i)
			}
		}
		s.Release()
	}
}

func ExampleMemo() {
	var shouted batch.Memo[string]
	describe := func(s *batch.Series) string {
		if v, ok := shouted.Get(s); ok {
			return v
		}
		return shouted.Put(s, s.Name()+"!")
	}
	up := batch.NewSeries([]batch.Label{{Name: batch.NameLabel, Value: "up"}})
	fmt.Println(describe(up), describe(up))
	// Output: up! up!
}

package state_test

import (
	"fmt"
	"testing"

	"github.com/weir-run/weir/scripting/state"
)

func manyKeys() []string {
	ks := make([]string, 10_000)
	for i := range ks {
		ks[i] = fmt.Sprintf("http_requests_total/api/%d", i)
	}
	return ks
}

func BenchmarkCounterAdd(b *testing.B) {
	f := func(name string, change ...func(*state.Decl)) {
		b.Run(name, func(b *testing.B) {
			c := newCollection(decl("n", state.Counter, change...))
			ks := manyKeys()
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				c.Add(ks[i%len(ks)], 1, 0)
			}
		})
	}
	f("plain")
	f("ttl", ttl(1e9))
	f("persistent", persistent)
}

func BenchmarkSetHas(b *testing.B) {
	c := newCollection(decl("s", state.Set))
	ks := manyKeys()
	for _, k := range ks {
		c.Insert(k, 0)
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		if !c.Has(ks[i%len(ks)], 0) {
			b.Fatal("not there")
		}
	}
}

func BenchmarkLRUSetEvicting(b *testing.B) {
	c := newCollection(decl("s", state.LRU, limit(1000)))
	ks := manyKeys()
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		c.Set(ks[i%len(ks)], num(1), 0)
	}
}

// BenchmarkFlush measures the cost of a batch whose script changed the given
// number of 10,000 keys.
func BenchmarkFlush(b *testing.B) {
	f := func(changes int) {
		b.Run(fmt.Sprint(changes), func(b *testing.B) {
			s := state.New(state.Options{Node: "n", Dir: b.TempDir(), Logger: quiet})
			p := s.Plan([]state.Decl{decl("n", state.Counter, persistent)}, 1, false, 0)
			p.Commit(0)
			ks := manyKeys()
			s.Flush()
			b.ReportAllocs()
			for n := 0; b.Loop(); {
				for range changes {
					p.Collections[0].Add(ks[n%len(ks)], 1, 0)
					n++
				}
				s.Flush()
			}
			s.Close()
		})
	}
	f(1)
	f(100)
	f(1000)
}

func newCollection(d state.Decl) *state.Collection {
	return state.New(state.Options{Logger: quiet}).Plan([]state.Decl{d}, 1, false, 0).Collections[0]
}

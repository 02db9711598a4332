package file

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// TestIndex: lookups by path and identity have the same results as a scan, after
// all changes of the positions and after a restart.
func TestIndex(t *testing.T) {
	dir := t.TempDir()
	open := func() *positions {
		s, _, damage, err := openPositions(dir, "boot", time.Now, func(err error) { t.Error(err) })
		if damage != nil || err != nil {
			t.Fatal(damage, err)
		}
		return s
	}
	s := open()
	rnd := rand.New(rand.NewPCG(1, 2))
	place := func(p *position) { p.path, p.id = fmt.Sprint(rnd.IntN(5)), identity{1, rnd.Uint64N(5)} }
	check := func() {
		t.Helper()
		every := func(*position) bool { return true }
		for i := range 5 {
			path, id := fmt.Sprint(i), identity{1, uint64(i)}
			if got, want := s.ofPath(path, every), s.selectPositions(func(p *position) bool { return p.path == path }); !slices.Equal(got, want) {
				t.Fatalf("path %s: got %v, want %v", path, got, want)
			}
			if got, want := s.ofFile(id, every), s.selectPositions(func(p *position) bool { return p.id == id }); !slices.Equal(got, want) {
				t.Fatalf("file %v: got %v, want %v", id, got, want)
			}
		}
	}
	for range 500 {
		all := s.selectPositions(func(*position) bool { return true })
		switch what := rnd.IntN(4); {
		case what == 0 || len(all) == 0:
			p := &position{}
			place(p)
			s.add(p)
		case what == 1 && len(all) > 10:
			p := all[rnd.IntN(len(all))]
			s.remove(p)
			s.change(p, place) // changing a removed position has no effect
		default:
			s.change(all[rnd.IntN(len(all))], place)
		}
		check()
	}
	if err := s.close(); err != nil {
		t.Fatal(err)
	}
	s = open()
	check()
	if err := s.close(); err != nil {
		t.Fatal(err)
	}
}

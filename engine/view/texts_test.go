package view

import (
	"fmt"
	"strings"
	"testing"
	"unsafe"
)

func TestTexts(t *testing.T) {
	var x Texts
	large := strings.Repeat("0123456789", 1000)
	inside := func(p *string) bool {
		from, at := unsafe.StringData(large), unsafe.StringData(*p)
		d := uintptr(unsafe.Pointer(at)) - uintptr(unsafe.Pointer(from))
		return d < uintptr(len(large))
	}
	// Short copies, and recognises a string that repeats.
	first, second, third := x.Short(large[:5]), x.Short(large[10:15]), x.Short(large[20:25])
	if *first != "01234" || *second != "01234" || third != second || inside(first) || inside(second) {
		t.Errorf("got %q, %q and %q, the last two at %p and %p", *first, *second, *third, second, third)
	}
	// Many strings that never repeat stay unchanged, even after a long time.
	got := map[string]*string{}
	for i := range 5000 {
		s := fmt.Sprintf("%0*d", 1+i%700, i)
		got[s] = x.Short(s)
	}
	for s, p := range got {
		if *p != s {
			t.Fatalf("got %q for %q", *p, s)
		}
	}
	if p := x.Short(""); *p != "" {
		t.Errorf("got %q for nothing", *p)
	}
	// Long does not copy, and its strings are not in a block of copies.
	long := x.Long(large[3:4000])
	if !inside(long) || *long != large[3:4000] {
		t.Error("a long text is not itself")
	}
	if len(x.others) != 1 {
		t.Errorf("%d others", len(x.others))
	}
	if x.Forget(); x.others != nil || *long != large[3:4000] {
		t.Error("what is forgotten is kept, or lost")
	}
}

// TestTextsAllocations measures that strings that never repeat are cheap.
func TestTextsAllocations(t *testing.T) {
	var x Texts
	var names []string
	for i := range 1000 {
		names = append(names, fmt.Sprintf("u-%06d", i))
	}
	i := 0
	if n := testing.AllocsPerRun(1000, func() { x.Short(names[i%1000]); i++ }); n > 0.1 {
		t.Errorf("%.2f allocations for a string", n)
	}
	x.Short("info")
	x.Short("info")
	if n := testing.AllocsPerRun(1000, func() { x.Short("info") }); n != 0 {
		t.Errorf("%.2f allocations for one that is known", n)
	}
}

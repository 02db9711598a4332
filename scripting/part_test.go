package scripting

import (
	"strings"
	"testing"
)

// TestParts: a short substring is a copy, even if it is taken in several steps.
func TestParts(t *testing.T) {
	long := strings.Repeat("x", 10_000)
	f := func(name, text string, ends []int, shared bool) {
		t.Helper()
		var p Parts
		part := text
		for _, end := range ends {
			part = p.Of(part[:end], part)
		}
		if got := sharesMemory(part, text); got != shared {
			t.Errorf("%s: shared is %t, want %t", name, got, shared)
		}
		if part != text[:len(part)] {
			t.Errorf("%s: got %q", name, part)
		}
	}
	f("short part", long, []int{10}, false)
	f("long part", long, []int{6000}, true)
	f("all", long, []int{10_000}, true)
	f("in two steps", long, []int{6000, 4000}, false)
	f("in many steps", long, []int{7000, 5500, 4000, 3000, 2000, 1500, 1000, 600, 400, 250, 150, 80}, false)
	f("of a short text", long[:200], []int{10}, true)

	// Substrings of several texts alternately.
	var p Parts
	var parts, texts []string
	for i := range len(p.whole) {
		texts = append(texts, strings.Repeat(string(rune('a'+i)), 1000))
		parts = append(parts, p.Of(texts[i][:600], texts[i]))
	}
	for i, text := range texts {
		if part := p.Of(parts[i][:400], parts[i]); sharesMemory(part, text) {
			t.Errorf("text %d: the part is shared", i)
		}
	}
	if other := "another text"; p.Of(other, long) != other {
		t.Error("a text that is no part was changed")
	}
	if p.Forget(); p.Long(parts[0][:100]) || !p.Long(parts[0]) {
		t.Error("it is wrong about what is long")
	}
}

package scripting

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestProfileSamples(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, got := &Profile{}, make(chan []ProfileSample)
		go func() { got <- p.Collect(t.Context(), time.Second) }()
		time.Sleep(105 * time.Millisecond) // in the bubble
		if n := p.Ticks(); n != 10 {
			t.Errorf("after 105 ms: %d ticks, want 10", n)
		}
		stack := []Frame{{"a.lua", 2, "inner"}, {"a.lua", 9, "metrics"}}
		p.Add(2, stack)
		stack[0].Line = 3
		p.Add(1, stack)
		stack[0].Line = 2
		p.Add(3, stack)
		p.Add(1, nil)
		if !p.OnEnd(func() { p.Add(1, stack[1:]) }) {
			t.Error("the profile has ended too early")
		}
		want := []ProfileSample{
			{[]Frame{{"a.lua", 2, "inner"}, {"a.lua", 9, "metrics"}}, 5},
			{[]Frame{{"a.lua", 3, "inner"}, {"a.lua", 9, "metrics"}}, 1},
			{[]Frame{{"a.lua", 9, "metrics"}}, 1},
		}
		if d := cmp.Diff(want, <-got); d != "" {
			t.Errorf("samples (-want +got):\n%s", d)
		}
		p.Add(1, stack)
		if p.samples != nil || p.OnEnd(func() { t.Error("called after the end") }) {
			t.Error("the profile goes on after its end")
		}
	})
}

// TestProfileLimits: a script cannot make a profile large.
func TestProfileLimits(t *testing.T) {
	p := &Profile{}
	var deep []Frame
	for i := range 1000 {
		deep = append(deep, Frame{"a.lua", i, "f"})
	}
	p.Add(1, deep)
	for i := range maxProfileStacks {
		p.Add(1, []Frame{{"a.lua", i % 10, "g"}, {"a.lua", i, "f"}})
	}
	var count int64
	for _, s := range p.samples {
		count += s.Count
		if len(s.Stack) > maxProfileDepth {
			t.Errorf("a stack has %d frames", len(s.Stack))
		}
	}
	if len(p.samples) > maxProfileStacks+10 || count != maxProfileStacks+1 {
		t.Errorf("%d stacks with %d samples, want at most %d with %d", len(p.samples), count, maxProfileStacks+10, maxProfileStacks+1)
	}
}

package engine_test

import (
	"math"
	"regexp"
	"testing"
	"time"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/engine/flow"
)

func TestEqual(t *testing.T) {
	f := func(a, b any, want bool) {
		t.Helper()
		if got := engine.Equal(a, b); got != want {
			t.Errorf("Equal(%v, %v) = %v", a, b, got)
		}
		if got := engine.Equal(b, a); got != want {
			t.Errorf("Equal(%v, %v) = %v", b, a, got)
		}
	}
	type inner struct {
		m map[string][]int
		p *int
		x any
	}
	one, uno, two := 1, 1, 2
	f(inner{map[string][]int{"a": {1}}, &one, "x"}, inner{map[string][]int{"a": {1}}, &uno, "x"}, true)
	f(inner{map[string][]int{"a": {1}}, &one, "x"}, inner{map[string][]int{"a": {2}}, &uno, "x"}, false)
	f(inner{map[string][]int{"a": {1}}, nil, nil}, inner{map[string][]int{"b": {1}}, nil, nil}, false)
	f(inner{p: &one}, inner{p: &two}, false)
	f(inner{p: &one}, inner{}, false)
	f(inner{x: 1}, inner{x: "1"}, false)
	f(inner{x: 1}, inner{}, false)
	f([]int(nil), []int{}, false)
	f(map[string]int(nil), map[string]int{}, false)
	f([2]int{1, 2}, [2]int{1, 2}, true)
	f(nil, nil, true)
	f(nil, 1, false)
	f(1, int64(1), false)
	f(math.NaN(), math.NaN(), true)
	f(0.0, math.Copysign(0, -1), false)

	// A time is the same in another zone, a pattern in another compilation.
	now := time.Now()
	f(now, now.UTC().Round(0), true)
	f(regexp.MustCompile("a+"), regexp.MustCompile("a+"), true)
	f(regexp.MustCompile("a+"), regexp.MustCompile("a*"), false)

	// Receivers are equal when they are one.
	r, s := flow.NewReceiver("x", 0, nil, nil), flow.NewReceiver("x", 0, nil, nil)
	f([]*flow.Receiver{r}, []*flow.Receiver{r}, true)
	f([]*flow.Receiver{r}, []*flow.Receiver{s}, false)
	f(r, (*flow.Receiver)(nil), false)

	// Slices that share memory are equal if they have the same length.
	long := []map[string]float64{{"a": math.NaN()}, {"a": 2}}
	f(long, long, true)
	f(long, []map[string]float64{long[0], {"a": 2}}, true)
	f(long, long[:1], false)
	f(long, []map[string]float64{long[0], {"a": 3}}, false)

	// Closures cannot be compared.
	f(func() {}, func() {}, false)
	f((func())(nil), (func())(nil), true)

	// Comparing values that contain themselves ends.
	type ring struct{ next *ring }
	a, b := &ring{}, &ring{}
	a.next, b.next = a, b
	f(a, a, true)
	f(a, b, false)
}

package relabel_test

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/component/componenttest"
	"github.com/weir-run/weir/engine/flow"
	"github.com/weir-run/weir/engine/flow/flowtest"
	"github.com/weir-run/weir/engine/rule"
)

// ledger stores the last sample of each series, as a database would show it.
type ledger struct {
	mu      sync.Mutex
	alive   map[string]bool
	refuses func() bool
}

func (l *ledger) ConsumeMetrics(_ context.Context, b *batch.Metrics) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.refuses() {
		return flowtest.ErrRefused
	}
	for i, s := range b.Series {
		l.alive[s.String()] = !batch.IsStale(b.V[i])
	}
	return nil
}

func (l *ledger) list() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Sorted(maps.Keys(maps.Collect(func(yield func(string, bool) bool) {
		for s, alive := range l.alive {
			if alive && !yield(s, true) {
				return
			}
		}
	})))
}

// TestChangesUnderLoad changes the rules while sources send and one of two
// receivers refuses some batches. In the end, the live series are those of the
// last rules, however batches and changes were interleaved.
func TestChangesUnderLoad(t *testing.T) {
	const sources, perSource, batches = 4, 20, 200
	refuse := rand.New(rand.NewPCG(1, 1)) // guarded by the ledger's lock
	steady := &ledger{alive: map[string]bool{}, refuses: func() bool { return false }}
	flaky := &ledger{alive: map[string]bool{}, refuses: func() bool { return refuse.IntN(10) == 0 }}
	var to []*flow.Receiver
	for i, l := range []*ledger{steady, flaky} {
		r := flow.NewReceiver(fmt.Sprint("ledger", i), batch.SignalMetrics, nil, nil)
		r.Set(l)
		to = append(to, r)
	}
	args := func(rules ...*rule.Rule) any {
		a := arguments(to[0], rules...)
		a.ForwardTo = to
		return a
	}
	c := build(t, componenttest.New(t, "r"), arguments(to[0]))
	if err := c.Update(args()); err != nil {
		t.Fatal(err)
	}

	send := func(src int, ss []*batch.Series, ms int64) error {
		b := at(ms, ss...)
		b.Source = uint64(src + 1)
		return c.ConsumeMetrics(t.Context(), b)
	}
	series := make([][]*batch.Series, sources)
	var want []string
	for i := range series {
		for j := range perSource {
			s := batch.NewSeries([]batch.Label{{Name: "__name__", Value: fmt.Sprint("m", j)}, {Name: "source", Value: fmt.Sprint(i)}})
			series[i] = append(series[i], s)
			want = append(want, fmt.Sprintf(`m%d{source="%d",v="last"}`, j, i))
		}
	}
	slices.Sort(want)

	var wg sync.WaitGroup
	for i, ss := range series {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(7, uint64(i)))
			for n := range int64(batches) {
				b := at(n, ss...)
				b.Source = uint64(i + 1)
				// Some series end and return in the next batch.
				ends := r.IntN(2) == 0
				for row := range b.V {
					if ends && r.IntN(5) == 0 {
						b.V[row] = batch.Stale()
					}
				}
				err := c.ConsumeMetrics(t.Context(), b)
				for err != nil {
					p, ok := err.(*flow.Partial)
					if !ok {
						t.Errorf("got %v, want a *flow.Partial", err)
						return
					}
					// A source may give up, except for its own markers.
					if !ends && r.IntN(2) == 0 {
						break
					}
					err = p.Retry(t.Context())
				}
			}
		})
	}
	done := make(chan struct{})
	go func() {
		wg.Wait()
		close(done)
	}()
	r := rand.New(rand.NewPCG(3, 3))
	for n, running := 0, true; running; n++ {
		rules := []*rule.Rule{set("v", fmt.Sprint(n%7))}
		if r.IntN(3) == 0 {
			rules = append(rules, drop(rule.Regexp(fmt.Sprintf("m%d.*", r.IntN(3)))))
		}
		if err := c.Update(args(rules...)); err != nil {
			t.Fatal(err)
		}
		select {
		case <-done:
			running = false
		default:
		}
	}

	if err := c.Update(args(set("v", "last"))); err != nil {
		t.Fatal(err)
	}
	flaky.refuses = func() bool { return false }
	for i, ss := range series {
		if err := send(i, ss, batches); err != nil {
			t.Fatal(err)
		}
	}
	for name, l := range map[string]*ledger{"accepts": steady, "refuses at times": flaky} {
		if diff := cmp.Diff(want, l.list()); diff != "" {
			t.Errorf("alive at the receiver that %s (-want +got):\n%s", name, diff)
		}
	}
}

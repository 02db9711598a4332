package rule_test

import (
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/relabel"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/rule"
)

var (
	names  = []string{"__name__", "a", "b", "c", "instance", "job", "__meta_x", "__tmp"}
	values = []string{"", "a", "A", "job", "x;y", "a\nb", "ünï", "10.0.0.1:9100", "42", "http_requests_total"}
)

func pick[T any](r *rand.Rand, from []T) T { return from[r.IntN(len(from))] }

// randomRule returns a valid rule with the given action.
func randomRule(r *rand.Rand, action relabel.Action) *rule.Rule {
	for {
		ru := with(func(ru *rule.Rule) { ru.Action = rule.Action(action) })
		switch action {
		case relabel.LabelDrop, relabel.LabelKeep:
		default:
			for range r.IntN(4) {
				ru.SourceLabels = append(ru.SourceLabels, pick(r, names))
			}
		}
		switch action {
		case relabel.LabelMap:
			ru.Replacement = pick(r, []string{"$1", "x_$1", "${1}", "job", "__name__"})
		case relabel.Keep, relabel.Drop, relabel.LabelDrop, relabel.LabelKeep:
		case relabel.Replace:
			ru.TargetLabel = pick(r, append([]string{"$1", "x_${1}", "${2}_y"}, names...))
			ru.Replacement = pick(r, []string{"$1", "", "fix", "${1}-${2}", "$$1"})
		default:
			ru.TargetLabel = pick(r, names)
		}
		if action == relabel.HashMod {
			ru.Modulus = uint64(1 + r.IntN(8))
		}
		if action != relabel.KeepEqual && action != relabel.DropEqual {
			ru.Regex = pick(r, []rule.Regexp{"(.*)", "", "(.+)", "(.*?);(.*)", "a|job", "[a-z]+", "__(.*)", "(?i)(A)|b", "(.)(.*)"})
		}
		if ru.Validate() == nil {
			return ru
		}
	}
}

func randomLabels(r *rand.Rand) labels.Labels {
	b := labels.NewBuilder(labels.EmptyLabels())
	for range r.IntN(7) {
		b.Set(pick(r, names), pick(r, values))
	}
	return b.Labels()
}

// process is Prometheus's own relabelling of one set of labels.
func process(ls labels.Labels, cfgs []*relabel.Config) (labels.Labels, bool) {
	b := labels.NewBuilder(ls)
	keep := relabel.ProcessBuilder(b, cfgs...)
	return b.Labels(), keep
}

// TestRelabelerIsProcess compares with Prometheus's own relabelling.
func TestRelabelerIsProcess(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	seen := map[relabel.Action]map[string]bool{}
	for round := range 4000 {
		var rules []*rule.Rule
		first := actions[round%len(actions)]
		rules = append(rules, randomRule(r, first))
		for range r.IntN(4) {
			rules = append(rules, randomRule(r, pick(r, actions)))
		}
		re := rule.NewRelabeler(rules)
		for range 10 {
			ls := randomLabels(r)
			s := batch.FromLabels(ls)
			want, keep := process(ls, rule.Configs(rules))
			got := re.Series(s)
			outcome := "changed"
			switch {
			case !keep || want.IsEmpty():
				outcome = "dropped"
				if got != nil {
					t.Fatalf("%s under %+v: got %s, want it dropped", ls, rules, got)
				}
			case got == nil:
				t.Fatalf("%s under %+v: dropped, want %s", ls, rules, want)
			case labels.Equal(want, ls):
				outcome = "same"
				if got != s {
					t.Fatalf("%s under %+v: got another handle with labels %s, want its own", ls, rules, got)
				}
			case !labels.Equal(want, got.PromLabels()) || got.Source() != s:
				t.Fatalf("%s under %+v: got %s of %v, want %s of its own", ls, rules, got, got.Source(), want)
			}
			if seen[first] == nil {
				seen[first] = map[string]bool{}
			}
			seen[first][outcome] = true
			if again := re.Series(s); again != got {
				t.Fatalf("%s under %+v: got another handle the second time", ls, rules)
			}
			s.Release()
		}
		re.Close()
	}
	for _, a := range actions {
		if len(seen[a]) < 2 {
			t.Errorf("%s: saw only the outcomes %v", a, seen[a])
		}
	}
}

func name(n string) *batch.Series {
	return batch.NewSeries([]batch.Label{{Name: "__name__", Value: n}})
}

func TestApplyShares(t *testing.T) {
	a, b := name("a"), name("b")
	in := &batch.Metrics{Source: 3, Series: []*batch.Series{a, b}, T: []int64{1, 2}, V: []float64{3, 4}}

	for _, rules := range [][]*rule.Rule{nil, {with(func(r *rule.Rule) { r.TargetLabel, r.Regex = "x", "never" })}} {
		if out, dropped := rule.NewRelabeler(rules).Apply(in); out != in || dropped != 0 {
			t.Errorf("%d rules that change nothing: got another batch, %d dropped", len(rules), dropped)
		}
	}

	out, dropped := rule.NewRelabeler([]*rule.Rule{with(func(r *rule.Rule) {
		r.SourceLabels, r.Regex, r.TargetLabel, r.Replacement = []string{"__name__"}, "b", "x", "y"
	})}).Apply(in)
	if dropped != 0 || out.Source != 3 || out.Series[0] != a || out.Series[1].String() != `b{x="y"}` {
		t.Errorf("got %v from source %d, %d dropped", out.Series, out.Source, dropped)
	}
	if &out.T[0] != &in.T[0] || &out.V[0] != &in.V[0] || in.Series[1] != b {
		t.Error("columns that did not change are not shared, or the input was written to")
	}
}

func TestApplyKeepsSparseColumns(t *testing.T) {
	h := &histogram.Histogram{Count: 1, Sum: 2}
	in := &batch.Metrics{
		Source: 3,
		Series: []*batch.Series{name("drop1"), name("hist"), name("drop2"), name("counter")},
		T:      []int64{1, 2, 3, 4},
		V:      []float64{1, 2, 3, batch.Stale()},
		Histograms: []batch.Histogram{
			{Row: 1, Int: h}, {Row: 2, Int: h},
		},
		Exemplars: []batch.Exemplar{{Row: 0, Value: 1}, {Row: 3, Value: 2}, {Row: 3, Value: 3}},
		Starts:    []batch.Start{{Row: 2, T: 9}, {Row: 3, T: 10}},
	}
	out, dropped := rule.NewRelabeler([]*rule.Rule{
		with(func(r *rule.Rule) { r.Action, r.SourceLabels, r.Regex = "drop", []string{"__name__"}, "drop.*" }),
		with(func(r *rule.Rule) { r.TargetLabel, r.Replacement = "x", "y" }),
	}).Apply(in)
	if dropped != 2 {
		t.Errorf("got %d rows dropped, want 2", dropped)
	}
	var got []string
	for _, s := range out.Series {
		got = append(got, s.String())
	}
	if diff := cmp.Diff([]string{`hist{x="y"}`, `counter{x="y"}`}, got); diff != "" {
		t.Errorf("series (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]int64{2, 4}, out.T); diff != "" {
		t.Errorf("T (-want +got):\n%s", diff)
	}
	if out.V[0] != 2 || !batch.IsStale(out.V[1]) {
		t.Errorf("got values %x, want 2 and the marker", out.V)
	}
	if diff := cmp.Diff([]batch.Histogram{{Row: 0, Int: h}}, out.Histograms); diff != "" {
		t.Errorf("histograms (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]batch.Exemplar{{Row: 1, Value: 2}, {Row: 1, Value: 3}}, out.Exemplars); diff != "" {
		t.Errorf("exemplars (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]batch.Start{{Row: 1, T: 10}}, out.Starts); diff != "" {
		t.Errorf("starts (-want +got):\n%s", diff)
	}
}

// TestReleased checks that the IDs of derived handles come back. A freed ID is
// the next one to be taken, which shows what was freed.
func TestReleased(t *testing.T) {
	addX := []*rule.Rule{with(func(r *rule.Rule) { r.TargetLabel, r.Replacement = "x", "y" })}
	freed := func(what string, d *batch.Series, by func()) {
		t.Helper()
		id := d.ID()
		by()
		s := name("next")
		defer s.Release()
		if s.ID() != id {
			t.Errorf("%s: ID %d of the derived handle did not come back", what, id)
		}
	}

	r := rule.NewRelabeler(addX)
	s := name("swept")
	d := r.Series(s)
	s.Release()
	freed("sweep", d, r.Sweep)

	r = rule.NewRelabeler(addX)
	d = r.Series(name("closed"))
	freed("close", d, r.Close)

	// The ID of a released source goes to another series before any sweep.
	r = rule.NewRelabeler([]*rule.Rule{with(func(r *rule.Rule) {
		r.SourceLabels, r.Regex, r.TargetLabel, r.Replacement = []string{"__name__"}, "old", "x", "y"
	})})
	s = name("old")
	d = r.Series(s)
	s.Release()
	other := name("new")
	if other.ID() != s.ID() {
		t.Fatalf("got ID %d, want that of the released series, %d", other.ID(), s.ID())
	}
	freed("eviction", d, func() { r.Series(other) })
}

func TestConcurrentFirstUse(t *testing.T) {
	r := rule.NewRelabeler([]*rule.Rule{with(func(r *rule.Rule) { r.TargetLabel, r.Replacement = "x", "y" })})
	for range 200 {
		s := name("a")
		got := make([]*batch.Series, 8)
		var wg sync.WaitGroup
		for i := range got {
			wg.Go(func() { got[i] = r.Series(s) })
		}
		wg.Wait()
		for _, g := range got {
			if g != got[0] || g.Source() != s {
				t.Fatal("callers got different handles for one series")
			}
		}
	}
}

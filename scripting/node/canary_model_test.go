package node_test

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/scripting/internal/registrytest"
)

var canarySeeds = flag.Int("canary-seeds", 4, "how many random sequences TestCanaryModel runs")

// modelVersion is a version of a script that sets the label v of each record to its
// mark, unless it fails, and counts the record.
type modelVersion struct {
	mark string // "" if it fails
	reg  component.Registration
}

// modelState says which versions process batches.
type modelState struct {
	stable *modelVersion
	canary *modelVersion // nil: there is none
}

// may reports whether a record may have the label v. inShare says that the canary gets
// the record.
func (s modelState) may(inShare bool, v string) bool {
	if inShare && s.canary != nil {
		return v == s.canary.mark || s.canary.mark == "" && v == s.stable.mark // it may have been rolled back
	}
	return v == s.stable.mark
}

// canaryModel saves, promotes and rolls back versions of a script while batches are
// sent, and knows which version must process which record.
type canaryModel struct {
	*harness
	rand    *rand.Rand
	mode    string
	saved   int
	attrs   string
	state   modelState
	trial   *candidate
	inShare map[string]bool // series that a canary has got
	other   map[string]bool // series that the running version got during one
	log     []string
}

const modelSeries, modelSources = 40, 3

func (m *canaryModel) fatal(format string, args ...any) {
	m.t.Helper()
	m.t.Fatalf("%s\nafter\n%s", fmt.Sprintf(format, args...), strings.Join(m.log, "\n"))
}

// script returns a new version. Those of a kind that fails do so before they count.
func (m *canaryModel) script(kind string) (v *modelVersion, src string) {
	m.saved++
	v = &modelVersion{mark: fmt.Sprint(m.saved)}
	first := map[string]string{
		"good": "", "slow": "ctx.sleep(0.05)", "failing": `error("broken")`,
		"crashing": "local function f() return 1 + f() end f()",
	}[kind]
	if kind == "failing" || kind == "crashing" {
		v.mark = ""
	}
	return v, fmt.Sprintf(`return weir.transform {
		state = { n = weir.state.counter{} },
		metrics = function(batch, ctx)
			%s
			batch:each(function(r) ctx.state.n:add("all", 1) r.labels.v = "%s" end)
		end,
	} -- %d`, first, v.mark, m.saved)
}

func (m *canaryModel) newAttrs() string {
	return canaryAttrs(fmt.Sprintf("share = 0.5\nfor = \"%dm\"", 1+m.rand.IntN(5)), m.mode)
}

// begin has a trial take the place of the one that runs, as the engine does.
func (m *canaryModel) begin(begin func() *candidate) {
	before := m.trial
	m.trial = begin()
	if before != nil {
		before.cancel()
	}
}

// step does something at random, while each source sends a batch or none does.
func (m *canaryModel) step() {
	before := m.state
	after := before
	do := func() {}
	broken := before.canary != nil && before.canary.mark == ""
	op := m.rand.IntN(10)
	switch {
	case op < 4:
		kind := []string{"good", "good", "slow", "failing", "crashing"}[m.rand.IntN(5)]
		v, src := m.script(kind)
		m.log = append(m.log, "save "+kind+" "+v.mark)
		after.canary = v
		do = func() {
			m.begin(func() *candidate { return m.try(src, m.attrs) })
			v.reg = m.trial.reg
		}
	case op == 4 && before.canary != nil:
		m.log = append(m.log, "rollback")
		after.canary = nil
		do = func() { m.decide("rollback", broken) }
	case op == 5 && before.canary != nil && !broken:
		m.log = append(m.log, "promote")
		after = modelState{stable: before.canary}
		do = func() { m.decide("promote", false) }
	case op == 6 && !broken:
		m.log = append(m.log, "wait")
		if before.canary != nil {
			after = modelState{stable: before.canary}
		}
		do = func() { pass(10 * time.Minute) }
	case op == 7:
		m.attrs = m.newAttrs()
		m.log = append(m.log, "arguments")
		do = func() {
			if m.trial != nil {
				m.begin(func() *candidate { return m.tryAgain(m.trial.reg, m.attrs) })
			}
			m.swap(before.stable.reg, m.attrs)
		}
	default:
		m.log = append(m.log, "send")
	}
	m.sink.Forget()
	var wg sync.WaitGroup
	sources := 0
	if op > 7 || m.rand.IntN(2) == 0 {
		sources = modelSources
	}
	for s := range sources {
		b := many(m.t, uint64(s+1), modelSeries)
		wg.Go(func() {
			if err := m.gate.ConsumeMetrics(context.Background(), at(b, int64(len(m.log))*1000)); err != nil {
				m.t.Errorf("a batch was refused: %v", err)
			}
		})
	}
	do()
	wg.Wait()
	synctest.Wait()
	during := after
	m.follow(&after, sources > 0)
	m.state = after
	m.check([]modelState{before, during, after}, sources)
}

// decide ends the canary by hand. gone says that it may have ended by itself.
func (m *canaryModel) decide(decision string, gone bool) {
	want := 200
	if gone {
		synctest.Wait()
		if !m.trial.running() {
			want = 409
		}
	}
	control(m.t, m.c, "POST", "/canary/"+decision, want)
}

// follow does what the engine does when a trial has ended.
func (m *canaryModel) follow(after *modelState, sent bool) {
	if m.trial == nil || m.trial.running() {
		return
	}
	c := m.trial
	m.trial = nil
	if c.rejection == nil {
		m.swap(c.reg, m.attrs)
		return
	}
	if after.canary != nil && after.canary.mark == "" && sent {
		after.canary = nil // its guard did not hold
	}
}

// check compares what has left with the states of the model during a step.
func (m *canaryModel) check(states []modelState, sources int) {
	m.t.Helper()
	before, after := states[0], states[len(states)-1]
	if (m.trial != nil) != (after.canary != nil) {
		m.fatal("there is a canary: %t, want %t", m.trial != nil, after.canary != nil)
	}
	out := m.sink.Batches()
	if len(out) != sources {
		m.fatal("%d batches left, want %d", len(out), sources)
	}
	for _, b := range out {
		got := versionsOf(b)
		if len(got) != modelSeries {
			m.fatal("%d series left, want %d", len(got), modelSeries)
		}
		for i, v := range b.V {
			if s := b.Series[i]; !batch.IsStale(v) && fmt.Sprint(v) != s.Label("i") {
				m.fatal("%s has value %v", s, v)
			}
		}
		for series, v := range got {
			byCanary := v != before.stable.mark && v != after.stable.mark
			if byCanary {
				m.inShare[series] = true
			} else if m.log[len(m.log)-1] == "send" && before.canary != nil && before.canary.mark != "" {
				m.other[series] = true
			}
			if m.inShare[series] && m.other[series] {
				m.fatal("series %s met both versions", series)
			}
			if !slices.ContainsFunc(states, func(s modelState) bool { return s.may(byCanary, v) }) {
				m.fatal("version %q has processed series %s", v, series)
			}
		}
	}
}

// TestCanaryModel plays random sequences of saves of good, slow, failing and crashing
// versions, promotions, rollbacks and changes of arguments, while batches are sent, and
// compares which version has processed which record with a model.
func TestCanaryModel(t *testing.T) {
	for seed := range *canarySeeds {
		for _, mode := range []string{`concurrency = "ordered"`, `concurrency = "single"`, "concurrency = \"partition\"\nby = [\"i\"]"} {
			timed(t, func(t *testing.T, n *harness) {
				m := &canaryModel{harness: n, rand: rand.New(rand.NewPCG(uint64(seed), 7)), mode: mode, inShare: map[string]bool{}, other: map[string]bool{}}
				m.attrs = m.newAttrs()
				v, src := m.script("good")
				n.save(src, m.attrs)
				v.reg = registrytest.Lookup(t, n.cat, "a.b")
				m.state.stable = v
				counted := 0
				for range 40 {
					m.step()
					for _, b := range n.sink.Batches() {
						for _, v := range versionsOf(b) {
							if v != "" {
								counted++
							}
						}
					}
				}
				if counted == 0 {
					return // nothing was sent
				}
				if got, want := control(t, n.c, "GET", "/state/n?key=all", 200), fmt.Sprintf("%d\n", counted); got != want {
					m.fatal("the versions have processed %s records, want %s", got, want)
				}
			})
		}
	}
}

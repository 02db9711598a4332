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

var (
	canarySeeds = flag.Int("canary-seeds", 12, "how many random sequences TestCanaryModel runs")
	canarySeed  = flag.Int("canary-seed", 0, "the first sequence that TestCanaryModel runs")
)

// modelVersion is a version of a script that counts each record and sets its label v, or
// its metadata v, to its mark, unless it is broken.
type modelVersion struct {
	mark string // "" if it is broken
	kind string // key of modelFaults
	reg  component.Registration
}

// modelState says which versions process batches.
type modelState struct {
	stable *modelVersion
	canary *modelVersion // nil: there is none
}

// canaryModel saves, promotes and rolls back versions of a script while batches are
// sent, and knows which version must process which record.
type canaryModel struct {
	*harness
	rand    *rand.Rand
	mode    string
	onError string
	series  int // of a batch, and streams
	saved   int
	looped  bool // a version has looped, which takes long
	attrs   string
	state   modelState
	trial   *candidate
	inShare map[string]bool            // records that a canary has got
	other   map[string]bool            // records that the running version got during one
	live    map[uint64]map[string]bool // series that have not ended, by source
	seen    int                        // batches of lines that have left before
	counted int                        // records that a version has counted
	log     []string
}

const modelSources = 3

func (m *canaryModel) fatal(format string, args ...any) {
	m.t.Helper()
	m.t.Fatalf("%s, on_error = %q, %d series: %s\nafter\n%s", m.mode, m.onError, m.series, fmt.Sprintf(format, args...), strings.Join(m.log, "\n"))
}

// may reports whether a state can produce the label v for a record. inShare says that
// the canary gets the record.
func (m *canaryModel) may(s modelState, inShare bool, v string) bool {
	if !inShare || s.canary == nil {
		return v == s.stable.mark
	}
	return v == s.canary.mark || m.bad(s) && v == s.stable.mark // it may have been rolled back
}

// bad reports whether a guard rolls the canary back as soon as it gets records.
func (m *canaryModel) bad(s modelState) bool {
	switch {
	case s.canary == nil:
		return false
	case s.canary.mark == "":
		return s.stable.mark != ""
	}
	return s.canary.kind == "slow" && s.stable.kind != "slow" && m.splits()
}

// splits reports whether the batches are large: they are split in mode parallel, and have
// enough records to judge the time for each.
func (m *canaryModel) splits() bool { return m.series > 1000 }

// modelFaults are what versions do, before they count.
var modelFaults = map[string]string{
	"good":     "",
	"slow":     "ctx.sleep(0.05)",
	"failing":  `error("broken")`,
	"crashing": "local function f() return 1 + f() end f()",
	"looping":  "while true do end",
	"flooding": `for i = 1, 1e9 do ctx.emit { name = "n", value = 1 } end`,
}

// script returns a new version.
func (m *canaryModel) script(kind string) (v *modelVersion, src string) {
	m.saved++
	v = &modelVersion{mark: fmt.Sprint(m.saved), kind: kind}
	if kind != "good" && kind != "slow" {
		v.mark = ""
	}
	return v, fmt.Sprintf(`
		local function count(batch, ctx, of, v)
			%s
			batch:each(function(r) ctx.state.n:add("all", 1) r[of].v = v end)
		end
		return weir.transform {
			state = { n = weir.state.counter{} },
			metrics = function(batch, ctx) count(batch, ctx, "labels", "%[2]s") end,
			logs = function(batch, ctx) count(batch, ctx, "metadata", "%[2]s") end,
		} -- %[3]d`, modelFaults[kind], v.mark, m.saved)
}

// newAttrs has a limit of time that stands for a number of instructions: in a bubble, no
// time passes in a call.
func (m *canaryModel) newAttrs() string {
	return canaryAttrs(fmt.Sprintf("share = 0.5\nfor = \"%dm\"", 1+m.rand.IntN(5)),
		fmt.Sprintf("%s\non_error = %q\nlimits {\ntime = \"1ms\"\nemit = 100\n}", m.mode, m.onError))
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
	bad := m.bad(before)
	op := m.rand.IntN(10)
	switch {
	case op < 4:
		kind := []string{"good", "good", "good", "slow", "slow", "failing", "crashing", "looping", "flooding"}[m.rand.IntN(9)]
		switch {
		case kind == "looping" && m.looped:
			kind = "failing"
		case (kind == "looping" || kind == "flooding") && m.onError == "hold":
			kind = "crashing" // records that exceed a limit go to the quarantine
		case kind == "looping":
			m.looped = true
		}
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
		do = func() { m.decide("rollback", bad) }
	case op == 5 && before.canary != nil && (before.canary.mark != "" || m.onError != "hold" && before.canary.kind != "looping"):
		m.log = append(m.log, "promote")
		do = func() {
			if after.canary = nil; m.decide("promote", bad) {
				after.stable = before.canary
			}
		}
	case op == 6 && !bad && (m.onError != "hold" || before.canary == nil || before.canary.mark != ""):
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
	m.seen = len(m.sink.Logs())
	var wg sync.WaitGroup
	samples, lines := 0, 0
	if op > 7 || m.rand.IntN(2) == 0 {
		for s := range modelSources {
			send := func() error { return m.gate.ConsumeMetrics(context.Background(), m.samples(s)) }
			if m.rand.IntN(3) == 0 {
				send = func() error { return m.gate.ConsumeLogs(context.Background(), m.lines(s)) }
				lines++
			} else {
				samples++
			}
			wg.Go(func() {
				if err := send(); err != nil {
					m.t.Errorf("a batch was refused: %v", err)
				}
			})
		}
	}
	began := time.Now()
	do()
	wg.Wait()
	if waited := time.Since(began); op > 7 && waited >= time.Second {
		m.fatal("a batch waited %s", waited)
	}
	synctest.Wait()
	during := after
	m.follow(&after, samples+lines > 0)
	m.state = after
	s, l := len(m.sink.Batches()), len(m.sink.Logs())-m.seen
	if s > samples || l > lines || m.onError != "drop" && (s < samples || l < lines) {
		m.fatal("%d and %d batches left, want %d and %d", s, l, samples, lines)
	}
	m.check([]modelState{before, during, after})
	if op > 7 && m.trial != nil && m.bad(after) {
		m.fatal("the canary was not rolled back")
	}
}

// samples is a batch of a source: the value of a series is its label i.
func (m *canaryModel) samples(source int) *batch.Metrics {
	return at(many(m.t, uint64(source+1), m.series), int64(len(m.log))*1000)
}

// lines is a batch of a source, with two lines of each stream.
func (m *canaryModel) lines(source int) *batch.Logs {
	var b strings.Builder
	for line := range 2 {
		for i := range m.series {
			fmt.Fprintf(&b, "{i=\"%d\"} %d\n", i, line)
		}
	}
	in := lines(m.t.(*testing.T), b.String())
	in.Source = uint64(source + 1)
	return in
}

// decide ends the canary by hand, and reports whether that was done. gone says that it may
// have ended by itself.
func (m *canaryModel) decide(decision string, gone bool) bool {
	want := 200
	if gone {
		synctest.Wait()
		if !m.trial.running() {
			want = 409
		}
	}
	control(m.t, m.c, "POST", "/canary/"+decision, want)
	return want == 200
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
	if sent && m.bad(*after) {
		after.canary = nil // its guard did not hold
	}
}

// check compares what has left with the states of the model during a step.
func (m *canaryModel) check(states []modelState) {
	m.t.Helper()
	after := states[len(states)-1]
	if (m.trial != nil) != (after.canary != nil) {
		m.fatal("there is a canary: %t, want %t", m.trial != nil, after.canary != nil)
	}
	for _, b := range m.sink.Batches() {
		got, now := map[string]string{}, map[string]bool{}
		live := m.live[b.Source]
		for i, v := range b.V {
			s := b.Series[i]
			id := s.Label("i") + " " + s.Label("v")
			switch {
			case batch.IsStale(v) && !live[id]:
				m.fatal("%s ends, and was not there", s)
			case batch.IsStale(v):
				delete(live, id)
			case fmt.Sprint(v) != s.Label("i"):
				m.fatal("%s has value %v", s, v)
			case now[id]:
				m.fatal("%s is there twice", s)
			default:
				now[id], got["series "+s.Label("i")] = true, s.Label("v")
			}
		}
		for id := range live {
			if !now[id] {
				m.fatal("the series with i and v = %s has not ended", id)
			}
		}
		m.live[b.Source] = now
		m.checkBatch(states, got)
	}
	for _, b := range m.sink.Logs()[m.seen:] {
		got, next := map[string]string{}, map[string]int{}
		for i, s := range b.Stream {
			id, v := "stream "+s.Label("i"), ""
			if b.Meta != nil && len(b.Meta[i]) > 0 {
				v = b.Meta[i][0].Value
			}
			if next[id]++; b.Line[i] != fmt.Sprint(next[id]-1) || next[id] > 1 && got[id] != v {
				m.fatal("%s: line %s of version %q comes after %d lines of version %q", s, b.Line[i], v, next[id]-1, got[id])
			}
			if got[id] = v; v != "" && next[id] > 1 {
				m.counted++ // the second line of the stream
			}
		}
		m.checkBatch(states, got)
	}
}

// checkBatch checks which version has processed which record of a batch.
func (m *canaryModel) checkBatch(states []modelState, got map[string]string) {
	m.t.Helper()
	before, after := states[0], states[len(states)-1]
	if len(got) != m.series && m.onError != "drop" {
		m.fatal("%d series or streams left, want %d", len(got), m.series)
	}
	kind := "series"
	for id := range got {
		kind, _, _ = strings.Cut(id, " ")
	}
	for i := range m.series {
		id := fmt.Sprintf("%s %d", kind, i)
		v := got[id] // "": a broken version has passed it on, or dropped it
		if _, left := got[id]; left && v == "" && m.onError != "pass" {
			m.fatal("%s has left although a broken version got it", id)
		}
		if v != "" {
			m.counted++
		}
		byCanary := v != before.stable.mark && v != after.stable.mark
		if byCanary {
			m.inShare[id] = true
		} else if m.log[len(m.log)-1] == "send" && before.canary != nil && !m.bad(before) && before.canary.mark != before.stable.mark {
			m.other[id] = true
		}
		if m.inShare[id] && m.other[id] {
			m.fatal("%s met both versions", id)
		}
		if !slices.ContainsFunc(states, func(s modelState) bool { return m.may(s, byCanary, v) }) {
			m.fatal("version %q has processed %s", v, id)
		}
	}
}

// TestCanaryModel plays random sequences of saves of good, slow, failing and crashing
// versions, promotions, rollbacks and changes of arguments, while batches are sent, and
// compares which version has processed which record with a model.
func TestCanaryModel(t *testing.T) {
	if raceDetector && testing.Short() {
		*canarySeeds = min(*canarySeeds, 4) // one for each mode
	}
	modes := []string{`concurrency = "ordered"`, `concurrency = "single"`, "concurrency = \"partition\"\nby = [\"i\"]", `concurrency = "parallel"`}
	for seed := *canarySeed; seed < *canarySeed+*canarySeeds; seed++ {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			timed(t, func(t *testing.T, n *harness) {
				n.gate.SetAccepts(batch.SignalMetrics | batch.SignalLogs)
				m := &canaryModel{
					harness: n, rand: rand.New(rand.NewPCG(uint64(seed), 7)), mode: modes[seed%4], onError: []string{"pass", "drop", "hold"}[seed/4%3],
					series: 24, inShare: map[string]bool{}, other: map[string]bool{}, live: map[uint64]map[string]bool{},
				}
				steps := 40
				if seed%8 == 7 { // batches are split
					m.series, steps = 9000, 12
				}
				m.attrs = m.newAttrs()
				v, src := m.script("good")
				n.save(src, m.attrs)
				v.reg = registrytest.Lookup(t, n.cat, "a.b")
				m.state.stable = v
				for range steps {
					m.step()
				}
				if m.counted == 0 {
					return // nothing was sent
				}
				if got, want := control(t, n.c, "GET", "/state/n?key=all", 200), fmt.Sprintf("%d\n", m.counted); got != want {
					m.fatal("the versions have processed %s records, want %s", got, want)
				}
			})
		})
	}
}

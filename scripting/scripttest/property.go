package scripttest

import (
	"errors"
	"fmt"
	"hash/fnv"
	"math/bits"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/weir-run/weir/scripting"
)

const (
	// defaultRuns is how many values forall tries.
	defaultRuns = 100
	maxRuns     = 100_000
	// maxShrinkRuns bounds how often a value is tried while it is made smaller.
	maxShrinkRuns = 1000
)

// draw is the source of a generated value: a sequence of choices, each a number below a
// bound. Smaller numbers and fewer choices are simpler values, so that every value can be
// made smaller without knowledge of its generator.
type draw struct {
	rng   *rand.Rand // nil: choices are those of again, then zeros
	again []uint64
	made  []uint64
}

// below returns a number in [0, n).
func (d *draw) below(n int) int {
	return int(d.choose(uint64(n), func() uint64 { return d.rng.Uint64N(uint64(n)) }))
}

// choose returns a number in [0, n) that pick draws.
func (d *draw) choose(n uint64, pick func() uint64) uint64 {
	var c uint64
	switch {
	case d.rng != nil:
		c = pick()
	case len(d.made) < len(d.again):
		c = min(d.again[len(d.made)], n-1)
	}
	d.made = append(d.made, c)
	return c
}

// more decides whether a list that has n items gets another one.
func (d *draw) more(n, most int) bool { return n < most && d.below(8) > 0 }

// forall calls fn with values of a generator until it fails.
func (s *session) forall(g *generator, fn scripting.Callback, runs int) error {
	if s.test == "" {
		return errors.New("cannot use forall outside of a test: move it into it(…)")
	}
	s.foralls++
	h := fnv.New64a()
	fmt.Fprintf(h, "%s %s %d", s.file.Name[strings.LastIndexByte(s.file.Name, '/')+1:], s.test, s.foralls)
	rng := rand.New(rand.NewPCG(s.seed, h.Sum64()))
	for run := range runs {
		d := &draw{rng: rng}
		v := g.draw(d)
		err := s.holds(fn, v)
		if err == nil {
			if used := s.vm.Used(); used > s.limit*3/4 {
				return fmt.Errorf("cannot finish forall: %d of %d runs took %s, and a test may take %s of script time; write fewer runs: { runs = %d }", run+1, runs, used, s.limit, (run+1)/2)
			}
			continue
		}
		if s.ends(err) {
			return err
		}
		return s.falsified(g, fn, d.made, err, run+1)
	}
	return nil
}

// ends reports whether an error ends the test, rather than show that a value fails.
func (s *session) ends(err error) bool {
	_, pending := errors.AsType[*pendingError](err)
	return pending || s.vm.Broken() || s.ctx.Err() != nil
}

// holds calls fn with a value. Components that it opens end with the call.
func (s *session) holds(fn scripting.Callback, v scripting.Value) error {
	before := len(s.opened)
	_, err := fn(v)
	late := closeAll(s.opened[before:])
	s.opened = s.opened[:before]
	if err != nil {
		return err
	}
	return late
}

// falsified makes the choices of a value that fails smaller, and returns the failure of
// the smallest value.
func (s *session) falsified(g *generator, fn scripting.Callback, made []uint64, err error, run int) error {
	tries, smaller := 0, 0
	try := func(choices []uint64) bool {
		if tries++; tries > maxShrinkRuns || s.vm.Used() > s.limit*9/10 {
			return false
		}
		d := &draw{again: choices}
		v := g.draw(d)
		if !simpler(d.made, made) {
			return false
		}
		e := s.holds(fn, v)
		if e == nil || s.ends(e) || place(e) != place(err) {
			return false
		}
		made, err = d.made, e
		smaller++
		return true
	}
	for again := true; again && !s.vm.Broken(); {
		again = false
		for size := len(made) / 2; size > 0; size /= 2 {
			for i := 0; i+size <= len(made); {
				if try(slices.Concat(made[:i], made[i+size:])) {
					again = true
				} else {
					i++
				}
			}
		}
		for i := 0; i < len(made); i++ {
			with := func(c uint64) []uint64 {
				out := slices.Clone(made)
				out[i] = c
				return out
			}
			if made[i] > 0 && try(with(0)) {
				again = true
				continue
			}
			// Powers of two keep the sign of a number until the last step.
			for by := uint64(1) << min(bits.Len64(made[i]), 63); by > 0; by /= 2 {
				for i < len(made) && made[i] >= by && try(with(made[i]-by)) {
					again = true
				}
			}
		}
		if tries > maxShrinkRuns || s.vm.Used() > s.limit*9/10 {
			break
		}
	}
	s.scriptFailed = scriptFailed(err)
	p := problemOf(err, s.file.Name)
	msg := fmt.Sprintf("forall failed in run %d, with --seed %d", run, s.seed)
	if smaller > 0 {
		msg += fmt.Sprintf("; the value was made smaller %d times", smaller)
	}
	at := ""
	if p.Line > 0 {
		at = p.pos() + ": "
	}
	return &Failure{Msg: msg + "\n" + at + p.Msg, Diff: p.Diff + "the smallest value that fails:\n" + code{s.words}.declare("x", g.draw(&draw{again: made}))}
}

// simpler reports whether choices are fewer than others, or as many and smaller.
func simpler(a, b []uint64) bool {
	if len(a) != len(b) {
		return len(a) < len(b)
	}
	return slices.Compare(a, b) < 0
}

// forallFunc is the function of test files.
func (s *session) forallFunc() scripting.Function {
	return scripting.Function{
		Name: "forall",
		Doc: "In a test, calls fn with random values of a generator, until it fails or all runs have passed. A value that fails is made as small as possible and printed as code. " +
			"--seed repeats a run. fn must not be async. The runs share the limit of script time of the test.",
		Params: []scripting.Param{
			{Name: "gen", Kind: scripting.KindObject, Type: generatorType, Doc: "A generator, such as gen.labels()."},
			{Name: "fn", Kind: scripting.KindFunction, Doc: "Checks one value with assertions."},
			{Name: "runs", Kind: scripting.KindInt, Optional: true, Doc: "How many values to try; the default is 100."},
		},
		Fn: func(a []scripting.Value) (scripting.Value, error) {
			runs := defaultRuns
			if n, ok := a[2].(int64); ok {
				if n < 1 || n > maxRuns {
					return nil, fmt.Errorf("cannot use %d runs: it must be 1 to %d", n, maxRuns)
				}
				runs = int(n)
			}
			return nil, s.forall(a[0].(*generator), a[1].(scripting.Callback), runs)
		},
	}
}

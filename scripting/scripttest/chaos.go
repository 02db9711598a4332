package scripttest

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"strings"

	"github.com/weir-run/weir/scripting"
)

// chaosRounds is how often a test file is run again with faults.
const chaosRounds = 5

// chaos is what happens to the components of one round: what a node's life has
// in store, and a script must not notice.
type chaos struct {
	rng     *rand.Rand
	outside bool     // requests fail; else instances take over
	calls   int      // of components so far
	did     []string // in the test at hand
}

// newChaos draws what happens from the seed, the file and the round, so that it
// does not depend on what else runs.
func newChaos(seed uint64, file string, round int, outside bool) *chaos {
	h := fnv.New64a()
	fmt.Fprintf(h, "%s %d", file, round)
	return &chaos{rng: rand.New(rand.NewPCG(seed, h.Sum64())), outside: outside}
}

// replaceVMs is called before each call of a component. A save between two batches
// gives it new VMs, which know nothing of what the old ones had in their locals.
func (c *chaos) replaceVMs(ctx context.Context, n *testNode) error {
	if c == nil || c.outside {
		return nil
	}
	c.calls++
	if c.rng.IntN(2) == 0 {
		return nil
	}
	c.did = append(c.did, fmt.Sprintf("%s was reloaded before call %d of the file", n.name, c.calls))
	return n.reload(ctx, true)
}

// fault is what mocks ask before they answer.
func (c *chaos) fault(what string) error {
	if c.rng.IntN(2) == 0 {
		return nil
	}
	c.did = append(c.did, what+" failed")
	return errChaos
}

// errChaos is the error of a request that failed by chance.
var errChaos = errors.New("connection reset by --chaos")

// scriptFailed reports whether err is an error in a script. It may pass errChaos on in a
// hook that weir calls again: a sink keeps its records, and a source is polled later. Lua
// passes on the message only.
func scriptFailed(err error) bool {
	e, ok := errors.AsType[*scriptFailure](err)
	retried := ok && (e.err.Hook == "send" || e.err.Hook == "poll")
	return ok && !(retried && strings.Contains(err.Error(), errChaos.Error()))
}

// survive runs the tests of a file, which have passed, again and again with
// faults, and returns them with the first failure of each. When instances take
// over, the tests must pass; when the world outside fails, it is enough that
// scripts do not.
func (s *suite) survive(ctx context.Context, t target, lang scripting.Tester, tests []Test, outside bool, snaps *snapshots) ([]Test, error) {
	for round := range chaosRounds {
		failing := outside && round%2 == 1
		ses, err := newSession(ctx, *s, t.test, lang)
		if err != nil {
			return tests, err
		}
		ses.snaps = snaps.again()
		ses.chaos = newChaos(s.seed, t.test.Name, round, failing)
		if failing {
			ses.mocks.fault = ses.chaos.fault
		}
		ses.plan(0, s.wanted)
		i := 0
		for _, c := range ses.all {
			if !s.wanted(c.fullName()) || ses.vm.Broken() || ctx.Err() != nil {
				continue
			}
			ses.chaos.did = nil
			again := s.test(ses, c)
			if i < len(tests) && tests[i].Status == Passed && (again.scriptFailed || !failing && again.Status != Passed) {
				again.Problem.Msg += fmt.Sprintf("\nwith --chaos %d: %s", s.seed, strings.Join(ses.chaos.did, ", "))
				tests[i] = again
			}
			i++
		}
		if err := ses.close(); err != nil {
			return tests, err
		}
	}
	return tests, nil
}

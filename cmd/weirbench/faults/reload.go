package faults

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// step is a step of the reload of a script in which weir is killed.
type step struct {
	name   string
	script string        // what makes the step long, at the top of the script
	test   string        // the body of the script's test, "" for none
	fails  bool          // the version fails its test
	within time.Duration // from the save, within which the kill comes
}

// busy keeps a VM busy for some tenths of a second.
const busy = "do local n = 0 for i = 1, 3e6 do n = n + i end end"

// reloadSteps are the steps of a reload. A reload begins 20 ms after the save.
var reloadSteps = []step{
	{name: "compile", script: busy, within: 200 * time.Millisecond},
	{name: "test", test: busy, within: 300 * time.Millisecond},
	{name: "refusal", test: busy + ` error("no")`, fails: true, within: 300 * time.Millisecond},
	{name: "swap", within: 40 * time.Millisecond},
}

// reloadedUntil kills weir while it reloads a script, sometimes with a dead endpoint, and
// checks which version runs afterwards: the one on disk, or the last one that passed its
// tests if the one on disk fails them.
func (r *run) reloadedUntil(ctx context.Context, s step) (string, error) {
	good := r.variant + 1
	if s.fails {
		if err := r.saveScript("", "-- quick"); err != nil {
			return "", err
		}
		if err := r.runsVersion(ctx, good); err != nil {
			return "", err
		}
	}
	if r.rng.IntN(2) == 0 {
		r.setFault(&dead)
	}
	from := len(r.weir.Output())
	if err := r.saveScript(s.script, s.test); err != nil {
		return "", err
	}
	want := r.variant
	if err := r.waitRandom(ctx, s.within); err != nil {
		return "", err
	}
	r.kill()
	when := "before"
	if strings.Contains(r.weir.Output()[from:], " faults.same") {
		when = "after"
	}
	if s.fails {
		want = good
	}
	what, err := r.restartAfterKill(ctx, "killed "+when+" the verdict, left", true)
	if err != nil {
		return "", err
	}
	if err := r.checkStarted(ctx, want); err != nil {
		return "", err
	}
	return what, r.writeScript()
}

// processedBy matches a line of the script's log.
var processedBy = regexp.MustCompile(`faults version (\d+)`)

// versions returns the versions of the script that have processed samples in the process
// that runs now, in order.
func (r *run) versions() (all []string) {
	for _, m := range processedBy.FindAllStringSubmatch(r.weir.Output(), -1) {
		all = append(all, m[1])
	}
	return all
}

// runsVersion waits until a version of the script processes samples.
func (r *run) runsVersion(ctx context.Context, want int) error {
	return r.eventually(ctx, fmt.Sprintf("version %d of the script processes samples", want), func() error {
		if all := r.versions(); !slices.Contains(all, strconv.Itoa(want)) {
			return fmt.Errorf("these versions do: %q", slices.Compact(all))
		}
		return nil
	})
}

// checkStarted waits until a process that has just started processes samples, and notes a
// problem if another version than the wanted one does.
func (r *run) checkStarted(ctx context.Context, want int) error {
	return r.eventually(ctx, "a version of the script processes samples", func() error {
		all := r.versions()
		if len(all) == 0 {
			return errors.New("none does")
		}
		if all[0] != strconv.Itoa(want) {
			r.addFailure("after the restart, version %s of the script runs, not %d", all[0], want)
		}
		return nil
	})
}

// writeScript writes the next version of the script, without a test.
func (r *run) writeScript() error { return r.saveScript("", "") }

// saveScript writes the next version of the script, with a statement at its top, and its
// test. The script reports its version, and changes no sample.
func (r *run) saveScript(top, test string) error {
	dir := filepath.Join(r.o.Dir, "scripts", "faults")
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return fmt.Errorf("cannot make the scripts' directory: %w", err)
	}
	r.variant++
	testFile := filepath.Join(dir, "same_test.lua")
	if test == "" {
		if err := os.Remove(testFile); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("cannot remove the test: %w", err)
		}
	} else if err := replace(testFile, fmt.Sprintf(`describe("faults.same", function()
  it("passes", function()
    %s
  end)
end)
`, test)); err != nil {
		return err
	}
	return replace(filepath.Join(dir, "same.lua"), fmt.Sprintf(`local weir = require "weir"
%s
return weir.transform {
  series  = function(s) if s.labels.code == "no" then s.labels.code = "yes" end end,
  metrics = function(_, ctx) ctx.log.info("faults version %d") end,
}
`, top, r.variant))
}

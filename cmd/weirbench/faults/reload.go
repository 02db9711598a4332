package faults

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weir-run/weir/cmd/weirbench/sink"
	"github.com/weir-run/weir/scripting/versions"
)

// step is a step of the reload of a script in which weir is killed.
type step struct {
	name   string
	block  string        // the block script of the node, "" for none
	script string        // what makes the step long, at the top of the script
	call   string        // what each call of the script does first
	test   string        // the body of the script's test, "" for none
	fails  bool          // the version fails its test
	canary bool          // the version gets a canary
	config bool          // the config changes with the script
	served bool          // the step begins when the version processes samples, and not with the save
	then   []string      // the command that is run then, with its arguments
	within time.Duration // from then, within which the kill comes
}

// busy keeps a VM busy for some tenths of a second.
const busy = "do local n = 0 for i = 1, 3e6 do n = n + i end end"

// slower makes a call take some milliseconds.
const slower = "do local n = 0 for i = 1, 1e5 do n = n + i end end"

const (
	shadowed = `script {
    on_reload = "shadow"
  }`
	// limited refuses a version whose calls are slower.
	limited = `script {
    on_reload = "shadow"

    shadow {
      max_time_per_record = "1us"
    }
  }`
	canaried = `script {
    canary {
      share        = 0.5
      for          = "10m"
      max_slowdown = 1000
    }
  }`
	// brief promotes a version soon.
	brief = `script {
    canary {
      share        = 0.5
      for          = "1s"
      max_slowdown = 1000
    }
  }`
)

// reloadSteps are the steps of a reload. A reload begins 20 ms after the save.
var reloadSteps = []step{
	{name: "compile", script: busy, within: 200 * time.Millisecond},
	{name: "test", test: busy, within: 300 * time.Millisecond},
	{name: "refusal", test: busy + ` error("no")`, fails: true, within: 300 * time.Millisecond},
	{name: "swap", within: 40 * time.Millisecond},
	{name: "build", script: busy, within: 600 * time.Millisecond},
	{name: "config", config: true, within: 100 * time.Millisecond},
	{name: "shadow", block: shadowed, call: slower, within: 500 * time.Millisecond},
	{name: "shadow, refusal", block: limited, call: slower, within: 500 * time.Millisecond},
	{name: "canary", block: canaried, canary: true, within: time.Second},
	{name: "canary, promotion", block: canaried, canary: true, served: true, then: []string{"promote", node}, within: time.Second},
	{name: "canary, rollback", block: canaried, canary: true, served: true, then: []string{"rollback", node}, within: time.Second},
	{name: "canary, end", block: brief, canary: true, served: true, within: 2 * time.Second},
	{name: "rollback", served: true, then: []string{"rollback", node}, within: time.Second},
}

// node is the node of the script.
const node = "faults.same.load"

// slow is the fault of an endpoint that takes some time for each answer.
var slow = sink.Fault{Delay: sink.Duration(300 * time.Millisecond)}

// reloadedUntil kills weir while it reloads a script, with a fault of the endpoint, and
// checks that the version runs afterwards that the history of the dead process names.
func (r *run) reloadedUntil(ctx context.Context, s step) (string, error) {
	if err := r.saveScript(step{test: "-- quick"}); err != nil {
		return "", err
	}
	good := r.saved
	if err := r.runsVersion(ctx, good); err != nil {
		return "", err
	}
	if err := r.setBlock(ctx, s.block); err != nil {
		return "", err
	}
	faults := []sink.Fault{dead, failing, limiting, lying, slow}
	if i := r.rng.IntN(len(faults) + 1); i < len(faults) { // or no fault
		r.setFault(&faults[i])
	}
	from := len(r.weir.Output())
	began := time.Now()
	if s.config {
		if err := r.writeConfig(); err != nil {
			return "", err
		}
	}
	if err := r.saveScript(s); err != nil {
		return "", err
	}
	if s.served {
		if err := r.runsVersion(ctx, r.saved); err != nil {
			return "", err
		}
	}
	command := func() {}
	if s.then != nil {
		c := exec.Command(r.o.Weir, append(s.then, "--storage.path="+r.data())...)
		if err := c.Start(); err != nil {
			return "", fmt.Errorf("cannot run weir %s: %w", s.then[0], err)
		}
		command = func() { _ = c.Wait() } // weir may have died before it answered
	}
	if err := r.waitRandom(ctx, s.within); err != nil {
		return "", err
	}
	r.kill()
	command()
	when := "before"
	if strings.Contains(r.weir.Output()[from:], " "+node[:strings.LastIndexByte(node, '.')]) {
		when = "after"
	}
	want, why, err := r.named(s, good, began)
	if err != nil {
		return "", err
	}
	what, err := r.restartAfterKill(ctx, fmt.Sprintf("killed %s the verdict, %s, left", when, why), true)
	if err != nil {
		return "", err
	}
	if err := r.checkStarted(ctx, want, s.canary); err != nil {
		return "", err
	}
	if err := r.setBlock(ctx, ""); err != nil {
		return "", err
	}
	return what, r.writeScript()
}

// setBlock gives the node a block script, and waits until it has that.
func (r *run) setBlock(ctx context.Context, block string) error {
	if r.block == block {
		return nil
	}
	r.block = block
	from := len(r.weir.Output())
	if err := r.writeConfig(); err != nil {
		return err
	}
	if err := r.eventually(ctx, "weir has reloaded the config", func() error {
		if !strings.Contains(r.weir.Output()[from:], "reloaded config.alloy") {
			return fmt.Errorf("it printed %q", r.weir.Output()[from:])
		}
		return nil
	}); err != nil {
		return err
	}
	return r.progress(ctx, 1) // so that there is recent input
}

// record returns the history of the script on disk.
func (r *run) record() (versions.Record, *versions.Store) {
	store := versions.Look(r.data())
	return store.Get("faults.same", filepath.Join(r.o.Dir, "scripts")), store
}

// numberOf returns the number of a version in the history; 0 if it is not there.
func numberOf(record versions.Record, store *versions.Store, id string) int {
	for _, v := range record.Versions {
		if v.ID != id {
			continue
		}
		files, err := store.Files(v)
		if err != nil {
			return 0
		}
		for _, f := range files {
			if m := processedBy.FindStringSubmatch(f.Text); m != nil {
				n, _ := strconv.Atoi(m[1]) // it is digits
				return n
			}
		}
	}
	return 0
}

// named returns the number of the version that the history of a dead process names: the
// pinned one; the last active one if the one on disk was refused since a time, fails its
// tests, or must have a canary; or else the one on disk. why says which.
func (r *run) named(s step, good int, since time.Time) (want int, why string, err error) {
	record, store := r.record()
	if p, ok := record.Pinned(node); ok {
		return numberOf(record, store, p.ID), "pinned", nil
	}
	active := good
	for _, v := range record.Of(node) {
		active = numberOf(record, store, v.ID) // the newest is the last
	}
	if active == 0 {
		return 0, "", errors.New("the history has no sources of the active version")
	}
	refused := slices.ContainsFunc(record.Refused, func(f versions.Refusal) bool { return f.Time.After(since) })
	switch {
	case s.fails:
		return good, "to be refused", nil
	case active == r.saved:
		return active, "active", nil
	case refused:
		return active, "refused", nil
	case s.canary:
		return active, "undecided", nil
	}
	return r.saved, "undecided", nil
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
// problem if another version than the wanted one does, or if weir history names another
// one. A canary may process samples first.
func (r *run) checkStarted(ctx context.Context, want int, canary bool) error {
	if err := r.eventually(ctx, "a version of the script processes samples", func() error {
		if len(r.versions()) == 0 {
			return errors.New("none does")
		}
		return nil
	}); err != nil {
		return err
	}
	if first := r.versions()[0]; first != strconv.Itoa(want) && !canary {
		r.addFailure("after the restart, version %s of the script runs, not %d; the output of weir:\n%s", first, want, r.weir.OutputTail())
	}
	return r.eventually(ctx, "weir history names the running version", func() error {
		out, err := exec.CommandContext(ctx, r.o.Weir, "history", node, "--json", "--storage.path="+r.data()).Output()
		if err != nil {
			return fmt.Errorf("cannot run weir history: %w", err)
		}
		var h versions.History
		if err := json.Unmarshal(out, &h); err != nil {
			return fmt.Errorf("cannot read the output of weir history: %w", err)
		}
		record, store := r.record()
		n := numberOf(record, store, h.Running)
		if n == 0 {
			return fmt.Errorf("the history has no sources of version %s, which runs", h.Running)
		}
		if n != want {
			r.addFailure("after the restart, weir history says that version %d runs, not %d", n, want)
		}
		return nil
	})
}

// writeScript writes the next version of the script, without a test.
func (r *run) writeScript() error { return r.saveScript(step{}) }

// saveScript writes the next version of the script and its test as a step needs them. The
// script reports its version, and changes no sample.
func (r *run) saveScript(s step) error {
	dir := filepath.Join(r.o.Dir, "scripts", "faults")
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return fmt.Errorf("cannot make the scripts' directory: %w", err)
	}
	r.variant++
	r.saved = r.variant
	testFile := filepath.Join(dir, "same_test.lua")
	if s.test == "" {
		if err := os.Remove(testFile); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("cannot remove the test: %w", err)
		}
	} else if err := replace(testFile, fmt.Sprintf(`describe("faults.same", function()
  it("passes", function()
    %s
  end)
end)
`, s.test)); err != nil {
		return err
	}
	return replace(filepath.Join(dir, "same.lua"), fmt.Sprintf(`local weir = require "weir"
%s
return weir.transform {
  series  = function(s) if s.labels.code == "no" then s.labels.code = "yes" end end,
  metrics = function(_, ctx)
    %s
    ctx.log.info("faults version %d")
  end,
}
`, s.script, s.call, r.saved))
}

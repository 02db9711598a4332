//go:build integration

package integration

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestModulesUnderLoad changes every part of a house while samples flow, each
// time with a broken save before the good one. It kills weir with SIGKILL and
// removes a tenant with a backlog. A change only rebuilds the affected nodes, no
// scrape is missing or duplicate, one scrape after a change every series exists
// once, and everything that was accepted arrives.
func TestModulesUnderLoad(t *testing.T) {
	h := startHouse(t)
	h.hosts(1)
	tenants := []int{91, 92}
	h.weir = startWeirAt(t, h.dir, "conf")
	all := func() []int { return append(slices.Clone(h.targets), tenants...) }
	h.load.eachScrapedAfter(t, all(), time.Now())
	if len(h.kinds) != 5 {
		t.Fatalf("got %d kinds of discovery: %v", len(h.kinds), h.kinds)
	}

	h.mistake("a module", func() { h.save("mods/scrape.alloy", strings.Replace(houseModule, `"MARK"`, "", 1)) },
		`cannot reload import\.file\.m: \S*mods/scrape\.alloy:17:7: expected expression`)
	h.change("a module", func() { h.save("mods/scrape.alloy", strings.Replace(houseModule, "MARK", "1", 1)) },
		`reloaded \S*mods/scrape\.alloy \(.*\), 0 of \d+ nodes rebuilt, 5 updated.*"\n`, "")

	h.mistake("a script", func() { h.save("v2/demo/mark.lua", h.mark("new", "1")+"a mistake\n") },
		`cannot reload m\.both\.x/new\.demo\.mark\.x: running version \w+; \w+ refused by compile: \S*v2/demo/mark\.lua:8:`)
	h.change("a script", func() { h.save("v2/demo/mark.lua", h.mark("new", "1")) },
		`reloaded new\.demo\.mark \(.*\), 1 of \d+ nodes rebuilt.*"\n`, `m\.both\.x/new\.demo\.mark\.x`)
	h.change("its other version", func() { h.save("v1/demo/mark.lua", h.mark("old", "1")) },
		`reloaded old\.demo\.mark \(.*\), 1 of \d+ nodes rebuilt.*"\n`, `m\.both\.x/old\.demo\.mark\.x`)

	h.mistake("the module that a component exports", func() {
		h.save("sink.alloy", houseSink+"logging { }\n")
		h.unhealthy("import.string.s", "block logging does not belong into a module")
	}, "")
	h.change("the module that a component exports", func() {
		h.save("sink.alloy", strings.Replace(houseSink, "MARK", "1", 1))
		h.shows(`c="1"`)
	}, "", "")

	// The collections of the foreach blocks.
	h.change("more targets", func() { h.hosts(1, 2) }, "", `foreach\.targets/foreach_\d2_1.*`)
	h.mistake("a file of targets", func() {
		write(t, filepath.Join(h.found.dir, "targets.json"), "[{")
		h.unhealthy("discovery.file.x", "targets.json")
	}, "")
	h.forgive(12, 22, 32, 42, 52)
	h.change("fewer targets", func() { h.hosts(1) }, "", `foreach\.targets/foreach_\d2_1.*`)
	h.forgive(12, 22, 32, 42, 52)
	h.mistake("the tenants", func() {
		h.save("tenants.json", `{"name": "a"}`)
		h.unhealthy("foreach.tenants", "collection: should be list, got ")
	}, "")
	h.change("the tenants again", func() {
		h.save("tenants.json", `[{"name": "a", "target": "91"}, {"name": "b", "target": "92"}]`)
		h.healthy("foreach.tenants")
	}, "", "")

	// The config: a mistake refuses the whole config, while scripts are still
	// served.
	config, err := os.ReadFile(h.path("conf/main.alloy"))
	if err != nil {
		t.Fatal(err)
	}
	h.mistake("the config", func() { h.save("conf/main.alloy", string(config)+"\nm.scrape \"two\" { }\n") },
		`cannot reload conf: \S*main\.alloy:\d+:1: missing required attribute forward_to .* \(and 1 more\); nothing was changed`)
	h.mistake("the config, asked for by SIGHUP", func() { h.weir.cmd.Process.Signal(syscall.SIGHUP) }, `cannot reload conf: `)
	h.change("a script next to a refused config", func() { h.save("v2/demo/mark.lua", h.mark("new", "2")) },
		`reloaded new\.demo\.mark \(.*\), 1 of \d+ nodes rebuilt.*"\n`, `m\.both\.x/new\.demo\.mark\.x`)
	h.change("the config", func() {
		h.save("conf/main.alloy", strings.Replace(string(config), "array.concat(", "array.concat([], ", 1)+"\nprometheus.relabel \"more\" {\n  forward_to = [m.both.x.receiver]\n}\n")
	}, `reloaded conf \(.*\), 1 of \d+ nodes rebuilt.*"\n`, `prometheus\.relabel\.more`)
	h.change("SIGHUP", func() { h.weir.cmd.Process.Signal(syscall.SIGHUP) }, `reloaded conf \(.*\), 0 of \d+ nodes rebuilt.*"\n`, "")

	// One tenant is removed and leaves a backlog; another one is added.
	h.tenant.set(func(_ int, w http.ResponseWriter, _ *http.Request) bool {
		w.WriteHeader(http.StatusServiceUnavailable)
		return true
	})
	h.load.eachScrapedAfter(t, tenants, time.Now())
	h.load.eachScrapedAfter(t, tenants, time.Now())
	h.change("the tenants", func() {
		h.save("tenants.json", `[{"name": "a", "target": "91"}, {"name": "c", "target": "93"}]`)
	}, "", `foreach\.tenants/foreach_[bc]_1.*`)
	h.forgive(92)
	gone := h.load.served(92)
	tenants = []int{91, 93}
	h.load.eachScrapedAfter(t, tenants, time.Now())
	stats, err := exec.Command(env(t, "WEIR"), "journal", "stats", h.path("data")).CombinedOutput()
	if err != nil || !regexp.MustCompile(`node +foreach\.tenants/foreach_b_1/prometheus\.remote_write\.out\n(.*\n)*?pending +\d+ samples`).Match(stats) {
		t.Errorf("the journal of the tenant that went is not listed: %v\n%s", err, stats)
	}

	// SIGKILL while no server is reachable.
	h.wire.cut()
	h.load.eachScrapedAfter(t, all(), time.Now())
	h.load.eachScrapedAfter(t, all(), time.Now())
	h.weir.kill()
	h.output += h.weir.output()
	h.forgive(all()...)
	h.weir = startWeirAt(t, h.dir, "conf")
	h.load.eachScrapedAfter(t, all(), time.Now())
	h.wire.up(t)
	h.tenant.set(nil)
	drainAll := func() {
		t.Helper()
		h.load.eachScrapedAfter(t, all(), time.Now())
		eventually(t, "the journals are empty", func() error {
			if n := h.metric("weir_journal_pending_blocks"); n > 0 {
				return fmt.Errorf("%v blocks", n)
			}
			return nil
		})
	}
	drainAll()
	for _, ss := range h.tenant.group("load_flag") {
		for _, s := range ss {
			if s.labels["target"] == "92" && len(s.t) >= gone {
				t.Errorf("the backlog of a tenant that went was sent by somebody else: %v", s.labels)
			}
		}
	}
	// The tenant is added again and finds its backlog.
	tenants = []int{91, 92, 93}
	h.change("the tenant that is back", func() {
		h.save("tenants.json", `[{"name": "a", "target": "91"}, {"name": "b", "target": "92"}, {"name": "c", "target": "93"}]`)
	}, "", `foreach\.tenants/foreach_b_1.*`)
	drainAll()
	if restarts := h.metric("weir_component_restarts_total"); restarts > 0 {
		t.Errorf("%v components failed", restarts)
	}
	// Except for scrapes that are lost because the machine is too slow.
	if lost := h.metric("weir_component_samples_dropped_total", "refused"); lost > 0 {
		t.Errorf("weir dropped %v samples", lost)
	}
	if code := h.weir.stop(); code != 0 {
		t.Errorf("exit status %d after SIGTERM", code)
	}
	h.output += h.weir.output()
	h.checkSums()
	for _, i := range []int{11, 21, 31, 41, 51, 12, 22, 32, 42, 52} {
		h.checkTarget(i)
	}
	h.checkTenants()
}

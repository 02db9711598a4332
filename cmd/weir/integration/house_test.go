//go:build integration

package integration

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// house is a directory config that contains everything that a config can consist
// of: modules (nested, from a directory, from an export of a component), a
// foreach over the targets of five kinds of discovery, two versions of a folder
// of scripts, and a foreach of tenants, each with a journal.
type house struct {
	t      *testing.T
	dir    string
	load   *load
	found  *found
	kinds  []string
	wire   *link // the link to Prometheus
	prom   string
	tenant *recorder
	weir   *weirRun

	output  string               // of previous weir processes
	targets []int                // that are currently scraped
	lost    map[int]map[int]bool // by target: scrapes that may be missing
	right   []looked
}

// looked is a time at which exactly these targets existed.
type looked struct {
	after   string // the change before
	at      time.Time
	targets int
}

const houseSeries = 100

// mark returns a script that marks all series with its folder, and the flag with
// its version.
func (h *house) mark(folder, version string) string {
	return fmt.Sprintf(`local weir = require "weir"
return weir.transform {
  series = function(s, ctx)
    s.labels.folder = %q
    if s.name == "load_flag" then s.labels.v = %q end
  end,
}
`, folder, version)
}

func (h *house) path(name string) string { return filepath.Join(h.dir, filepath.FromSlash(name)) }

func (h *house) save(name, content string) {
	h.t.Helper()
	write(h.t, h.path(name+".new"), content)
	if err := os.Rename(h.path(name+".new"), h.path(name)); err != nil {
		h.t.Fatal(err)
	}
}

func startHouse(t *testing.T) *house {
	h := &house{t: t, dir: t.TempDir(), load: startLoad(t, houseSeries), tenant: startRecorder(t), lost: map[int]map[int]bool{}}
	h.found = startFound(t, h.load)
	h.prom = startPrometheus(t, "")
	h.wire = startLink(t, h.prom)
	var outputs []string
	for kind, args := range h.found.kinds() {
		if kind == "dns" { // needs privileges, and is the sixth kind
			continue
		}
		h.kinds = append(h.kinds, kind)
		outputs = append(outputs, "discovery.relabel."+kind+".output")
		h.save("conf/"+kind+".alloy", strings.NewReplacer("KIND", kind, "ARGS", args[0], "NUMBER", strconv.Itoa(len(h.kinds))).Replace(houseDiscovery))
	}
	h.save("mods/scrape.alloy", strings.Replace(houseModule, "MARK", "0", 1))
	h.save("mods/both.alloy", houseBoth)
	h.save("sink.alloy", strings.Replace(houseSink, "MARK", "0", 1))
	h.save("v1/demo/mark.lua", h.mark("old", "0"))
	h.save("v2/demo/mark.lua", h.mark("new", "0"))
	h.save("tenants.json", `[{"name": "a", "target": "91"}, {"name": "b", "target": "92"}]`)
	h.save("conf/main.alloy", h.config(strings.Join(outputs, ", ")))
	return h
}

func (h *house) config(collection string) string {
	return strings.NewReplacer("DIR", h.dir, "URL", "http://"+h.wire.addr, "COLLECTION", collection,
		"ADDRESS", strings.TrimPrefix(h.load.URL, "http://"), "TENANTS", h.tenant.URL).Replace(houseConfig)
}

// hosts makes all kinds of discovery return some hosts, by their last digit.
func (h *house) hosts(digits ...int) {
	h.t.Helper()
	var hosts []string
	h.targets = []int{}
	for _, d := range digits {
		hosts = append(hosts, fmt.Sprint("127.0.0.", d))
		for k := range h.kinds {
			h.targets = append(h.targets, 10*(k+1)+d)
		}
	}
	h.found.set(hosts...)
}

// built identifies a build of a node. It shows whether the node was touched.
type built struct {
	Builds, Restarts uint64
	Version          string
}

// status returns weir's nodes and their health.
func (h *house) status() (nodes map[string]built, health map[string]string) {
	h.t.Helper()
	var s struct {
		Components []struct {
			ID string
			built
			Health  struct{ State, Message string }
			Samples *struct{}
		}
	}
	if err := json.Unmarshal([]byte(h.weir.request("/api/v0/status")), &s); err != nil {
		h.t.Fatal(err)
	}
	nodes, health = map[string]built{}, map[string]string{}
	for _, c := range s.Components {
		nodes[c.ID], health[c.ID] = c.built, c.Health.State+" "+c.Health.Message
	}
	return nodes, health
}

// change makes a change, waits until weir prints text that matches pattern,
// unless it is empty, and checks that it touched exactly the nodes that match
// touched. After one more scrape, every series must exist once; checkSums checks
// this.
func (h *house) change(what string, do func(), pattern, touched string) {
	h.t.Helper()
	before, _ := h.status()
	h.weir.after(do, pattern)
	re := regexp.MustCompile("^(" + touched + ")$")
	eventually(h.t, what+" touches what it is about", func() error {
		after, _ := h.status()
		var wrong []string
		for id := range before {
			if _, there := after[id]; !there && !re.MatchString(id) {
				wrong = append(wrong, id+" is gone")
			}
		}
		for id, is := range after {
			if was, had := before[id]; re.MatchString(id) != (!had || was != is) {
				wrong = append(wrong, fmt.Sprintf("%s was %v and is %v", id, was, is))
			}
		}
		if len(wrong) > 0 {
			slices.Sort(wrong)
			return errors.New(strings.Join(wrong, "\n"))
		}
		return nil
	})
	at := h.load.eachScrapedAfter(h.t, h.targets, time.Now())
	h.right = append(h.right, looked{what, at, len(h.targets)})
}

// mistake makes an invalid change: weir prints text that matches pattern, and no
// node is touched.
func (h *house) mistake(what string, do func(), pattern string) {
	h.t.Helper()
	h.change("a mistake in "+what, do, pattern, "")
}

// unhealthy waits until the health message of a node contains a text.
func (h *house) unhealthy(id, says string) { h.t.Helper(); h.health(id, "unhealthy ", says) }

func (h *house) healthy(id string) { h.t.Helper(); h.health(id, "healthy ", "") }

func (h *house) health(id, state, says string) {
	h.t.Helper()
	eventually(h.t, id+" is "+state+says, func() error {
		if _, health := h.status(); !strings.HasPrefix(health[id], state) || !strings.Contains(health[id], says) {
			return fmt.Errorf("it is %s", health[id])
		}
		return nil
	})
}

// shows waits until all current flags have a label.
func (h *house) shows(matcher string) {
	h.t.Helper()
	eventually(h.t, "the flags have "+matcher, func() error {
		got, err := number(h.prom, "count(load_flag{"+matcher+"})", time.Time{})
		if err != nil {
			return err
		}
		if all, err := number(h.prom, "count(load_flag)", time.Time{}); err != nil || got < all/2 {
			return fmt.Errorf("%v of %v: %v", got, all, err)
		}
		return nil
	})
}

// metric returns the sum of a metric's series, except for some reasons.
func (h *house) metric(name string, except ...string) (sum float64) {
	h.t.Helper()
	for _, m := range metricsOf(h.t, metricsPage(h.t, h.weir), name) {
		if !slices.Contains(except, labelOf(m, "reason")) {
			sum += valueOf(m)
		}
	}
	return sum
}

// forgive records that the current scrape of some targets may be missing, because
// the target or weir ended.
func (h *house) forgive(targets ...int) {
	for _, i := range targets {
		if h.lost[i] == nil {
			h.lost[i] = map[int]bool{}
		}
		h.lost[i][h.load.served(i)] = true
	}
}

// checkSums checks that one scrape after each change, every target existed once
// for each version of the scripts, without an old label in addition to the new
// one.
func (h *house) checkSums() {
	h.t.Helper()
	for _, l := range h.right {
		at := l.at.Add(10 * time.Millisecond)
		for _, folder := range []string{"old", "new"} {
			flags, err := number(h.prom, fmt.Sprintf(`sum(load_flag{folder=%q})`, folder), at)
			if err != nil {
				h.t.Fatal(err)
			}
			up, err := number(h.prom, fmt.Sprintf(`sum(up{folder=%q})`, folder), at)
			if err != nil {
				h.t.Fatal(err)
			}
			if flags != up || up > float64(l.targets) || up < float64(l.targets) && !h.slow() {
				h.t.Errorf("after %s: sum(load_flag{folder=%q}) = %v, %v of %d targets are up: %v", l.after, folder, flags, up, l.targets,
					mustQuery(h.t, h.prom, fmt.Sprintf(`load_flag{folder=%q}`, folder), at))
			}
		}
	}
}

// slow reports whether the machine was too slow for some scrapes.
func (h *house) slow() bool {
	n, err := number(h.prom, `sum(count_over_time(up[30m]) - sum_over_time(up[30m]))`, time.Time{})
	if err != nil {
		h.t.Fatal(err)
	}
	return n > 0 || strings.Contains(h.output, batchDropped)
}

// checkTarget checks that every scrape of a target exists once for each version
// of the scripts.
func (h *house) checkTarget(i int) {
	h.t.Helper()
	for _, folder := range []string{"old", "new"} {
		seen := map[string]map[int]int{}
		for _, s := range mustQuery(h.t, h.prom, fmt.Sprintf(`load_total{target="%d",folder=%q}[30m]`, i, folder), time.Time{}) {
			k := s.key("v", "m", "c")
			if seen[k] == nil {
				seen[k] = map[int]int{}
			}
			for _, n := range s.sequence(h.t) {
				seen[k][n]++
			}
		}
		if len(seen) != houseSeries {
			h.t.Errorf("target %d by %s: %d series, want %d", i, folder, len(seen), houseSeries)
		}
		h.checkScrapes(fmt.Sprintf("target %d by %s", i, folder), i, seen,
			unheard(h.t, h.prom, h.output, fmt.Sprintf(`target="%d",folder=%q`, i, folder), i))
	}
}

// checkScrapes checks that each scrape of a target exists once in all series.
// Exceptions are the last one, those that may be lost, and as many as weir
// reports missing.
func (h *house) checkScrapes(what string, target int, seen map[string]map[int]int, missing int) {
	h.t.Helper()
	lacking := map[int]int{}
	for k, scrapes := range seen {
		for n := 1; n < h.load.served(target); n++ {
			switch {
			case scrapes[n] > 1:
				h.t.Errorf("%s: scrape %d is there %d times", k, n, scrapes[n])
			case scrapes[n] == 0:
				lacking[n]++
			}
		}
	}
	for n, series := range lacking {
		if series != houseSeries {
			h.t.Errorf("%s: scrape %d is missing in %d of %d series", what, n, series, houseSeries)
		}
		if h.lost[target][n] {
			delete(lacking, n)
		}
	}
	if len(lacking) > missing {
		h.t.Errorf("%s: %d scrapes of %d are missing, weir says %d are: %v", what, len(lacking), h.load.served(target), missing, lacking)
	}
}

// checkTenants makes the same checks for the samples of each tenant.
func (h *house) checkTenants() {
	h.t.Helper()
	all := h.tenant.scrapes(h.t)
	for i, name := range map[int]string{91: "a", 92: "b", 93: "c"} {
		seen := map[string]map[int]int{}
		for k, scrapes := range all {
			if strings.Contains(k, fmt.Sprintf(`tenant=%q`, name)) {
				seen[k] = scrapes
			}
		}
		if len(seen) != houseSeries {
			h.t.Errorf("tenant %s: %d series, want %d", name, len(seen), houseSeries)
		}
		h.checkScrapes("tenant "+name, i, seen, h.tenant.failed(i)+droppedBatches(h.output, i))
	}
}

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/engine/clock/clocktest"
	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/service"
	"github.com/weir-run/weir/engine/watch"
	"github.com/weir-run/weir/scripting/registry"
	"github.com/weir-run/weir/scripting/versions"
)

// TestReload saves files in the ways in which people and tools save them, while an engine
// with scripts and with the watcher of the operating system runs. A case in
// testdata/reload has files, which include config/main.alloy and are written first, and
// then sections, which are done in order:
//
//	setup    shell commands, before the engine runs
//	update   shell commands; TOOL… after it are the programs that they need
//	reload   what the engine did since the last update: for each change its outcome, the
//	         files that changed, and its message; then a line "built NODE" for each component
//	         that was built. If it is "none", the files had no change.
//	input    what is sent from now on, instead of the sample "m 1": samples, or log lines if
//	         it begins with "{". With "input N", each line N times, with # replaced by
//	         numbers from 0.
//	send     the input is sent to test.source; with "send N", N times
//	output   what arrives at test.sink when the input is sent, sorted
//	canary   the running version has a canary
//	pass D   the duration D passes
//	half D   D passes once the watcher has noticed the last update, which is half a save:
//	         the watcher waits for the rest, which is the next update
//	weir     the answer to "weir COMMAND NODE": promote, rollback or unpin
//
// The clock of the engine stands still, except while a reload is awaited: however long the
// machine pauses a tool, the engine looks at the files when the tool has ended. The time that
// it waits while a save is incomplete is tested in engine/watch, and by sections "half".
//
// After each update, another script is saved and its reload is awaited. If the update were
// more than one change, its second reload would come before that, or together with it.
func TestReload(t *testing.T) {
	names, err := filepath.Glob(filepath.Join("..", "..", "testdata", "reload", "*.txtar"))
	if err != nil || len(names) == 0 {
		t.Fatalf("no cases: %v", err)
	}
	for _, name := range names {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txtar"), func(t *testing.T) {
			a, err := txtar.ParseFile(name)
			if err != nil {
				t.Fatal(err)
			}
			before := txtar.Format(a)
			playReloads(t, a)
			if after := txtar.Format(a); *update && !bytes.Equal(before, after) {
				if err := os.WriteFile(name, after, 0o644); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// playReloads plays a case. With -update, it changes what the case expects.
func playReloads(t *testing.T, a *txtar.Archive) {
	h := &reloads{
		t: t, dir: t.TempDir(), clock: clocktest.New(time.Now()), sink: &reloadSink{}, source: &reloadSource{},
		canaries: make(chan struct{}, 10), registry: prometheus.NewRegistry(), stop: func() {}, input: "m 1\n",
	}
	h.save("config/tick.alloy", `reload.tick "default" { forward_to = [] }`)
	h.tick()
	defer func() { h.stop() }()
	for i := range a.Files {
		f := &a.Files[i]
		name, rest, _ := strings.Cut(f.Name, " ")
		switch text := string(f.Data); name {
		case "setup":
			h.shell(text, strings.Fields(rest))
		case "update":
			h.start()
			h.counts = h.metrics()
			h.shell(text, strings.Fields(rest))
		case "reload":
			h.expect(f, h.settle(strings.TrimSpace(text) == "none"))
		case "input":
			h.setInput(text, rest)
		case "send":
			for range h.number(rest) {
				h.send()
			}
		case "output":
			h.send()
			h.expect(f, h.sink.take())
		case "canary":
			h.awaitCanary()
		case "pass":
			h.clock.Advance(h.duration(rest))
		case "half":
			h.passHalf(h.duration(rest))
		case "weir":
			h.counts = h.metrics()
			h.expect(f, h.control(rest))
		default:
			h.save(f.Name, text)
		}
	}
}

// reloads is an engine that runs in a directory.
type reloads struct {
	t        *testing.T
	dir      string
	clock    *clocktest.Fake
	sink     *reloadSink
	source   *reloadSource
	canaries chan struct{} // that have begun
	registry *prometheus.Registry
	e        *engine.Engine
	stop     func() // the engine; does nothing before it runs
	input    string
	ticks    int
	event    uint64             // ID of the last one that was seen
	counts   map[string]float64 // of components built, before the last update
}

func (h *reloads) path(name string) string { return filepath.Join(h.dir, filepath.FromSlash(name)) }

// save writes a file, as a program does that renames.
func (h *reloads) save(name, content string) {
	h.t.Helper()
	path := h.path(name)
	err := os.MkdirAll(filepath.Dir(path), 0o755)
	if err == nil {
		err = os.WriteFile(path+"~", []byte(content), 0o644)
	}
	if err == nil {
		err = os.Rename(path+"~", path)
	}
	if err != nil {
		h.t.Fatal(err)
	}
}

const tickFile = "scripts/reload/tick.lua"

// tick saves the script that shows that everything before was noticed.
func (h *reloads) tick() {
	h.ticks++
	h.save(tickFile, fmt.Sprintf("-- %d\nreturn require(\"weir\").transform { series = function(s) end }\n", h.ticks))
}

// shell runs commands. A tool that is missing fails the test in CI, and skips it elsewhere.
func (h *reloads) shell(commands string, tools []string) {
	h.t.Helper()
	for _, tool := range append(tools, "sh") {
		if _, err := exec.LookPath(tool); err == nil {
			continue
		}
		if os.Getenv("CI") == "true" {
			h.t.Fatalf("%s is not installed; .ci/packages.sh installs it", tool)
		}
		h.t.Skipf("%s is not installed", tool)
	}
	cmd := exec.Command("sh", "-euc", commands)
	cmd.Dir = h.dir
	cmd.Env = append(os.Environ(), "HOME="+h.t.TempDir(), "LC_ALL=C")
	if out, err := cmd.CombinedOutput(); err != nil {
		h.t.Fatalf("%s: %v\n%s", commands, err, out)
	}
}

// start runs the engine, unless it runs.
func (h *reloads) start() {
	h.t.Helper()
	if h.e != nil {
		return
	}
	storage := h.t.TempDir()
	log := slog.New(slog.NewTextHandler(canaryLog{h}, nil))
	use := scriptsUse{log: log, versions: versions.Open(storage, versions.DefaultLimits, log), compilers: registry.NewCompilers(0)}
	catalogs, err := use.catalogs(h.path("scripts"))
	if err != nil {
		h.t.Fatal(err)
	}
	h.e, err = engine.New(engine.Options{
		Catalogs: append(catalogs, component.NewList(h.sink.registration(), h.source.registration())), Scripts: use.imported,
		Logger: log, Registerer: h.registry, StoragePath: storage, WatchConfig: true, Clock: h.clock,
	})
	if err != nil {
		h.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- h.e.Run(ctx, h.path("config")) }()
	h.stop = func() {
		cancel()
		if err := <-done; err != nil {
			h.t.Error(err)
		}
	}
	if r := h.nextRecord(); r.Trigger.Kind != service.TriggerStart || r.Outcome != "applied" {
		h.t.Fatalf("the engine starts with %+v", r)
	}
}

// canaryLog reports each canary that begins.
type canaryLog struct{ h *reloads }

func (l canaryLog) Write(p []byte) (int, error) {
	if bytes.Contains(p, []byte(`msg="a canary begins"`)) {
		l.h.canaries <- struct{}{}
	}
	return len(p), nil
}

// reloadPatience is how long the engine may take for anything on a busy machine.
const reloadPatience = 2 * time.Minute

// maxBurst is how long the watcher waits at most for the end of a save.
const maxBurst = 10 * watch.Quiet

// await waits for what, while time passes as far as the watcher needs it.
func (h *reloads) await(c <-chan struct{}, what string) {
	h.t.Helper()
	ctx, cancel := context.WithTimeout(h.t.Context(), reloadPatience)
	passed := make(chan struct{})
	go func() {
		defer close(passed)
		for h.clock.WaitDue(ctx, maxBurst) == nil {
			h.clock.Advance(watch.Quiet)
		}
	}()
	defer func() {
		cancel()
		<-passed
	}()
	select {
	case <-c:
	case <-ctx.Done():
		h.t.Fatalf("waited %s for %s; the last records are %+v", reloadPatience, what, h.e.Reloads())
	}
}

// awaitCanary waits until a version that runs has a canary. If the change is one of
// arguments too, a canary begins next to the version that runs, and moves to the one that is
// built with the new arguments.
func (h *reloads) awaitCanary() {
	h.t.Helper()
	h.await(h.canaries, "a canary")
	if _, err := h.e.RunningConfig(h.t.Context()); err != nil { // the worker answers after it has built what it wanted to build
		h.t.Fatal(err)
	}
	for !h.hasCanary() {
		h.await(h.canaries, "a canary of the version that runs")
	}
}

func (h *reloads) hasCanary() bool {
	h.t.Helper()
	for _, i := range h.e.ListComponents() {
		c, ok := h.e.GetComponent(i.ID)
		d, debugs := c.(component.Debugger)
		if !ok || !debugs {
			continue
		}
		info, err := json.Marshal(d.DebugInfo())
		if err != nil {
			h.t.Fatal(err)
		}
		if bytes.Contains(info, []byte(`"canary":`)) {
			return true
		}
	}
	return false
}

// nextRecord waits for the next record of a change.
func (h *reloads) nextRecord() service.Reload {
	h.t.Helper()
	for {
		events, more := h.e.ReloadEvents(h.event)
		for _, e := range events {
			h.event = e.ID
			if e.Reload != nil {
				return *e.Reload
			}
		}
		h.await(more, "the record of a change")
	}
}

// settle waits for the reload of the last update, unless there is none, and for that of
// another script, and returns what the reloads did.
func (h *reloads) settle(none bool) string {
	h.t.Helper()
	var records []service.Reload
	for done := none; !done; {
		r := h.nextRecord()
		records = append(records, r)
		done = r.Outcome != "in progress" && !slices.ContainsFunc(r.Nodes, inProgressNode)
	}
	h.tick()
	for ticked := false; !ticked; {
		r := h.nextRecord()
		ticked = slices.ContainsFunc(r.Nodes, func(n service.ReloadNode) bool { return n.ID == "reload.tick.default" && n.Action == "rebuilt" })
		if files := h.files(r); files != tickFile {
			records = append(records, r)
		} else if others := len(r.Nodes); ticked && others > 1 {
			h.t.Errorf("another node changes with reload.tick.default: %+v", r.Nodes)
		}
	}
	var got []string
	built := h.built()
	for _, group := range changesOf(records) {
		got = append(got, h.describe(group)...)
		if len(group) > 1 {
			built = slices.Compact(built)
		}
	}
	got = append(got, built...)
	if len(got) == 0 {
		return "none"
	}
	return strings.Join(got, "\n")
}

func inProgressNode(n service.ReloadNode) bool { return n.Action == "in progress" }

// changesOf groups records: a change whose compiling or trials take longer than the engine
// waits for has several. If the change is one of arguments too, the running version may be
// built with them first.
func changesOf(records []service.Reload) (groups [][]service.Reload) {
	for _, r := range records {
		i := slices.IndexFunc(groups, func(g []service.Reload) bool {
			return slices.ContainsFunc(g, func(before service.Reload) bool { return slices.Contains(r.Follows, before.ID) })
		})
		if i < 0 {
			i, groups = len(groups), append(groups, nil)
		}
		groups[i] = append(groups[i], r)
	}
	return groups
}

// describe returns the outcomes of a change, and why something was refused.
func (h *reloads) describe(group []service.Reload) (out []string) {
	for _, r := range group {
		line := r.Outcome + ": " + h.files(r)
		if r.Outcome == "in progress" || slices.Contains(out, line) {
			continue
		}
		out = append(out, line)
		if r.Outcome == "refused" {
			out = append(out, h.plain(r.Message))
		}
		for _, n := range r.Nodes {
			if n.Message == "" {
				continue
			}
			out = append(out, n.ID+": "+h.plain(n.Message))
			for _, i := range h.e.ListComponents() {
				if i.ID == n.ID && i.Health.Message != n.Message {
					h.t.Errorf("the health of %s is %q, its record is %q", n.ID, i.Health.Message, n.Message)
				}
			}
		}
	}
	return out
}

// files returns the names of the files that caused a change.
func (h *reloads) files(r service.Reload) string {
	names := make([]string, len(r.Trigger.Files))
	for i, path := range r.Trigger.Files {
		names[i] = filepath.ToSlash(strings.TrimPrefix(path, h.dir+string(filepath.Separator)))
	}
	return strings.Join(names, " ")
}

var (
	// anyVersion is a version in a message: it depends on more than the case.
	anyVersion = regexp.MustCompile(`\b([0-9a-f]{7}|[0-9a-f]{12,64})\b`)
	// measured is a time that a version took.
	measured = regexp.MustCompile(`(takes|took|running version:?) [0-9.]+ ?(ns|µs|ms|s)\b`)
)

// plain is a message without what differs from run to run.
func (h *reloads) plain(message string) string {
	message = strings.ReplaceAll(message, h.dir+string(filepath.Separator), "")
	return anyVersion.ReplaceAllString(measured.ReplaceAllString(message, "$1 TIME"), "VERSION")
}

// built returns a line for each component that was built since the last update.
func (h *reloads) built() (out []string) {
	h.t.Helper()
	for id, n := range h.metrics() {
		n -= h.counts[id]
		if id == "reload.tick.default" {
			n--
		}
		for range int(n) {
			out = append(out, "built "+id)
		}
	}
	slices.Sort(out)
	return out
}

// metrics returns how many components were built for each node.
func (h *reloads) metrics() map[string]float64 {
	h.t.Helper()
	families, err := h.registry.Gather()
	if err != nil {
		h.t.Fatal(err)
	}
	counts := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			if f.GetName() == "weir_component_builds_total" {
				counts[m.GetLabel()[0].GetValue()] = m.GetCounter().GetValue()
			}
		}
	}
	return counts
}

// control returns the answer of a node to a command.
func (h *reloads) control(command string) string {
	h.t.Helper()
	name, id, _ := strings.Cut(command, " ")
	path, ok := map[string]string{"promote": "/canary/promote", "rollback": "/rollback", "unpin": "/unpin"}[name]
	c, known := h.e.GetComponent(id)
	if !ok || !known {
		h.t.Fatalf("cannot do %q: there is no such command or node", command)
	}
	w := httptest.NewRecorder()
	c.(component.Controller).Control().ServeHTTP(w, httptest.NewRequest(http.MethodPost, path, nil))
	return h.plain(strings.TrimSpace(w.Body.String()))
}

func (h *reloads) duration(text string) time.Duration {
	h.t.Helper()
	d, err := time.ParseDuration(text)
	if err != nil {
		h.t.Fatal(err)
	}
	return d
}

// passHalf has d pass in the middle of a save. The watcher looks at the files, and waits
// again.
func (h *reloads) passHalf(d time.Duration) {
	h.t.Helper()
	ctx, cancel := context.WithTimeout(h.t.Context(), reloadPatience)
	defer cancel()
	err := h.clock.WaitDue(ctx, watch.Quiet)
	if err == nil {
		h.clock.Advance(d)
		err = h.clock.WaitDue(ctx, maxBurst)
	}
	if err != nil {
		h.t.Fatalf("the watcher does not wait: %v", err)
	}
}

func (h *reloads) number(text string) int {
	h.t.Helper()
	if text == "" {
		return 1
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		h.t.Fatal(err)
	}
	return n
}

func (h *reloads) setInput(text, times string) {
	h.t.Helper()
	h.input = ""
	for line := range strings.Lines(text) {
		for i := range h.number(times) {
			h.input += strings.ReplaceAll(line, "#", strconv.Itoa(i))
		}
	}
}

func (h *reloads) send() {
	h.t.Helper()
	h.start()
	h.sink.take()
	if err := h.source.send(h.input); err != nil {
		h.t.Fatal(err)
	}
}

func (h *reloads) expect(section *txtar.File, got string) {
	h.t.Helper()
	got = strings.TrimSpace(got) + "\n"
	if *update {
		section.Data = []byte(got)
		return
	}
	if diff := cmp.Diff(string(section.Data), got); diff != "" {
		h.t.Errorf("%s (-want +got):\n%s", section.Name, diff)
	}
}

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/flow"
	"github.com/weir-run/weir/scripting/registry"
	"github.com/weir-run/weir/scripting/versions"
)

// TestReload saves files in the ways in which people and tools save them, while an engine
// with scripts and with the watcher of the operating system runs. A case in
// testdata/reload has files, which include config/main.alloy and are written first, and
// then sections, which are done in order:
//
//	setup   shell commands, before the engine runs
//	update  shell commands; TOOL… after it are the programs that they need
//	reload  the outcomes of the reloads since the last update, one per line, then a line
//	        "built NODE" for each component that was built, and the announced errors. If it
//	        is "none", the files had no change.
//	output  the samples that arrive at test.sink when the sample "m 1" is pushed to test.source
//
// A machine that is too busy may pause a tool between two files for longer than weir waits,
// so only a case that fails several times has failed.
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
			var diffs []string
			for range attempts {
				if diffs = playReloads(t, a); len(diffs) == 0 {
					break
				}
			}
			for _, d := range diffs {
				t.Error(d)
			}
			if after := txtar.Format(a); *update && !bytes.Equal(before, after) {
				if err := os.WriteFile(name, after, 0o644); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// attempts is how often a case is played until it passes.
const attempts = 3

// playReloads plays a case, and returns the differences from what it expects.
func playReloads(t *testing.T, a *txtar.Archive) []string {
	h := &reloads{t: t, dir: t.TempDir(), sink: &reloadSink{}, source: &reloadSource{}, lines: make(chan string, 100), registry: prometheus.NewRegistry(), stop: func() {}}
	h.save("config/tick.alloy", `reload.tick "default" { forward_to = [] }`)
	h.tick()
	defer func() { h.stop() }()
	for i := range a.Files {
		f := &a.Files[i]
		name, tools, _ := strings.Cut(f.Name, " ")
		switch name {
		case "setup":
			h.shell(string(f.Data), strings.Fields(tools))
		case "update":
			h.start()
			h.shell(string(f.Data), strings.Fields(tools))
		case "reload":
			h.expect(f, h.settle(strings.TrimSpace(string(f.Data)) == "none"))
		case "output":
			h.start()
			h.expect(f, h.push())
		default:
			h.save(f.Name, string(f.Data))
		}
	}
	return h.diffs
}

// reloads is an engine that runs in a directory.
type reloads struct {
	t        *testing.T
	dir      string
	sink     *reloadSink
	source   *reloadSource
	lines    chan string // that were announced
	registry *prometheus.Registry
	stop     func() // the engine; does nothing before it runs
	running  bool
	ticks    int
	counts   map[string]float64 // of the metrics before the last update
	diffs    []string
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

// tick saves the script that shows that everything before was noticed.
func (h *reloads) tick() {
	h.ticks++
	h.save("scripts/reload/tick.lua", fmt.Sprintf("-- %d\nreturn require(\"weir\").transform { series = function(s) end }\n", h.ticks))
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

// start runs the engine, unless it runs, and notes the metrics.
func (h *reloads) start() {
	h.t.Helper()
	if !h.running {
		h.running = true
		h.run()
	}
	h.counts = h.metrics()
}

func (h *reloads) run() {
	h.t.Helper()
	storage := h.t.TempDir()
	log := slog.New(slog.DiscardHandler)
	use := scriptsUse{log: log, versions: versions.Open(storage, versions.DefaultLimits, log), compilers: registry.NewCompilers(0)}
	catalogs, err := use.catalogs(h.path("scripts"))
	if err != nil {
		h.t.Fatal(err)
	}
	e, err := engine.New(engine.Options{
		Catalogs: append(catalogs, component.NewList(h.sink.registration(), h.source.registration())), Scripts: use.imported,
		Logger: log, Registerer: h.registry, StoragePath: storage, WatchConfig: true,
		Announce: func(line string) { h.lines <- line },
	})
	if err != nil {
		h.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- e.Run(ctx, h.path("config")) }()
	h.stop = func() {
		cancel()
		if err := <-done; err != nil {
			h.t.Error(err)
		}
	}
	if line := h.announced(); !strings.HasPrefix(line, "started config ") {
		h.t.Fatalf("the engine announces %s", line)
	}
}

// announced returns the next line that the engine announces.
func (h *reloads) announced() string {
	h.t.Helper()
	select {
	case line := <-h.lines:
		return line
	case <-time.After(30 * time.Second):
		h.t.Fatal("the engine does not announce a reload")
		return ""
	}
}

// settle waits for the reload of the last update, unless there is none, and for that of
// another script, and returns what the reloads did.
func (h *reloads) settle(none bool) string {
	h.t.Helper()
	var errs []string
	note := func(line string) {
		if message, ok := strings.CutPrefix(line, "cannot "); ok {
			message = strings.ReplaceAll(message, h.dir+string(filepath.Separator), "")
			errs = append(errs, "cannot "+shortVersion.ReplaceAllString(message, "VERSION"))
		}
	}
	if !none {
		note(h.announced())
	}
	h.tick()
	var now map[string]float64
	for {
		line := h.announced()
		const tick = "built reload.tick.default"
		if now = h.metrics(); now[tick] == h.counts[tick] {
			note(line)
			continue
		}
		if !strings.HasPrefix(line, "reloaded reload.tick (") {
			errs = append(errs, "a part was noticed later: "+line)
		}
		break
	}
	var got []string
	for name, n := range now {
		n -= h.counts[name]
		kind, of, _ := strings.Cut(name, " ")
		switch {
		case name == "reload applied" || name == "built reload.tick.default":
			n-- // the tick
		}
		for range int(n) {
			got = append(got, map[string]string{"reload": "", "built": "built "}[kind]+of)
		}
	}
	if len(got) == 0 {
		return "none"
	}
	slices.Sort(got)
	return strings.Join(append(got, errs...), "\n")
}

// metrics returns the counts of reloads by outcome, and of components built by node.
func (h *reloads) metrics() map[string]float64 {
	h.t.Helper()
	families, err := h.registry.Gather()
	if err != nil {
		h.t.Fatal(err)
	}
	counts := map[string]float64{}
	for _, f := range families {
		kind := map[string]string{"weir_engine_reloads_total": "reload", "weir_component_builds_total": "built"}[f.GetName()]
		for _, m := range f.GetMetric() {
			if kind != "" {
				counts[kind+" "+m.GetLabel()[0].GetValue()] = m.GetCounter().GetValue()
			}
		}
	}
	return counts
}

// shortVersion is a version in an announcement: it depends on more than the case.
var shortVersion = regexp.MustCompile(`\b[0-9a-f]{7}\b`)

// push sends a sample and returns what arrives.
func (h *reloads) push() string {
	h.t.Helper()
	b, err := batch.ParseText("m 1\n", batch.TextOptions{T: 1})
	if err != nil {
		h.t.Fatal(err)
	}
	b.Source = batch.NewPushSource()
	h.sink.take()
	if err := h.source.send(b); err != nil {
		h.t.Fatal(err)
	}
	return strings.TrimSpace(h.sink.take())
}

func (h *reloads) expect(section *txtar.File, got string) {
	h.t.Helper()
	got += "\n"
	if *update {
		section.Data = []byte(got)
		return
	}
	if diff := cmp.Diff(string(section.Data), got); diff != "" {
		h.diffs = append(h.diffs, fmt.Sprintf("%s (-want +got):\n%s", section.Name, diff))
	}
}

// reloadSink is test.sink, which collects samples as text.
type reloadSink struct {
	mu   sync.Mutex
	text []byte
}

func (s *reloadSink) registration() component.Registration {
	type exports struct {
		Receiver *flow.Receiver `alloy:"receiver,attr"`
	}
	return component.Registration{
		Name: "test.sink", Accepts: batch.SignalMetrics, NewArgs: func() any { return &struct{}{} }, Exports: exports{},
		Build: func(component.Options, any, component.Component) (component.Component, error) { return s, nil },
	}
}

func (s *reloadSink) Run(ctx context.Context) error {
	<-ctx.Done()
	return nil
}

func (s *reloadSink) ConsumeMetrics(_ context.Context, b *batch.Metrics) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.text = batch.AppendText(s.text, b)
	return nil
}

// take returns what came since it was called last, without the ends of series.
func (s *reloadSink) take() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var text string
	for line := range strings.Lines(string(s.text)) {
		if !strings.Contains(line, "NaN") {
			text += line
		}
	}
	s.text = nil
	return text
}

// reloadSource is test.source, which sends what it is given.
type reloadSource struct {
	mu  sync.Mutex
	out *flow.Output
}

func (s *reloadSource) registration() component.Registration {
	type arguments struct {
		ForwardTo []*flow.Receiver `alloy:"forward_to,attr"`
	}
	return component.Registration{
		Name: "test.source", Sends: batch.SignalMetrics, NewArgs: func() any { return &arguments{} },
		Build: func(o component.Options, args any, _ component.Component) (component.Component, error) {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.out = flow.NewOutput(o.Stats, args.(*arguments).ForwardTo)
			return s, nil
		},
	}
}

func (s *reloadSource) Run(ctx context.Context) error {
	<-ctx.Done()
	return nil
}

func (s *reloadSource) send(b *batch.Metrics) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.out == nil {
		return errors.New("the config has no test.source")
	}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	return s.out.SendMetrics(ctx, b)
}

package telemetry_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/weir-run/weir/engine/config"
	"github.com/weir-run/weir/engine/service"
	"github.com/weir-run/weir/engine/service/telemetry"
)

type buffer struct {
	mu sync.Mutex
	b  strings.Builder
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *buffer) takeText() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	defer b.b.Reset()
	return b.b.String()
}

func newService(t *testing.T, format string) (*telemetry.Service, *buffer) {
	t.Helper()
	b := &buffer{}
	s, err := telemetry.New(telemetry.Options{Output: b, Format: format})
	if err != nil {
		t.Fatal(err)
	}
	return s, b
}

var timestamps = regexp.MustCompile(`ts=\S+ |"ts":"[^"]+",`)

func TestLogger(t *testing.T) {
	s, b := newService(t, "")
	log := s.Logger().With("component_id", "a.b").WithGroup("g").With("x", 1)
	set := func(level, format string) {
		t.Helper()
		if err := s.Update(&telemetry.Arguments{Level: level, Format: format, Destination: "stderr"}); err != nil {
			t.Fatal(err)
		}
	}
	f := func(want string) {
		t.Helper()
		log.Debug("one", "level", "mine")
		log.Warn("two")
		got := b.takeText()
		if got != "" && !timestamps.MatchString(got) {
			t.Errorf("no time in %q", got)
		}
		if got = timestamps.ReplaceAllString(got, ""); got != want {
			t.Errorf("got\n%swant\n%s", got, want)
		}
	}
	f("level=warn msg=two component_id=a.b g.x=1\n")
	set("debug", "logfmt")
	f("level=debug msg=one component_id=a.b g.x=1 g.level=mine\nlevel=warn msg=two component_id=a.b g.x=1\n")
	set("warn", "json")
	f(`{"level":"warn","msg":"two","component_id":"a.b","g":{"x":1}}` + "\n")
	set("error", "json")
	f("")
	want := `
# HELP weir_log_lines_total Lines that were logged, by level.
# TYPE weir_log_lines_total counter
weir_log_lines_total{level="debug"} 1
weir_log_lines_total{level="error"} 0
weir_log_lines_total{level="info"} 0
weir_log_lines_total{level="warn"} 3
`
	if err := testutil.GatherAndCompare(s.Gatherer(), strings.NewReader(want), "weir_log_lines_total"); err != nil {
		t.Error(err)
	}
	if s.Logger().Enabled(t.Context(), slog.LevelWarn) {
		t.Error("warn is enabled at level error")
	}
}

// TestDurations: one has its unit in both formats, in a group too.
func TestDurations(t *testing.T) {
	for format, want := range map[string]string{
		"logfmt": "level=info msg=done took=1.5s g.wait=2ms\n",
		"json":   `{"level":"info","msg":"done","took":"1.5s","g":{"wait":"2ms"}}` + "\n",
	} {
		s, b := newService(t, format)
		if got := s.Format(); got != format {
			t.Errorf("got format %s, want %s", got, format)
		}
		s.Logger().Info("done", "took", 1500*time.Millisecond, slog.Group("g", "wait", 2*time.Millisecond))
		if got := timestamps.ReplaceAllString(b.takeText(), ""); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

func TestFormatOfCommandLine(t *testing.T) {
	s, b := newService(t, "json")
	if err := s.Update(&telemetry.Arguments{Level: "info", Format: "logfmt"}); err != nil {
		t.Fatal(err)
	}
	s.Logger().Info("hello")
	if got := b.takeText(); !json.Valid([]byte(got)) {
		t.Errorf("got %q, want JSON as the command line says", got)
	}
	if _, err := telemetry.New(telemetry.Options{Format: "xml"}); err == nil {
		t.Error("format xml was accepted")
	}
}

// TestConcurrent changes the format while lines are written: each stays whole.
func TestConcurrent(t *testing.T) {
	s, b := newService(t, "")
	var wg sync.WaitGroup
	for range 4 {
		log := s.Logger().With("a", 1)
		wg.Go(func() {
			for range 500 {
				log.Info("line")
			}
		})
	}
	for i := range 200 {
		if err := s.Update(&telemetry.Arguments{Level: "info", Format: telemetry.Formats[i%2]}); err != nil {
			t.Fatal(err)
		}
	}
	wg.Wait()
	lines := strings.Split(strings.TrimSpace(b.takeText()), "\n")
	if len(lines) != 2000 {
		t.Errorf("%d lines, want 2000", len(lines))
	}
	for _, l := range lines {
		if !json.Valid([]byte(l)) && !strings.HasSuffix(l, "level=info msg=line a=1") {
			t.Fatalf("broken line %q", l)
		}
	}
}

func TestBlock(t *testing.T) {
	def := func() service.Definition { s, _ := newService(t, ""); return s.Definition() }()
	f := func(block, want string) {
		t.Helper()
		c, ds := config.Parse(map[string]string{"c.alloy": block})
		if len(ds) > 0 {
			t.Fatal(ds)
		}
		var got []string
		for _, d := range c.Blocks[0].Decode(c.NewScope("v1"), def.NewConfig()) {
			got = append(got, d.Msg)
		}
		if s := strings.Join(got, "; "); s != want {
			t.Errorf("%s: got %q, want %q", block, s, want)
		}
	}
	f("logging { }", "")
	f(def.Doc.Example, "")
	f("logging {\n level = \"loud\"\n}", `level must be debug, info, warn or error, not "loud"`)
	f("logging {\n format = \"xml\"\n}", `format must be logfmt or json, not "xml"`)
	f("logging {\n destination = \"windows_event_log\"\n}", `destination "windows_event_log" is not supported: use "stderr"`)
	f("logging {\n level = \"x\"\n format = \"y\"\n}", `level must be debug, info, warn or error, not "x"; format must be logfmt or json, not "y"`)
	for _, field := range config.Describe(def.NewConfig()) {
		if def.Doc.Args[field.Path] == "" {
			t.Errorf("%s is not documented", field.Path)
		}
	}
}

func TestRun(t *testing.T) {
	s, _ := newService(t, "")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Run(ctx, nil); err != nil {
		t.Error(err)
	}
	if d, ok := s.Data().(service.TelemetryData); !ok || d.Gatherer == nil {
		t.Errorf("got data %v", s.Data())
	}
}

package secretfilter_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/clock"
	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/component/componenttest"
	"github.com/weir-run/weir/engine/flow"
	"github.com/weir-run/weir/engine/flow/flowtest"
	"github.com/weir-run/weir/natives/loki/secretfilter"
)

type node interface {
	component.Component
	component.Updater
	component.Sourced
	flow.LogsConsumer
}

func decode(body string) (*secretfilter.Arguments, string) {
	return componenttest.Decode[*secretfilter.Arguments](secretfilter.Registration(), "forward_to = []\n"+body)
}

// harness is a component and its sink.
type harness struct {
	t    *testing.T
	n    *componenttest.Node
	sink *flowtest.Sink
	c    node
}

func newHarness(t *testing.T, body string) *harness {
	l := &harness{t: t, n: componenttest.New(t, "loki.secretfilter.s"), sink: flowtest.NewSink("sink")}
	l.c = l.n.Build(t, secretfilter.Registration(), l.arguments(body)).(node)
	return l
}

func (l *harness) arguments(body string) *secretfilter.Arguments {
	l.t.Helper()
	a, errs := decode(body)
	if errs != "" {
		l.t.Fatal(errs)
	}
	a.ForwardTo = []*flow.Receiver{l.sink.Receiver()}
	return a
}

var web = batch.NewSeries([]batch.Label{{Name: "app", Value: "web"}})

// send sends lines of one stream and returns the output.
func (l *harness) send(lines ...string) *batch.Logs {
	l.t.Helper()
	b := &batch.Logs{Source: 1, Line: lines}
	for i := range lines {
		b.Stream, b.T = append(b.Stream, web), append(b.T, int64(i))
	}
	if err := l.c.ConsumeLogs(l.t.Context(), b); err != nil {
		l.t.Fatal(err)
	}
	return l.sink.LastLogs()
}

func (l *harness) want(in string, want string) {
	l.t.Helper()
	if got := l.send(in).Line[0]; got != want {
		l.t.Errorf("got %q\nwant %q", got, want)
	}
}

func (l *harness) metrics(want string, names ...string) {
	l.t.Helper()
	if err := testutil.GatherAndCompare(l.n.Registry, strings.NewReader(want), names...); err != nil {
		l.t.Error(err)
	}
}

// Secrets that no program ever used, in parts, so that secret scanners do not
// find them in this file.
var (
	githubToken = "ghp_" + "16C7e42F292c6912E7710c838347Ae178B4a" // 40 bytes
	gitlabToken = "glpat-" + "aB3dE5fG7hI9jK1lM2nO"
)

func TestRedact(t *testing.T) {
	f := func(body, in, want string) {
		t.Helper()
		newHarness(t, body).want(in, want)
	}
	// By default, a fifth stays; 0 has the same effect.
	f("", "token is "+githubToken+" !", "token is ghp_16C7... !")
	f("redact_percent = 0", githubToken, "ghp_16C7...")
	f("redact_percent = 50", githubToken, githubToken[:20]+"...")
	f("redact_percent = 99", githubToken, "...")
	f("redact_percent = 100", "token is "+githubToken, "token is REDACTED")
	// Replacements.
	f(`redact_with = "<$SECRET_NAME>"`, "a "+githubToken+" b", "a <github-pat> b")
	f(`redact_with = "<$SECRET_NAME:$SECRET_HASH>"`, githubToken, "<github-pat:661d8537b677bab547cd6fa69cc9e1c41aa6fcb1>")
	f(`redact_with = "$SECRET_OTHER"`, githubToken, "$SECRET_OTHER")
	// All of several secrets, at all positions.
	f(`redact_with = "<$SECRET_NAME>"`, githubToken+" "+gitlabToken+" "+githubToken, "<github-pat> <gitlab-pat> <github-pat>")
	// A secret inside another one, and overlapping secrets.
	f(`redact_with = "<$SECRET_NAME>"`, "token = "+githubToken, "token = <github-pat>")
	// No secrets.
	for _, line := range []string{"", "x", "GET /api/v1/users 200", "key=cpu_usage", "token=" + strings.Repeat("a", 40), githubToken + " # gitleaks:allow"} {
		f("", line, line)
	}
}

// TestOverlap: overlapping secrets of two rules are redacted completely.
func TestOverlap(t *testing.T) {
	path := filepath.Join(t.TempDir(), "rules.toml")
	write(t, path, "[[rules]]\nid = \"one\"\nregex = 'aaabbb'\n[[rules]]\nid = \"two\"\nregex = 'bbbccc'\n[[rules]]\nid = \"part\"\nregex = 'aab'\n")
	l := newHarness(t, fmt.Sprintf("gitleaks_config = %q\nredact_with = \"<$SECRET_NAME>\"", path))
	l.want("x aaabbbccc y", "x <one> y")
	l.want("x bbbccc y aab", "x <two> y <part>")
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestUnchanged: a batch without secrets is forwarded unchanged. If there are
// secrets, only the lines are copied.
func TestUnchanged(t *testing.T) {
	l := newHarness(t, "")
	b := &batch.Logs{Source: 1, Stream: []*batch.Stream{web, web}, T: []int64{1, 2}, Line: []string{"a", "b"}, Ack: batch.NewAck(func() {})}
	if err := l.c.ConsumeLogs(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	got := l.sink.Logs()[0]
	if &got.Line[0] != &b.Line[0] || got.Ack != b.Ack {
		t.Error("a batch without secrets was copied")
	}
	b.Line = []string{"a", githubToken}
	if err := l.c.ConsumeLogs(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	got = l.sink.Logs()[1]
	if b.Line[1] != githubToken {
		t.Error("the source's batch was changed")
	}
	if diff := cmp.Diff([]string{"a", "ghp_16C7..."}, got.Line); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if &got.Stream[0] != &b.Stream[0] || &got.T[0] != &b.T[0] || got.Ack != b.Ack {
		t.Error("what did not change is not shared")
	}
}

func TestMetrics(t *testing.T) {
	l := newHarness(t, `origin_label = "app"`)
	l.send(githubToken, "x", gitlabToken+" "+githubToken)
	const want = `# HELP weir_secretfilter_secrets_redacted_total Secrets that were redacted, by the rule that found them and the value of origin_label.
# TYPE weir_secretfilter_secrets_redacted_total counter
weir_secretfilter_secrets_redacted_total{component_id="loki.secretfilter.s",origin="web",rule="github-pat"} 2
weir_secretfilter_secrets_redacted_total{component_id="loki.secretfilter.s",origin="web",rule="gitlab-pat"} 1
`
	l.metrics(want, "weir_secretfilter_secrets_redacted_total")
	// The metrics continue in the next component, which has no origin label.
	l.n.Previous = l.c
	l.c = l.n.Build(t, secretfilter.Registration(), l.arguments("")).(node)
	l.send(githubToken)
	l.metrics(want[:strings.Index(want, "weir_secretfilter_secrets_redacted_total{")]+
		`weir_secretfilter_secrets_redacted_total{component_id="loki.secretfilter.s",origin="",rule="github-pat"} 1`+"\n"+
		want[strings.Index(want, "weir_secretfilter_secrets_redacted_total{"):], "weir_secretfilter_secrets_redacted_total")
}

// TestManyOrigins: labels that come from lines do not exhaust the memory.
func TestManyOrigins(t *testing.T) {
	l := newHarness(t, `origin_label = "app"`)
	b := &batch.Logs{Source: 1}
	for i := range 1500 {
		s := batch.NewSeries([]batch.Label{{Name: "app", Value: fmt.Sprint("app", i)}})
		b.Stream, b.T, b.Line = append(b.Stream, s), append(b.T, 1), append(b.Line, githubToken)
	}
	if err := l.c.ConsumeLogs(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	n, err := testutil.GatherAndCount(l.n.Registry, "weir_secretfilter_secrets_redacted_total")
	if err != nil || n != 1001 {
		t.Errorf("got %d series and %v, want 1001", n, err)
	}
}

func TestRate(t *testing.T) {
	lines := make([]string, 1000)
	for i := range lines {
		lines[i] = githubToken
	}
	f := func(rate string, from, to int) {
		t.Helper()
		l := newHarness(t, "rate = "+rate)
		n := 0
		for _, line := range l.send(lines...).Line {
			if line != githubToken {
				n++
			}
		}
		if n < from || n > to {
			t.Errorf("rate %s: %d of 1000 lines were looked at", rate, n)
		}
		l.metrics(fmt.Sprintf(`# HELP weir_secretfilter_lines_bypassed_total Lines that were not looked at because of rate.
# TYPE weir_secretfilter_lines_bypassed_total counter
weir_secretfilter_lines_bypassed_total{component_id="loki.secretfilter.s"} %d
`, 1000-n), "weir_secretfilter_lines_bypassed_total")
	}
	f("0", 0, 0)
	f("1", 1000, 1000)
	f("0.5", 300, 700) // 12 standard deviations
}

// steps is a clock whose time advances with each call.
type steps struct {
	clock.Clock
	mu sync.Mutex
	d  time.Duration
}

func (s *steps) Now() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.d += time.Second
	return s.Clock.Now().Add(s.d)
}

func TestTimeout(t *testing.T) {
	f := func(body string, wantLines []string, wantStream string, dropped uint64, timedOut int) {
		t.Helper()
		l := &harness{t: t, n: componenttest.New(t, "loki.secretfilter.s"), sink: flowtest.NewSink("sink")}
		o := l.n.Options()
		o.Clock = &steps{Clock: l.n.Clock}
		c, err := secretfilter.Registration().Build(o, l.arguments(body), nil)
		if err != nil {
			t.Fatal(err)
		}
		l.c = c.(node)
		out := l.send("x", githubToken)
		if diff := cmp.Diff(wantLines, out.Line); diff != "" {
			t.Errorf("%s (-want +got):\n%s", body, diff)
		}
		if len(out.Stream) == 2 && out.Stream[1].String() != wantStream {
			t.Errorf("%s: got stream %s, want %s", body, out.Stream[1], wantStream)
		}
		if got := l.n.Stats.DroppedLines()["timeout"]; got != dropped {
			t.Errorf("%s: got %d dropped, want %d", body, got, dropped)
		}
		l.metrics(fmt.Sprintf(`# HELP weir_secretfilter_lines_timed_out_total Lines for which processing_timeout was too short.
# TYPE weir_secretfilter_lines_timed_out_total counter
weir_secretfilter_lines_timed_out_total{component_id="loki.secretfilter.s"} %d
`, timedOut), "weir_secretfilter_lines_timed_out_total")
	}
	f(`processing_timeout = "1m"`, []string{"x", "ghp_16C7..."}, `{app="web"}`, 0, 0)
	f(`processing_timeout = "500ms"`, []string{"x", githubToken}, `{app="web"}`, 0, 1)
	f("processing_timeout = \"500ms\"\nlabel_timed_out = true", []string{"x", githubToken}, `{app="web",secretfilter="timed-out"}`, 0, 1)
	f("processing_timeout = \"500ms\"\ndrop_on_timeout = true", []string{"x"}, "", 1, 1)
}

func TestArguments(t *testing.T) {
	f := func(body string, want ...string) {
		t.Helper()
		_, errs := decode(body)
		for _, w := range want {
			if !strings.Contains(errs, w) {
				t.Errorf("%s: got %q, want %q", body, errs, w)
			}
		}
		if len(want) == 0 && errs != "" {
			t.Errorf("%s: %s", body, errs)
		}
	}
	f("")
	f("rate = 1.5\nredact_percent = 101\nprocessing_timeout = \"-1s\"", "rate is 1.5, must be between 0 and 1", "redact_percent is 101, must be at most 100", "processing_timeout is -1s, must not be negative")
	f("types = [\"aws\"]", "types")
	w := func(body string, want ...string) {
		t.Helper()
		a, errs := decode(body)
		if diff := cmp.Diff(want, a.Warnings()); diff != "" || strings.Contains(errs, "error") {
			t.Errorf("%s: %s (-want +got):\n%s", body, errs, diff)
		}
	}
	w("redact_with = \"x\"\nredact_percent = 3", "redact_percent has no effect when redact_with is set")
	w("drop_on_timeout = true", "drop_on_timeout has no effect without processing_timeout")
	w("label_timed_out = true", "label_timed_out has no effect without processing_timeout or when drop_on_timeout is set")
}

// TestMatchLimit sends a line for which a rule would need hours. It is dropped,
// because its content is unknown, and the other lines are forwarded.
func TestMatchLimit(t *testing.T) {
	config := filepath.Join(t.TempDir(), "rules.toml")
	rule := "[[rules]]\nid = \"slow\"\nregex = '''token=(x*y|x)|x*y|x'''\nkeywords = [\"token\"]\n"
	if err := os.WriteFile(config, []byte(rule), 0o600); err != nil {
		t.Fatal(err)
	}
	l := newHarness(t, fmt.Sprintf("gitleaks_config = %q", config))
	out := l.send("before", "token"+strings.Repeat("x", 300_000), "after")
	if diff := cmp.Diff([]string{"before", "after"}, out.Line); diff != "" {
		t.Errorf("(-want +got):\n%.1000s", diff)
	}
	if got := l.n.Stats.DroppedLines()["match_limit"]; got != 1 {
		t.Errorf("got %d dropped, want 1", got)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	b := &batch.Logs{Line: []string{"token" + strings.Repeat("x", 300_000)}, Stream: []*batch.Stream{web}, T: []int64{1}}
	if err := l.c.ConsumeLogs(ctx, b); err != context.Canceled {
		t.Errorf("got %v", err)
	}
}

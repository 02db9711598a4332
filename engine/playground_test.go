package engine_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/config"
	"github.com/weir-run/weir/engine/flow"
	"github.com/weir-run/weir/engine/service"
)

const purePass = `test.secret "s" { }
test.sink "a" { }
test.pure "p" {
	value      = "run"
	forward_to = [test.sink.a.receiver]
}
test.pass "other" { forward_to = [] }
`

// startPure starts an engine with a node that has a playground.
func startPure(l *harness) {
	l.catalog.add(component.Registration{Name: "test.pure", Accepts: batch.SignalMetrics, Sends: batch.SignalMetrics, Pure: true, Exports: receiverExports{}})
	l.catalog.add(component.Registration{Name: "test.secret", Exports: secretExports{}})
	l.onBuild = func(id string, a *arguments, o component.Options) error {
		if id == "test.secret.s" {
			o.Export(secretExports{"hidden"})
		}
		if a.Value == "logs" {
			o.Logger.Info(strings.Repeat("x", 20<<10))
		}
		return nil
	}
	l.start(purePass)
	l.takeEvents()
}

func upMetrics(t *testing.T) service.PlaygroundInput {
	t.Helper()
	b, err := batch.ParseText("up 1\nm 2\n", batch.TextOptions{Source: batch.NewPushSource()})
	if err != nil {
		t.Fatal(err)
	}
	return service.PlaygroundInput{Records: flow.Batches{Metrics: []*batch.Metrics{b}}}
}

// TestPlay: a copy with another block processes records, its output goes to nobody else, and the node
// stays as it is.
func TestPlay(t *testing.T) {
	bubble(t, func(l *harness) {
		startPure(l)
		b, ok := l.e.PlaygroundBlock("test.pure.p")
		if !ok || !b.Metrics || b.Logs || b.Targets || b.Line != 3 || !strings.HasPrefix(b.Text, "test.pure \"p\" {\n\tvalue      = \"run\"") {
			t.Errorf("got %+v, %t", b, ok)
		}
		if !l.info("test.pure.p").Playground || l.info("test.pass.other").Playground {
			t.Error("the wrong nodes have a playground")
		}
		for _, id := range []string{"test.pass.other", "test.nothing.x"} {
			if b, ok := l.e.PlaygroundBlock(id); ok {
				t.Errorf("%s has a playground: %+v", id, b)
			}
		}
		out, err := l.e.Play(context.Background(), "test.pure.p", strings.Replace(b.Text, `"run"`, `"logs"`, 1), upMetrics(t))
		if err != nil {
			t.Fatal(err)
		}
		if out.Records.Len() != 2 || len(out.Log) != 16<<10 {
			t.Errorf("got %d records and %d bytes of log", out.Records.Len(), len(out.Log))
		}
		l.wantEvents("build test.pure.p\nrun test.pure.p\nstop test.pure.p")
		if s := l.info("test.pure.p").Stats; s.In.Load() != 0 || s.Out.Load() != 0 || l.info("test.sink.a").Stats.In.Load() != 0 {
			t.Error("the node counts what its copy does")
		}
		if got := l.info("test.pure.p").Arguments.(*arguments).Value; got != "run" {
			t.Errorf("the argument of the node is %q", got)
		}
	})
}

// TestPlayRefuses: an invalid block is refused with the positions of its errors, and a copy cannot see
// more than its node.
func TestPlayRefuses(t *testing.T) {
	bubble(t, func(l *harness) {
		startPure(l)
		logs, err := batch.ParseLogsText("{} hello\n", batch.TextOptions{Source: batch.NewPushSource()})
		if err != nil {
			t.Fatal(err)
		}
		in, lines := upMetrics(t), service.PlaygroundInput{Records: flow.Batches{Logs: []*batch.Logs{logs}}}
		for _, c := range []struct {
			name, body string
			in         service.PlaygroundInput
			line       int
			want       string
		}{
			{"syntax", "test.pure \"p\" {\n\tvalue = \n}", in, 3, "expected"},
			{"an unknown attribute", "test.pure \"p\" {\n\tvaule = \"a\"\n}", in, 2, "unknown attribute vaule"},
			{"an unknown reference", "test.pure \"p\" {\n\n\tforward_to = [test.sink.b.receiver]\n}", in, 3, "test.sink.b does not exist"},
			{"a value that Validate refuses", "test.pure \"p\" {\n\tvalue = \"invalid\"\n}", in, 2, "must not be"},
			{"another name", "test.pass \"p\" { }", in, 1, "the block must be test.pure.p, not test.pass.p"},
			{"another label", "test.pure \"q\" { }", in, 1, "the block must be test.pure.p"},
			{"two blocks", "test.pure \"p\" { }\ntest.pure \"q\" { }", in, 0, "there must be one block, not 2"},
			{"nothing", "", in, 0, "there must be one block, not 0"},
			{"a long block", "test.pure \"p\" { }" + strings.Repeat(" ", 64<<10), in, 0, "more than the 65536 allowed"},
			{"the environment", "test.pure \"p\" {\n\tvalue = sys.env(\"HOME\")\n}", in, 2, "a copy cannot use sys.env"},
			{"the environment, indirectly", "test.pure \"p\" {\n\tvalue = sys[\"env\"](\"HOME\")\n}", in, 2, "a copy cannot use sys"},
			{"the environment, by its old name", "test.pure \"p\" {\n\tvalue = env(\"HOME\")\n}", in, 2, "a copy cannot use env"},
			{"a secret", "test.pure \"p\" {\n\tvalue = convert.nonsensitive(test.secret.s.value)\n}", in, 2, "a copy cannot use convert.nonsensitive"},
			{"a failed build", "test.pure \"p\" { value = \"cannot build\" }", in, 0, "cannot build: value does not please me"},
			{"a panic", "test.pure \"p\" { value = \"panic in build\" }", in, 0, "panicked: oh no"},
			{"a panic while the block is decoded", "test.pure \"p\" { value = \"panic in Validate\" }", in, 0, "panicked: oh no"},
			{"another signal", "test.pure \"p\" { }", lines, 0, "the block does not accept logs"},
		} {
			_, err := l.e.Play(context.Background(), "test.pure.p", c.body, c.in)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s: got %v, want %q", c.name, err, c.want)
				continue
			}
			line := 0
			if ds, ok := errors.AsType[config.Diagnostics](err); ok {
				line = ds[0].Line
			}
			if line != c.line {
				t.Errorf("%s: got line %d, want %d", c.name, line, c.line)
			}
		}
		if _, err := l.e.Play(context.Background(), "test.pass.other", "test.pass \"other\" { }", in); err == nil {
			t.Error("a node without a playground has one")
		}
		l.wantHealth("test.pure.p", component.Healthy, "")
	})
}

// TestPlayIsBounded: nobody waits long for a copy, the next one runs after it, and a copy that sends too
// much fails.
func TestPlayIsBounded(t *testing.T) {
	bubble(t, func(l *harness) {
		var hangs atomic.Bool
		hangs.Store(true)
		l.onTake = func(f *fake, _ *batch.Metrics) error {
			if hangs.Load() {
				time.Sleep(6 * time.Second) // of the bubble
			}
			return nil
		}
		startPure(l)
		start := time.Now()
		if _, err := l.e.Play(context.Background(), "test.pure.p", "test.pure \"p\" { }", upMetrics(t)); err == nil || err.Error() != "the copy took longer than 5s" {
			t.Errorf("got %v", err)
		}
		if took := time.Since(start); took != 5*time.Second {
			t.Errorf("a client waits for %s", took)
		}
		hangs.Store(false)
		if out, err := l.e.Play(context.Background(), "test.pure.p", "test.pure \"p\" { }", upMetrics(t)); err != nil || out.Records.Len() != 2 {
			t.Errorf("got %d records, %v", out.Records.Len(), err)
		}
		if took := time.Since(start); took < 6*time.Second {
			t.Errorf("the second copy ran after %s, while the first one did", took)
		}
		b, err := batch.ParseText(strings.Repeat("up 1\n", 10_001), batch.TextOptions{Source: batch.NewPushSource()})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := l.e.Play(context.Background(), "test.pure.p", "test.pure \"p\" { }", service.PlaygroundInput{Records: flow.Batches{Metrics: []*batch.Metrics{b}}}); err == nil || !strings.Contains(err.Error(), "more than 10000 records") {
			t.Errorf("got %v", err)
		}
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		if _, err := l.e.Play(ctx, "test.pure.p", "test.pure \"p\" { }", upMetrics(t)); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
	})
}

package lua_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/grafana/alloy/syntax/parser"
	"github.com/grafana/alloy/syntax/vm"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/component/componenttest"
	"github.com/weir-run/weir/engine/flow"
	"github.com/weir-run/weir/engine/flow/flowtest"
	"github.com/weir-run/weir/scripting"
	"github.com/weir-run/weir/scripting/lua"
	"github.com/weir-run/weir/scripting/registry"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// harness is one scripted node in front of a sink.
type harness struct {
	*componenttest.Node
	sink *flowtest.Sink
	c    component.Component
	reg  component.Registration
}

// load makes the registration of a script test.script and of modules lib/….
func load(t testing.TB, src string, libs ...string) component.Registration {
	t.Helper()
	files := fstest.MapFS{"test/script.lua": {Data: []byte(src)}}
	for i := 0; i+1 < len(libs); i += 2 {
		files["lib/"+libs[i]+".lua"] = &fstest.MapFile{Data: []byte(libs[i+1])}
	}
	c, err := registry.NewCatalog(registry.Options{Languages: []scripting.Language{lua.New()}, Embedded: files, Modules: modules})
	if err != nil {
		t.Fatal(err)
	}
	r, ok := c.Lookup("test.script")
	if !ok {
		t.Fatal("test.script is not known")
	}
	return r
}

// build builds a script with the attributes of a block.
func build(t testing.TB, src, attrs string, libs ...string) *harness {
	t.Helper()
	f := &harness{Node: componenttest.New(t, "test.script.default"), sink: flowtest.NewSink("sink")}
	f.reg = load(t, src, libs...)
	if f.reg.Err != nil {
		t.Fatalf("cannot load: %v", f.reg.Err)
	}
	f.rebuild(t, f.reg, attrs)
	return f
}

func (f *harness) rebuild(t testing.TB, r component.Registration, attrs string) {
	t.Helper()
	args, err := decode(r, f.sink, attrs)
	if err != nil {
		t.Fatalf("cannot decode: %v", err)
	}
	f.Previous = f.c
	f.c = f.Build(t, r, args)
}

// patient gives scripts more time than they have by default, unless attrs says
// how much: a machine may be that busy, and the race detector is slow.
func patient(attrs string) string {
	const limits = "script {\nlimits { time = \"10s\" }\n"
	if strings.Contains(attrs, "limits") {
		return attrs
	}
	if before, after, ok := strings.Cut(attrs, "script {"); ok {
		return before + limits + after
	}
	return attrs + "\n" + limits + "}"
}

func decode(r component.Registration, sink *flowtest.Sink, attrs string) (any, error) {
	file, err := parser.ParseFile("test.alloy", []byte("forward_to = [sink]\n"+patient(attrs)))
	if err != nil {
		return nil, err
	}
	args := r.NewArgs()
	return args, vm.New(file).Evaluate(vm.NewScope(map[string]any{"sink": sink.Receiver()}), args)
}

// send passes a batch in text form through the script and returns what comes
// out, in text form.
func (f *harness) send(t testing.TB, in string) string {
	t.Helper()
	return f.sendBatch(t, parse(t, in))
}

func (f *harness) sendBatch(t testing.TB, b *batch.Metrics) string {
	t.Helper()
	n := len(f.sink.Batches())
	if err := f.c.(flow.MetricsConsumer).ConsumeMetrics(context.Background(), b); err != nil {
		t.Fatalf("cannot send: %v", err)
	}
	got := f.sink.Batches()
	if len(got) == n {
		return ""
	}
	return string(batch.AppendTextAt(nil, got[len(got)-1], now))
}

const now = 1_700_000_000_000

func parse(t testing.TB, text string) *batch.Metrics {
	t.Helper()
	b, err := batch.ParseText(dedent(text), batch.TextOptions{T: now})
	if err != nil {
		t.Fatalf("cannot parse the batch: %v", err)
	}
	return b
}

// dedent removes the tabs that a raw string in a test has.
func dedent(s string) string {
	var b strings.Builder
	for l := range strings.Lines(strings.TrimLeft(s, "\n")) {
		b.WriteString(strings.TrimLeft(l, "\t "))
	}
	return b.String()
}

func equal(t testing.TB, got, want string) {
	t.Helper()
	if diff := cmp.Diff(dedent(want), got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// metrics wraps statements into the hook metrics.
func metrics(body string) string {
	return "local weir = require \"weir\"\nreturn weir.transform { metrics = function(batch, ctx)\n" + body + "\nend }\n"
}

// scriptErr is the *scripting.Error in err.
func scriptErr(t testing.TB, err error) *scripting.Error {
	t.Helper()
	e, ok := errors.AsType[*scripting.Error](err)
	if !ok {
		t.Fatalf("got %v, want a *scripting.Error", err)
	}
	return e
}

func TestTheExampleOfTheContract(t *testing.T) {
	f := build(t, read(t, "paths.lua"), `keep = ["api"]`)
	equal(t, f.send(t, `
		# TYPE http_requests_total counter
		http_requests_total{job="api",path="/users/42/orders/7"} 1
		go_goroutines{job="web"} 12
		go_goroutines{job="api"} 13
		up{env="dev",job="web"} 1
		request_ms{job="web"} 1500
	`), `
		# TYPE http_requests_total counter
		http_requests_total{job="api",path="/users/:id/orders/:id",region="eu"} 1
		go_goroutines{job="api",region="eu"} 13
		request_seconds{job="web",region="eu"} 1.5
	`)
	if h := f.Health(); h.State != component.Healthy {
		t.Errorf("got %+v, want healthy", h)
	}
}

func read(t testing.TB, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

package host_test

import (
	"encoding/json"
	"errors"
	"io"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/component/componenttest"
	"github.com/weir-run/weir/engine/flow"
	"github.com/weir-run/weir/engine/flow/flowtest"
	"github.com/weir-run/weir/plugin/host"
	"github.com/weir-run/weir/plugin/internal/acme"
)

// install makes the test binary the plugin acme of a folder.
func install(t testing.TB) (dir string) {
	t.Helper()
	dir = t.TempDir()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(exe, filepath.Join(dir, "weir-plugin-acme")); err != nil {
		t.Fatal(err)
	}
	return dir
}

// catalog returns the catalog of the plugins in a folder.
func catalog(t testing.TB, dir string) *host.Catalog {
	t.Helper()
	c := host.New(host.Options{Dirs: []string{dir}, Env: os.Environ()})
	t.Cleanup(c.Close)
	return c
}

// both runs a test with the components compiled in and as a plugin.
func both(t *testing.T, test func(t *testing.T, c component.Catalog)) {
	t.Helper()
	t.Run("compiled in", func(t *testing.T) { test(t, component.NewList(acme.Components()...)) })
	t.Run("plugin", func(t *testing.T) { test(t, catalog(t, install(t))) })
}

func lookup(t testing.TB, c component.Catalog, name string) component.Registration {
	t.Helper()
	r, ok := c.Lookup(name)
	if !ok || r.Err != nil {
		t.Fatalf("Lookup(%s): %v, %v", name, ok, r.Err)
	}
	return r
}

// decode decodes arguments with the receivers in place of those of forward_to.
func decode(t testing.TB, r component.Registration, body string, to ...*flow.Receiver) any {
	t.Helper()
	args := componenttest.Arguments[any](t, r, body)
	v := reflect.ValueOf(args).Elem()
	for i := range v.NumField() {
		if v.Type().Field(i).Type == reflect.TypeFor[[]*flow.Receiver]() {
			v.Field(i).Set(reflect.ValueOf(to))
		}
	}
	return args
}

// exported returns an export by its name in the config.
func exported(n *componenttest.Node, name string) any {
	v := reflect.ValueOf(n.Exports())
	if !v.IsValid() {
		return nil
	}
	for i := range v.NumField() {
		if tag, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("alloy"), ","); tag == name {
			f := v.Field(i)
			if f.Kind() == reflect.Pointer && !f.IsNil() {
				f = f.Elem()
			}
			return f.Interface()
		}
	}
	return nil
}

func samples(t testing.TB, source uint64, text string) *batch.Metrics {
	t.Helper()
	b, err := batch.ParseText(text, batch.TextOptions{Source: source})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestTransform(t *testing.T) {
	both(t, func(t *testing.T, c component.Catalog) {
		r := lookup(t, c, "acme.scale")
		sink, second := flowtest.NewSink("a"), flowtest.NewSink("b")
		n := componenttest.New(t, "acme.scale.x")
		comp := n.Build(t, r, decode(t, r, "forward_to = []\nfactor = 3", sink.Receiver(), second.Receiver()))
		stop := n.Run(t, comp)
		defer stop()

		in := comp.(flow.MetricsConsumer)
		source := batch.NewSource()
		first := samples(t, source, "up{a=\"b\"} 0 1000\nup{a=\"c\"} 0 1000\n")
		for i := range 3 {
			b := &batch.Metrics{Source: source, Series: first.Series, T: first.T, V: []float64{float64(i + 1), -1}}
			if err := in.ConsumeMetrics(t.Context(), b); err != nil {
				t.Fatal(err)
			}
		}
		for _, s := range []*flowtest.Sink{sink, second} {
			var got []string
			for _, b := range s.Batches() {
				if b.Source != source {
					t.Errorf("got source %d, want %d", b.Source, source)
				}
				got = append(got, string(batch.AppendText(nil, b)))
			}
			want := []string{"up{a=\"b\"} 3 1000\n", "up{a=\"b\"} 6 1000\n", "up{a=\"b\"} 9 1000\n"}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if bs := s.Batches(); bs[0].Series[0] != bs[2].Series[0] || bs[0].Way != bs[2].Way {
				t.Error("a series has another handle, or a batch another way, in each batch")
			}
		}
		acked := make(chan bool)
		lines, err := batch.ParseLogsText("{app=\"x\"} hello 1000\n", batch.TextOptions{Source: source})
		if err != nil {
			t.Fatal(err)
		}
		lines.Ack = batch.NewAck(func() { close(acked) })
		if err := comp.(flow.LogsConsumer).ConsumeLogs(t.Context(), lines); err != nil {
			t.Fatal(err)
		}
		lines.Ack.Accepted()
		<-acked
		if got := sink.LastLogs(); got.Len() != 1 || got.Line[0] != lines.Line[0] || got.Ack != lines.Ack {
			t.Errorf("got %+v", got)
		}
	})
}

func TestArguments(t *testing.T) {
	both(t, func(t *testing.T, c component.Catalog) {
		r := lookup(t, c, "acme.scale")
		f := func(body, want string) {
			t.Helper()
			n := componenttest.New(t, "acme.scale.x")
			comp := n.Build(t, r, decode(t, r, "forward_to = []\n"+body))
			stop := n.Run(t, comp)
			n.Wait(t, func() bool { return exported(n, "summary") == want })
			stop()
		}
		f("", "x2 every 1m0s max 0 strict unset names [] extra map[] rules")
		f("factor = 0.5\nevery = \"5s\"\nstrict = false\nnames = [\"a\", \"b\"]\nextra = { k = \"v\" }\nlimit { }\nrule \"r\" { add = 1 }\nrule \"s\" { add = 2.5 }",
			"x0.5 every 5s max 10 strict false names [a b] extra map[k:v] rules r+1 s+2.5")
		f("strict = true\nlimit { max = 3 }", "x2 every 1m0s max 3 strict true names [] extra map[] rules")

		wrong := func(body, want string) {
			t.Helper()
			args, got := componenttest.Decode[any](r, body)
			if got == "" && r.Check != nil {
				for _, e := range r.Check(args, func(string) bool { return true }) {
					got = "c.alloy:3:1: " + e.Error()
					if e.Path != "factor" {
						t.Errorf("got an error at %q", e.Path)
					}
				}
			}
			if got != want {
				t.Errorf("%s\ngot  %s\nwant %s", body, got, want)
			}
		}
		wrong("factor = 1", "c.alloy:1:1: missing required attribute forward_to")
		wrong("forward_to = []\nfactor = 0", "c.alloy:3:1: factor must not be 0")
	})
}

func TestReports(t *testing.T) {
	both(t, func(t *testing.T, c component.Catalog) {
		r := lookup(t, c, "acme.scale")
		sink := flowtest.NewSink("a")
		n := componenttest.New(t, "acme.scale.x")
		comp := n.Build(t, r, decode(t, r, "forward_to = []\ntoken = \"secret\"", sink.Receiver()))
		stop := n.Run(t, comp)
		defer stop()
		n.Wait(t, func() bool {
			return n.Health().State == component.Healthy && n.Health().Message == "scaling" && exported(n, "token") == component.Secret("secret")
		})
		if err := comp.(flow.MetricsConsumer).ConsumeMetrics(t.Context(), samples(t, batch.NewSource(), "a -1 1\nb 1 1\n")); err != nil {
			t.Fatal(err)
		}
		if err := testutil.GatherAndCompare(n.Registry, strings.NewReader(`# HELP acme_scaled_total Records.
# TYPE acme_scaled_total counter
acme_scaled_total{component_id="acme.scale.x",signal="metrics"} 2
`)); err != nil {
			t.Error(err)
		}
		deadline := time.Now().Add(time.Minute)
		for n.Stats.Dropped()["negative"] != 1 || !strings.Contains(n.Logs(), "msg=scaling component_id=acme.scale.x factor=2") {
			if time.Now().After(deadline) {
				t.Fatalf("dropped %v, log %s", n.Stats.Dropped(), n.Logs())
			}
			time.Sleep(10 * time.Millisecond)
		}
		info, err := json.Marshal(comp.(component.Debugger).DebugInfo())
		if err != nil || !strings.Contains(string(info), `"samples":2`) {
			t.Errorf("got %s, %v", info, err)
		}
		w := httptest.NewRecorder()
		comp.(component.HTTPHandler).Handler().ServeHTTP(w, httptest.NewRequest("PUT", "/x/y", strings.NewReader("body")))
		if body, _ := io.ReadAll(w.Body); w.Code != 418 || string(body) != "PUT /x/y" || w.Header().Get("X-Acme") != "yes" {
			t.Errorf("got %d %s", w.Code, body)
		}
		if got := n.Stats.Out.Load(); got != 1 {
			t.Errorf("got %d samples out, want 1", got)
		}
	})
}

func TestUpdateAndReplace(t *testing.T) {
	both(t, func(t *testing.T, c component.Catalog) {
		r := lookup(t, c, "acme.scale")
		sink := flowtest.NewSink("a")
		n := componenttest.New(t, "acme.scale.x")
		comp := n.Build(t, r, decode(t, r, "forward_to = []", sink.Receiver()))
		stop := n.Run(t, comp)
		if err := comp.(flow.MetricsConsumer).ConsumeMetrics(t.Context(), samples(t, batch.NewSource(), "a 1 1\n")); err != nil {
			t.Fatal(err)
		}
		if err := comp.(component.Updater).Update(decode(t, r, "forward_to = []\nfactor = 5", sink.Receiver())); err != nil {
			t.Fatal(err)
		}
		if err := comp.(component.Updater).Update(decode(t, r, "forward_to = []\nfault = \"build\"", sink.Receiver())); err == nil || !strings.Contains(err.Error(), "the fault was requested") {
			t.Errorf("got %v", err)
		}
		if err := comp.(flow.MetricsConsumer).ConsumeMetrics(t.Context(), samples(t, batch.NewSource(), "a 1 1\n")); err != nil {
			t.Fatal(err)
		}
		if got := sink.Last().V[0]; got != 5 {
			t.Errorf("got %v, want 5", got)
		}
		m := componenttest.New(t, "acme.scale.x")
		m.Previous = comp
		next := m.Build(t, r, decode(t, r, "forward_to = []", sink.Receiver()))
		defer m.Run(t, next)()
		stop()
		if info, _ := json.Marshal(next.(component.Debugger).DebugInfo()); !strings.Contains(string(info), `"samples":2`) {
			t.Errorf("got %s", info)
		}
	})
}

func TestSource(t *testing.T) {
	both(t, func(t *testing.T, c component.Catalog) {
		r := lookup(t, c, "acme.tick")
		good, bad := flowtest.NewSink("a"), flowtest.NewSink("b")
		bad.Refuse(errors.New("full"))
		n := componenttest.New(t, "acme.tick.x")
		defer n.Run(t, n.Build(t, r, decode(t, r, "forward_to = []\ncount = 5", good.Receiver(), bad.Receiver())))()
		if _, err := good.Wait(t.Context(), 1); err != nil {
			t.Fatal(err)
		}
		bad.Refuse(nil)
		for _, s := range []*flowtest.Sink{good, bad} {
			bs, err := s.Wait(t.Context(), 5)
			if err != nil {
				t.Fatal(err)
			}
			for i, b := range bs {
				if b.V[0] != float64(i) || b.Source != bs[0].Source {
					t.Errorf("%d: got %v of source %d", i, b.V, b.Source)
				}
			}
			if got := len(s.Batches()); got != 5 {
				t.Errorf("got %d batches, want 5", got)
			}
		}
	})
}

func TestSink(t *testing.T) {
	both(t, func(t *testing.T, c component.Catalog) {
		r := lookup(t, c, "acme.store")
		n := componenttest.New(t, "acme.store.x")
		comp := n.Build(t, r, decode(t, r, ""))
		stop := n.Run(t, comp)
		for range 3 {
			if err := comp.(flow.MetricsConsumer).ConsumeMetrics(t.Context(), samples(t, batch.NewSource(), "a 1 1\nb 2 1\n")); err != nil {
				t.Fatal(err)
			}
		}
		n.Wait(t, func() bool { return exported(n, "sum") == 9.0 })
		stop()
		if got := n.Stats.Out.Load(); got != 6 {
			t.Errorf("got %d samples out, want 6", got)
		}
	})
}

func TestErrors(t *testing.T) {
	both(t, func(t *testing.T, c component.Catalog) {
		r := lookup(t, c, "acme.scale")
		n := componenttest.New(t, "acme.scale.x")
		if _, err := r.Build(n.Options(), decode(t, r, "forward_to = []\nfault = \"build\""), nil); err == nil || !strings.Contains(err.Error(), "cannot build acme.scale: the fault was requested") {
			t.Errorf("got %v", err)
		}
		n = componenttest.New(t, "acme.scale.x")
		comp := n.Build(t, r, decode(t, r, "forward_to = []\nfault = \"error\""))
		defer n.Run(t, comp)()
		err := comp.(flow.MetricsConsumer).ConsumeMetrics(t.Context(), samples(t, batch.NewSource(), "a 1 1\n"))
		if err == nil || err.Error() != "the fault was requested" {
			t.Errorf("got %v", err)
		}
	})
}

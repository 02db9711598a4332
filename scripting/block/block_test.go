package block_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/component/componenttest"
	"github.com/weir-run/weir/engine/config"
	"github.com/weir-run/weir/scripting"
	"github.com/weir-run/weir/scripting/block"
	"github.com/weir-run/weir/scripting/state"
)

// The definitions of a component of each kind, and one with all that the host can add.
func transform() *scripting.Definition {
	return &scripting.Definition{Kind: scripting.Transform, Sends: batch.SignalMetrics}
}

func sink() *scripting.Definition {
	return &scripting.Definition{Kind: scripting.Sink, Send: true, Batch: scripting.BatchBlock{MaxRecords: 7, MaxBytes: 1 << 20, MaxWait: time.Second, InFlight: 2}}
}

func source() *scripting.Definition {
	return &scripting.Definition{
		Kind: scripting.Source, Sends: batch.SignalMetrics, Poll: true, Interval: time.Minute, Outputs: []string{"errors", "audit"},
		HTTP: []scripting.Route{{Key: "POST /hook"}}, Needs: scripting.Needs{HTTP: true},
		Args: []*scripting.Arg{{Name: "region", Kind: scripting.ArgString, Default: "eu"}},
	}
}

// registration is that of a block a.b.
func registration(def *scripting.Definition) component.Registration {
	_, newArgs := block.TypeOf(def)
	return component.Registration{Name: "a.b", NewArgs: newArgs, Accepts: def.Accepts(), Sends: def.Sends}
}

// decode fills in the arguments of a block.
func decode(t *testing.T, def *scripting.Definition, body string) block.Arguments {
	t.Helper()
	return block.ArgumentsOf(def, componenttest.Arguments[any](t, registration(def), body))
}

// TestAddedToBlocks holds which attributes and blocks the host adds to the arguments
// of a script, with their defaults.
func TestAddedToBlocks(t *testing.T) {
	f := func(def *scripting.Definition, want string) {
		t.Helper()
		_, newArgs := block.TypeOf(def)
		var got []string
		for _, d := range config.Describe(newArgs()) {
			if strings.Contains(d.Path, ".") && !strings.HasPrefix(d.Path, "routes.") && !strings.HasPrefix(d.Path, "batch.") {
				continue
			}
			text := d.Path
			if d.Required {
				text += "!"
			}
			if d.Default != "" {
				text += "=" + d.Default
			}
			got = append(got, text)
		}
		if diff := cmp.Diff(want, strings.Join(got, " ")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", def.Kind, diff)
		}
	}
	f(transform(), "forward_to! script")
	f(&scripting.Definition{Kind: scripting.Transform}, "script") // it sends nothing
	f(&scripting.Definition{Kind: scripting.Source, Sends: batch.SignalLogs, Run: true}, "forward_to! script")
	f(&scripting.Definition{Kind: scripting.Source, Sends: batch.SignalLogs, Poll: true}, "forward_to! interval! script")
	f(source(), `region="eu" forward_to! routes! routes.errors! routes.audit! interval="1m" listen script`)
	f(sink(), `batch batch.max_records=7 batch.max_bytes="1MiB" batch.max_wait="1s" batch.in_flight=2 journal script`)
}

// TestArgumentsOf takes apart what the decoder filled in.
func TestArgumentsOf(t *testing.T) {
	def := source()
	a := decode(t, def, "forward_to = []\nroutes {\nerrors = []\naudit = []\n}")
	if a.Values["region"] != "eu" || a.Interval != time.Minute || a.Listen != nil || a.Listen.Server() != nil || len(a.Receivers) != 3 {
		t.Errorf("got %+v", a)
	}
	if a.Script.OnError != scripting.OnErrorDrop || a.Script.Concurrency != block.ConcurrencyOrdered || a.Script.RequestLimits() != (block.Requests{MaxBodySize: 1 << 20, MaxRequests: 100}) {
		t.Errorf("got %+v", a.Script)
	}
	a = decode(t, def, `
		region = "us"
		forward_to = []
		routes {
			errors = []
			audit = []
		}
		interval = "5s"
		listen {
			address = "127.0.0.1"
			port = 0
			read_timeout = "3s"
		}
		script {
			on_error = "quarantine"
			limits { emit = 5 }
			allow { http = ["https://a/*"] }
			http { proxy_url = "http://p:1" }
			requests { max_requests = 5 }
		}`)
	if a.Values["region"] != "us" || a.Interval != 5*time.Second || a.Script.OnError != scripting.OnErrorQuarantine || a.Script.RequestLimits().MaxRequests != 5 ||
		!slices.Equal(a.Script.Allow.HTTP, []string{"https://a/*"}) || a.Script.Limits.Emit != 5 || a.Script.Limits.Time != 200*time.Millisecond {
		t.Errorf("got %+v", a)
	}
	if client := a.Script.Client(); client.Proxy.ProxyURL != "http://p:1" || !client.EnableHTTP2 {
		t.Errorf("got %+v", client)
	}
	srv := a.Listen.Server()
	if srv == nil || srv.HTTP.ListenAddress != "127.0.0.1" || srv.HTTP.ReadTimeout != 3*time.Second || srv.HTTP.IdleTimeout <= 0 || srv.HTTP.WriteTimeout != 0 || srv.GracefulShutdownTimeout <= 0 {
		t.Errorf("got %+v", srv)
	}

	// Blocks of a sink have the bounds of its definition where they give none.
	a = decode(t, sink(), "batch {\nmax_records = 9\n}\njournal {\nmax_size = \"2MiB\"\n}")
	if want := (scripting.BatchBlock{MaxRecords: 9, MaxBytes: 1 << 20, MaxWait: time.Second, InFlight: 2}); a.Batch != want || a.Journal.MaxSize != 2<<20 || a.Journal.OnFull != "block" {
		t.Errorf("got %+v, %+v", a.Batch, a.Journal)
	}
	if a.Script.OnError != scripting.OnErrorHold || a.Receivers != nil {
		t.Errorf("got %+v", a)
	}
}

// TestBlocksRefused checks mistakes in a block, with their place.
func TestBlocksRefused(t *testing.T) {
	f := func(def *scripting.Definition, body, want string) {
		t.Helper()
		_, got := componenttest.Decode[any](registration(def), body)
		if got != want {
			t.Errorf("%s:\n got %s\nwant %s", body, got, want)
		}
	}
	const send = "forward_to = []\n"
	f(transform(), "", `c.alloy:1:1: missing required attribute forward_to`)
	f(transform(), send+"interval = \"1m\"", `c.alloy:3:1: unknown attribute interval (a.b has forward_to, script)`)
	f(transform(), send+"script {\nconcurrency = \"partition\"\nby = [\"job\", \"\"]\n}", `c.alloy:5:1: cannot use "" in script.by: it must be the name of a label`)
	f(transform(), send+"script {\nlimits { output = \"1KiB\" }\n}", `c.alloy:4:10: cannot use script.limits.output = 1024: it must be between 1MiB and 1TiB`)
	f(transform(), send+"script {\nlimits { state = \"1B\" }\n}", `c.alloy:4:10: cannot use script.limits.state = 1: it must be between 1KiB and 1TiB`)
	f(transform(), send+"script {\nlimits { memory = \"2TiB\" }\n}", `c.alloy:4:10: cannot use script.limits.memory = 2199023255552: it must be between 1MiB and 1TiB`)
	f(transform(), send+"script {\non_reload = \"manual\"\n}", `c.alloy:4:13: script.on_reload: cannot use on_reload = "manual": it is not supported yet, there is "swap" or "test" or "shadow"`)
	f(transform(), send+"script {\non_reload = \"later\"\n}", `c.alloy:4:13: script.on_reload: cannot use on_reload = "later": it must be "swap" or "test" or "shadow"`)
	f(transform(), send+"script {\nshadow {\ninput_size = \"1B\"\nmax_time = \"1ms\"\nmax_time_per_record = \"0s\"\nmax_drop_increase = 2\nmax_changed_records = -1\nmax_new_series = -1\n}\n}",
		"c.alloy:5:1: cannot use script.shadow.input_size = 1: it must be between 64KiB and 1GiB\n"+
			"c.alloy:6:1: cannot use script.shadow.max_time = \"1ms\": it must be between 100ms and 10m\n"+
			"c.alloy:7:1: cannot use script.shadow.max_time_per_record = \"0s\": it must be greater than 0s\n"+
			"c.alloy:8:1: cannot use script.shadow.max_drop_increase = 2: it is a share and must be between 0 and 1\n"+
			"c.alloy:9:1: cannot use script.shadow.max_changed_records = -1: it is a share and must be between 0 and 1\n"+
			"c.alloy:10:1: cannot use script.shadow.max_new_series = -1: it must not be negative")
	f(transform(), send+"script {\nquarantine {\nmax_size = \"1B\"\nmax_age = \"1s\"\n}\n}",
		"c.alloy:5:1: cannot use this script.quarantine.max_size: it must be 1MiB at least\nc.alloy:6:1: cannot use script.quarantine.max_age = \"1s\": it must be 1m at least")
	f(transform(), send+"script {\ncanary {\nshare = 1\nfor = \"0s\"\nmax_errors = 2\nmax_drop_increase = -1\nmax_slowdown = 0.5\n}\n}",
		"c.alloy:5:1: cannot use script.canary.share = 1: it must be greater than 0 and less than 1\n"+
			"c.alloy:6:1: cannot use script.canary.for = \"0s\": it must be greater than 0s\n"+
			"c.alloy:7:1: cannot use script.canary.max_errors = 2: it must be between 0 and 1\n"+
			"c.alloy:8:1: cannot use script.canary.max_drop_increase = -1: it must be between 0 and 1\n"+
			"c.alloy:9:1: cannot use script.canary.max_slowdown = 0.5: it must be 1 or more")
	f(transform(), send+"script {\ncanary {\nby = \"source\"\n}\n}", `c.alloy:5:6: script.canary.by: cannot use by = "source": it must be "series"`)
	f(source(), send+"routes {\nerrors = []\n}", `c.alloy:3:1: missing required attribute routes.audit (write: audit = …, or [] to send to no receiver)`)
	f(source(), send+"routes {\nerrors = []\naudit = []\nadit = []\n}", `c.alloy:6:1: unknown attribute routes.adit (did you mean audit?)`)
	f(sink(), "batch {\nmax_records = 0\nin_flight = 1000\n}", "c.alloy:3:1: cannot use batch.max_records = 0: it must be between 1 and 1000000\nc.alloy:4:1: cannot use batch.in_flight = 1000: it must be between 1 and 8")
}

// TestEmitLimit holds how many records a call may emit.
func TestEmitLimit(t *testing.T) {
	f := func(emit int, kind scripting.ComponentKind, n, want int) {
		t.Helper()
		b := block.Script{Limits: block.Limits{Emit: emit}}
		if got := b.EmitLimit(kind, n); got != want {
			t.Errorf("%d, %s, %d: got %d, want %d", emit, kind, n, got, want)
		}
	}
	f(0, scripting.Transform, 0, 10_000)
	f(0, scripting.Transform, 5, 10_050)
	f(0, scripting.Source, 0, 100_000)
	f(3, scripting.Transform, 5, 3)
	f(3, scripting.Source, 0, 3)
}

// TestCheckState holds that a script cannot declare more state than its block lets it
// keep.
func TestCheckState(t *testing.T) {
	f := func(limit component.Size, want string, sizes ...int64) {
		t.Helper()
		def := transform()
		for i, n := range sizes {
			def.State = append(def.State, &scripting.State{Decl: state.Decl{Name: fmt.Sprintf("s%d", i), MaxBytes: n}})
		}
		b := block.Script{Limits: block.Limits{State: limit}}
		got := ""
		if err := b.CheckState("a.b", def); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%d, %d: got %s, want %s", limit, sizes, got, want)
		}
	}
	f(0, "")
	f(0, "", state.DefaultNodeBytes)
	f(1<<20, "", 1<<20, 1<<20) // each may have all of it
	f(1<<20, `cannot use max_bytes = 2MiB of state s1 in a.b: the node may keep 1MiB; declare less, or write limits { state = "2MiB" } in the block script`, 1, 2<<20)
	f(0, `cannot use max_bytes = 512MiB of state s0 in a.b: the node may keep 256MiB; declare less, or write limits { state = "512MiB" } in the block script`, 512<<20)
}

// TestExclusive holds in which modes calls of two instances must not overlap.
func TestExclusive(t *testing.T) {
	for mode, want := range map[string]bool{"ordered": false, "parallel": false, "single": true, "partition": true} {
		var c block.Concurrency
		if err := c.UnmarshalText([]byte(mode)); err != nil || c.Exclusive() != want {
			t.Errorf("%s: got %t, %v", mode, c.Exclusive(), err)
		}
	}
}

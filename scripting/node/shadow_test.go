package node_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/flow/flowtest"
	"github.com/weir-run/weir/scripting/egress"
	"github.com/weir-run/weir/scripting/internal/registrytest"
	"github.com/weir-run/weir/scripting/node"
)

// shadows is a node whose new versions process recent input first.
type shadows struct {
	*trials
	path    string // of the script
	imports string // from weir, of JavaScript
	attrs   string
}

const shadowOn = `script { on_reload = "shadow" }`

func newShadows(t *testing.T, language string) *shadows {
	f := &shadows{trials: newTrials(t), path: "a/b." + language, imports: "defineTransform", attrs: shadowOn}
	f.gate.SetAccepts(batch.SignalMetrics | batch.SignalLogs)
	return f
}

// script returns a transform with these hooks.
func (f *shadows) script(hooks string) string {
	if strings.HasSuffix(f.path, ".js") {
		return "import { " + f.imports + " } from \"weir\";\nexport default defineTransform({\n" + hooks + "\n});\n"
	}
	return "local weir = require \"weir\"\nreturn weir.transform {\n" + hooks + "\n}\n"
}

func (f *shadows) lookup(hooks string) component.Registration {
	f.t.Helper()
	f.save(f.path, f.script(hooks))
	r := registrytest.Lookup(f.t, f.cat, "a.b")
	if r.Err != nil {
		f.t.Fatal(r.Err)
	}
	return r
}

// run makes hooks the running version.
func (f *shadows) run(hooks string) {
	f.t.Helper()
	f.swap(f.lookup(hooks), f.attrs)
}

// try returns what the step shadow says of hooks, and the difference.
func (f *shadows) try(hooks string) (*component.Rejection, node.Difference) {
	f.t.Helper()
	r := f.lookup(hooks)
	args := r.NewArgs()
	if err := registrytest.Decode(args, f.attrs, f.sink); err != nil {
		f.t.Fatal(err)
	}
	var steps []string
	got := r.Trial(f.t.Context(), component.Trial{Node: f.ID, Args: args, Running: f.c, Begin: func(step string) { steps = append(steps, step) }})
	if diff := cmp.Diff([]string{component.StepShadow}, steps); diff != "" {
		f.t.Errorf("steps (-want +got):\n%s", diff)
	}
	d := f.c.(*node.Component).LastDifference()
	if d == nil {
		f.t.Fatal("there is no difference")
	}
	if got != nil && (got.Step != component.StepShadow || d.Refused != got.Err.Error()) {
		f.t.Errorf("got the rejection %+v, and refused %q in the difference", got, d.Refused)
	}
	text, err := json.Marshal(f.c.(component.Debugger).DebugInfo())
	var debug struct{ Reports []struct{ Name, Text string } }
	if err := errors.Join(err, json.Unmarshal(text, &debug)); err != nil || len(debug.Reports) != 1 {
		f.t.Fatalf("got the reports %+v, %v", debug, err)
	}
	want := fmt.Sprintf("shadow: version %s, compared with %s on recent input\n%s", component.ShortVersion(d.Version), component.ShortVersion(d.Running), d)
	if d.Refused != "" {
		want += "\nrefused: " + d.Refused
	}
	if report := debug.Reports[0].Name + ": " + debug.Reports[0].Text; report != want {
		f.t.Errorf("got the report %s\nwant %s", report, want)
	}
	return got, *d
}

var timings = cmpopts.IgnoreFields(node.Difference{}, "NanosBefore", "NanosAfter", "Running", "Version")

// passes checks that hooks are not refused, and the difference.
func (f *shadows) passes(hooks string, want node.Difference) {
	f.t.Helper()
	r, d := f.try(hooks)
	if r != nil {
		f.t.Errorf("got a rejection: %v", r.Err)
	}
	if diff := cmp.Diff(want, d, timings); diff != "" {
		f.t.Errorf("(-want +got):\n%s", diff)
	}
}

// refused checks with what message hooks are refused.
func (f *shadows) refused(hooks, want string) {
	f.t.Helper()
	r, _ := f.try(hooks)
	if r == nil {
		f.t.Fatalf("no rejection, want %s", want)
	}
	if got, _, _ := strings.Cut(r.Err.Error(), "\n"); got != want {
		f.t.Errorf("got  %s\nwant %s", got, want)
	}
}

// both runs a test in both languages; pick returns the first text for Lua, the
// second for JavaScript.
func both(t *testing.T, test func(f *shadows, pick func(lua, js string) string)) {
	for _, language := range []string{"lua", "js"} {
		t.Run(language, func(t *testing.T) {
			test(newShadows(t, language), func(lua, js string) string {
				if language == "lua" {
					return lua
				}
				return js
			})
		})
	}
}

// The difference counts what both versions make of each record.
func TestShadowDifference(t *testing.T) {
	both(t, func(f *shadows, pick func(lua, js string) string) {
		f.run(pick(`metrics = function(batch) batch:drop_where("value == 1") end`, `metrics(batch) { batch.dropWhere("value == 1"); }`))
		f.send(text(t, 1, "# HELP b Help.\n# TYPE b gauge\na 1\nb 2\nc 3\nd 4\n"))
		sent := len(f.sink.Batches())
		f.passes(pick(
			`metrics = function(batch, ctx)
				batch:drop_where("value == 2")
				for r in batch:records() do if r.name == "c" then r.labels.env = "prod" end end
				ctx.emit { name = "n", value = 1 }
			end`,
			`metrics(batch, ctx) {
				batch.dropWhere("value == 2");
				for (const r of batch) if (r.name === "c") r.labels.env = "prod";
				ctx.emit({ name: "n", value: 1 });
			}`),
			node.Difference{
				Batches: 1, Records: 4, Kept: 1, Changed: 1, Dropped: 1, Restored: 1, EmittedAfter: 1,
				ChangedExamples: []node.Change{{Before: "c 3 1000", After: `c{env="prod"} 3 1000`}},
				DroppedExamples: []string{"b 2 1000"},
				NewSeries:       node.Names{Count: 3, Examples: []string{"a", `c{env="prod"}`, "n"}},
				GoneSeries:      node.Names{Count: 2, Examples: []string{"b", "c"}},
				NewLabels:       node.Names{Count: 1, Examples: []string{"env"}},
			})
		if got := len(f.sink.Batches()); got != sent {
			t.Errorf("%d batches left the node", got-sent)
		}
	})
}

// Log lines are compared as samples are.
func TestShadowOfLogs(t *testing.T) {
	both(t, func(f *shadows, pick func(lua, js string) string) {
		f.run(pick(`logs = function(batch) end`, `logs(batch) {}`))
		f.sendLines("{app=\"x\"} one\n{app=\"y\"} two\n{app=\"y\"} three\n")
		f.passes(pick(
			`logs = function(batch) for r in batch:records() do
				if r.line == "two" then r:drop() elseif r.line == "three" then r.line = "3" else r.metadata.n = "1" end
			end end`,
			`logs(batch) { for (const r of batch) {
				if (r.line === "two") r.drop(); else if (r.line === "three") r.line = "3"; else r.metadata.n = "1";
			} }`),
			node.Difference{
				Batches: 1, Records: 3, Changed: 2, Dropped: 1,
				ChangedExamples: []node.Change{{Before: `{app="x"} @1970-01-01T00:00:00.000001Z one`, After: `{app="x"} @1970-01-01T00:00:00.000001Z {n="1"} one`}, {Before: `{app="y"} @1970-01-01T00:00:00.000001Z three`, After: `{app="y"} @1970-01-01T00:00:00.000001Z 3`}},
				DroppedExamples: []string{`{app="y"} @1970-01-01T00:00:00.000001Z two`},
			})
	})
}

// Each guard refuses a version; a limit that is raised lets it pass.
func TestShadowGuards(t *testing.T) {
	both(t, func(f *shadows, pick func(lua, js string) string) {
		file := "scripts/" + f.path
		keep := pick(`metrics = function(batch) end`, `metrics(batch) {}`)
		f.run(keep)
		var b strings.Builder
		for i := range 10 {
			fmt.Fprintf(&b, "a{i=\"%d\"} %d\n", i, i)
		}
		f.send(text(t, 1, b.String()))
		guard := func(limits, hooks, want string) {
			t.Helper()
			f.attrs = "script {\non_reload = \"shadow\"\nshadow {\n" + limits + "\n}\n}"
			if want != "" {
				f.refused(hooks, want)
			} else if r, _ := f.try(hooks); r != nil {
				t.Errorf("%s: got a rejection: %v", limits, r.Err)
			}
		}
		half := pick(`metrics = function(batch) batch:drop_where("value < 6") end`, `metrics(batch) { batch.dropWhere("value < 6"); }`)
		guard("", half, file+": the new version drops 6 of 10 recent records that the running version keeps, and keeps 0 that it drops; the limit is an increase of 50 % (script.shadow.max_drop_increase)")
		guard("max_drop_increase = 0.6", half, "")
		label := pick(`series = function(s) s.labels.env = "prod" end`, `series(s) { s.labels.env = "prod"; }`)
		guard("", label, "")
		guard("max_changed_records = 0.9", label, file+": the new version changes 10 of 10 recent records; the limit is 90 % (script.shadow.max_changed_records)")
		guard("max_new_series = 9", label, file+`: the new version sends 10 series that the running version does not send, such as a{env="prod",i="0"}; the limit is 9 (script.shadow.max_new_series)`)
		guard("max_new_series = 10", label, "")
		fails := pick("metrics = function(batch)\n\terror(\"no\")\nend", "metrics(batch) {\n\tthrow new Error(\"no\");\n}")
		guard("", fails, file+pick(
			`:4: in metrics: no (errors on recent input: new version 1, running version 0)`,
			`:4:8: in metrics: no (errors on recent input: new version 1, running version 0)`))
	})
}

// A version that is too slow is refused, unless there are too few records to tell.
func TestShadowTime(t *testing.T) {
	both(t, func(f *shadows, pick func(lua, js string) string) {
		f.attrs = "script {\non_reload = \"shadow\"\nshadow {\nmax_time_per_record = \"1µs\"\n}\n}"
		f.run(pick(`metrics = function(batch) end`, `metrics(batch) {}`))
		slow := pick(`metrics = function(batch) for i = 1, 100000 do end end`, `metrics(batch) { for (let i = 0; i < 100000; i++); }`)
		f.send(text(t, 1, strings.Repeat("a 1\n", 99)))
		if r, d := f.try(slow); r != nil || d.NanosAfter < 1000 {
			t.Errorf("got %+v, %+v", r, d)
		}
		f.send(text(t, 1, "a 1\n"))
		if r, d := f.try(slow + " "); r == nil || !strings.Contains(r.Err.Error(), "; the limit is 1µs (script.shadow.max_time_per_record)") || d.NanosAfter < 1000 {
			t.Errorf("got %+v, %+v", r, d)
		}
	})
}

// A version that runs without end, emits without end or allocates without end is
// refused, and the running version goes on.
func TestShadowOfHostileVersion(t *testing.T) {
	both(t, func(f *shadows, pick func(lua, js string) string) {
		f.attrs = "script {\non_reload = \"shadow\"\nlimits {\ntime = \"50ms\"\nmemory = \"8MiB\"\n}\n}"
		f.run(pick(`metrics = function(batch) end`, `metrics(batch) {}`))
		for range 3 {
			f.send(text(t, 1, "a 1\nb 2\n"))
		}
		for _, hooks := range []string{
			pick(`metrics = function(batch) while true do end end`, `metrics(batch) { for (;;); }`),
			pick(`metrics = function(batch, ctx) while true do ctx.emit { name = "n", value = 1 } end end`, `metrics(batch, ctx) { for (;;) ctx.emit({ name: "n", value: 1 }); }`),
			pick(`metrics = function(batch) local t = {} while true do t[#t + 1] = ("x"):rep(1000) .. #t end end`, `metrics(batch) { const t = []; for (;;) t.push("x".repeat(1000) + t.length); }`),
		} {
			r, _ := f.try(hooks)
			if r == nil || !strings.HasPrefix(r.Err.Error(), "scripts/"+f.path+":") {
				t.Errorf("%s: got %+v", hooks, r)
			}
			same(t, f.send(text(t, 1, "a 1\n")), "a 1\n")
		}
	})
}

// The step ends after max_time, and decides by the results so far.
func TestShadowMaxTime(t *testing.T) {
	f := newShadows(t, "lua")
	f.attrs = "script {\non_reload = \"shadow\"\nlimits {\ntime = \"50ms\"\n}\nshadow {\nmax_time = \"100ms\"\n}\n}"
	f.run(`metrics = function(batch) end`)
	for range 10 {
		f.send(text(t, 1, "a 1\n"))
	}
	r, d := f.try(`metrics = function(batch) while true do end end`)
	if r == nil || d.Batches == 0 || d.Batches > 5 || d.ErrorsAfter != d.Batches || d.Note != fmt.Sprintf("%d of 10 batches were compared within max_time", d.Batches) {
		t.Errorf("got %+v, %+v", r, d)
	}
}

// Both versions have the state that the running version has, and change copies.
func TestShadowCopiesState(t *testing.T) {
	both(t, func(f *shadows, pick func(lua, js string) string) {
		count := func(step string) string {
			return pick(`state = { n = weir.state.counter { max = 10 } },
				metrics = function(batch, ctx) for r in batch:records() do r.value = ctx.state.n:add("k", `+step+`) end end`,
				`state: { n: state.counter({ max: 10 }) },
				metrics(batch, ctx) { for (const r of batch) r.value = ctx.state.n.add("k", `+step+`); }`)
		}
		f.imports = "defineTransform, state"
		f.run(count("1"))
		same(t, f.send(text(t, 1, "a 1\n")), "a 1\n")
		same(t, f.send(text(t, 1, "a 1\n")), "a 2\n")
		f.passes(count("10"), node.Difference{
			Batches: 2, Records: 2, Changed: 2,
			ChangedExamples: []node.Change{{Before: "a 3 1000", After: "a 12 1000"}, {Before: "a 4 1000", After: "a 22 1000"}},
		})
		same(t, f.send(text(t, 1, "a 1\n")), "a 3\n")
	})
}

// A new version that declares other state migrates a copy.
func TestShadowMigratesCopy(t *testing.T) {
	f := newShadows(t, "lua")
	f.run(`state = { n = weir.state.counter { max = 10 } },
		metrics = function(batch, ctx) for r in batch:records() do r.value = ctx.state.n:add("k", 1) end end`)
	same(t, f.send(text(t, 1, "a 1\n")), "a 1\n")
	migrates := `version = 2, state = { m = weir.state.counter { max = 10 } },
		migrate = function(old, version, ctx) ctx.state.m:set("k", old.n:get("k") * 100) end,
		metrics = function(batch, ctx) for r in batch:records() do r.value = ctx.state.m:add("k", 1) end end`
	f.passes(migrates, node.Difference{Batches: 1, Records: 1, Changed: 1, ChangedExamples: []node.Change{{Before: "a 2 1000", After: "a 101 1000"}}})
	same(t, f.send(text(t, 1, "a 1\n")), "a 2\n")
	f.refused(strings.Replace(migrates, "* 100", ".x", 1), "cannot migrate the state of version 1: scripts/a/b.lua:4: in migrate: attempt to index a number value with key 'x'")
	same(t, f.send(text(t, 1, "a 1\n")), "a 3\n")
}

// Nothing that the versions log, count, export or report leaves the step, and sleeping takes
// no time.
func TestShadowHasNoEffect(t *testing.T) {
	both(t, func(f *shadows, pick func(lua, js string) string) {
		f.run(pick(`metrics = function(batch) end`, `metrics(batch) {}`))
		f.send(text(t, 1, "a 1\n"))
		metrics := func() string {
			all, err := f.Registry.Gather()
			if err != nil {
				t.Fatal(err)
			}
			return fmt.Sprint(all)
		}
		before := metrics()
		f.passes(pick(
			`metrics = function(batch, ctx)
				ctx.log.error("told")
				ctx.metrics.counter("told"):add(1)
				ctx.health("unhealthy", "told")
				ctx.sleep(5)
			end`,
			`async metrics(batch, ctx) {
				ctx.log.error("told");
				ctx.metrics.counter("told").add(1);
				ctx.health("unhealthy", "told");
				await ctx.sleep(5);
			}`), node.Difference{Batches: 1, Records: 1, Kept: 1})
		same(t, metrics(), before)
		if f.Health().State != component.Healthy || strings.Contains(f.Logs(), "told") {
			t.Errorf("health %v, log %s", f.Health(), f.Logs())
		}
		if !strings.Contains(f.Logs(), "compared a new version with the running version") {
			t.Errorf("logged %s", f.Logs())
		}
	})
}

// Both versions get the recent answers of external systems to the running version.
// If the new version needs another answer for a record, the record is not compared.
func TestShadowAnswers(t *testing.T) {
	both(t, func(f *shadows, pick func(lua, js string) string) {
		requests := 0
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			requests++
			body, err := io.ReadAll(r.Body)
			if err != nil {
				t.Error(err)
			}
			fmt.Fprintf(w, "%d %s", requests, body)
		}))
		defer srv.Close()
		f.options.Outside.Exec = func(_ context.Context, c egress.Command) (egress.CommandResult, error) {
			requests++
			return egress.CommandResult{Stdout: strings.Join(c.Args, " ")}, nil
		}
		f.restart()
		f.attrs = "script {\non_reload = \"shadow\"\nallow {\nhttp = [\"" + srv.URL + "/*\"]\nexec = [\"/bin/echo\"]\n}\n}"
		ask := func(arg, label string) string {
			return pick(
				`needs = { http = true, exec = true }, metrics = function(batch, ctx)
					for r in batch:records() do
						r.labels.`+label+` = assert(ctx.http.post("`+srv.URL+`/x?token=t", `+arg+`)).body .. assert(ctx.exec("/bin/echo", { r.name })).stdout
					end
				end`,
				`needs: { http: true, exec: true }, async metrics(batch, ctx) {
					for (const r of batch)
						r.labels.`+label+` = (await ctx.http.post("`+srv.URL+`/x?token=t", `+arg+`)).body + (await ctx.exec("/bin/echo", [r.name])).stdout;
				}`)
		}
		f.run(ask("r.name", "l"))
		same(t, f.send(text(t, 1, "a 1\n")), `a{l="1 aa"} 1`+"\n")
		same(t, f.send(text(t, 1, "b 1\n")), `b{l="3 bb"} 1`+"\n")
		f.passes(ask("r.name", "l"+"2"), node.Difference{
			Batches: 2, Records: 2, Changed: 2,
			ChangedExamples: []node.Change{{Before: `a{l="1 aa"} 1 1000`, After: `a{l2="1 aa"} 1 1000`}, {Before: `b{l="3 bb"} 1 1000`, After: `b{l2="3 bb"} 1 1000`}},
			NewSeries:       node.Names{Count: 2, Examples: []string{`a{l2="1 aa"}`, `b{l2="3 bb"}`}},
			GoneSeries:      node.Names{Count: 2, Examples: []string{`a{l="1 aa"}`, `b{l="3 bb"}`}},
			NewLabels:       node.Names{Count: 1, Examples: []string{"l2"}},
			GoneLabels:      node.Names{Count: 1, Examples: []string{"l"}},
		})
		shown := "POST " + srv.URL + "/x"
		f.passes(ask(pick(`r.name == "a" and "a" or "other"`, `r.name === "a" ? "a" : "other"`), "l"), node.Difference{
			Batches: 1, Records: 1, Kept: 1, Skipped: 1, External: shown,
			Note: "1 records were not compared: the running version has no recent answer that the new version needs for them: " + shown,
		})
		if requests != 4 {
			t.Errorf("got %d requests and programs, want the 4 of the running version", requests)
		}

		// Without on_reload = "shadow" for a while, the answers are gone.
		on := f.attrs
		f.attrs = strings.Replace(on, "on_reload = \"shadow\"\n", "", 1)
		f.run(ask("r.name", "off"))
		f.send(text(t, 1, "c 1\n"))
		f.attrs = on
		f.run(ask(`"n"`, "on"))
		f.send(text(t, 1, "a 1\n"))
		if _, d := f.try(ask("r.name", "l")); d.Skipped != 1 || d.Records != 0 {
			t.Errorf("got %+v", d)
		}
	})
}

// Setup runs before the input is processed. A version whose setup fails is refused,
// unless it needs an external system.
func TestShadowSetup(t *testing.T) {
	both(t, func(f *shadows, pick func(lua, js string) string) {
		f.imports = "defineTransform, state"
		f.attrs = "script {\non_reload = \"shadow\"\nallow {\nhttp = [\"http://127.0.0.1:1/*\"]\n}\n}"
		setup := func(lua, js string) string {
			return pick(
				`needs = { http = true }, state = { n = weir.state.map { max = 10 } },
				setup = function(ctx) `+lua+` end,
				metrics = function(batch, ctx) for r in batch:records() do r.value = ctx.state.n:get("k") end end`,
				`needs: { http: true }, state: { n: state.map({ max: 10 }) },
				async setup(ctx) { `+js+` },
				metrics(batch, ctx) { for (const r of batch) r.value = ctx.state.n.get("k"); }`)
		}
		set := func(v string) string { return setup(`ctx.state.n:set("k", `+v+`)`, `ctx.state.n.set("k", `+v+`);`) }
		f.run(set("1"))
		same(t, f.send(text(t, 1, "a 0\n")), "a 1\n")
		f.passes(set("2"), node.Difference{Batches: 1, Records: 1, Changed: 1, ChangedExamples: []node.Change{{Before: "a 1 1000", After: "a 2 1000"}}})
		same(t, f.send(text(t, 1, "a 0\n")), "a 1\n")
		f.refused(setup(`error("no")`, `throw new Error("no");`), "scripts/"+f.path+pick(":4: in setup: no", ":4:30: in setup: no"))
		if r, d := f.try(setup(`assert(ctx.http.get("http://127.0.0.1:1/x"))`, `await ctx.http.get("http://127.0.0.1:1/x");`)); r != nil ||
			d.External != "GET http://127.0.0.1:1/x" || !strings.HasPrefix(d.Note, "setup needs an external system: scripts/"+f.path) {
			t.Errorf("got %+v, %+v", r, d)
		}
	})
}

// Comparisons leave half of the cores to the running versions.
func TestShadowsAtOnce(t *testing.T) {
	f := newShadows(t, "lua")
	began, goOn := make(chan bool), make(chan bool)
	f.options.Outside.ReadFile = func(string, int64) ([]byte, error) {
		began <- true
		<-goOn
		return []byte("x"), nil
	}
	f.restart()
	f.attrs = "script {\non_reload = \"shadow\"\nallow {\nread = [\"/etc/x\"]\n}\n}"
	f.run(`needs = { read = true }, metrics = function(batch) end`)
	f.send(text(t, 1, "a 1\n"))
	r := f.lookup(`needs = { read = true }, metrics = function(batch, ctx) ctx.read("/etc/x") end`)
	args := r.NewArgs()
	if err := registrytest.Decode(args, f.attrs, f.sink); err != nil {
		t.Fatal(err)
	}
	try := func(ctx context.Context) *component.Rejection {
		return r.Trial(ctx, component.Trial{Node: f.ID, Args: args, Running: f.c, Begin: func(string) {}})
	}
	var wg sync.WaitGroup
	defer wg.Wait()
	defer close(goOn)
	for range max(1, runtime.GOMAXPROCS(0)/2) {
		wg.Go(func() {
			if got := try(t.Context()); got != nil {
				t.Errorf("got %+v", got)
			}
		})
		<-began
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if got := try(ctx); got == nil || !errors.Is(got.Err, context.Canceled) || strings.Contains(f.Logs(), "compared a new version") {
		t.Errorf("got %+v, log %s", got, f.Logs())
	}
}

// A node whose arguments change, or whose block does not ask for it, does not run
// the step.
func TestShadowOfWhat(t *testing.T) {
	f := newShadows(t, "lua")
	f.run(`metrics = function(batch) end`)
	f.send(text(t, 1, "a 1\n"))
	for _, tc := range []struct{ hooks, attrs string }{
		{`metrics = function(batch) end`, "script {\non_reload = \"shadow\"\non_error = \"drop\"\n}"},
		{`metrics = function(batch) error("no") end`, ""},
		{`metrics = function(batch) error("no") end`, `script { on_reload = "swap" }`},
	} {
		r := f.lookup(tc.hooks)
		args := r.NewArgs()
		if err := registrytest.Decode(args, tc.attrs, f.sink); err != nil {
			t.Fatal(err)
		}
		if got := r.Trial(t.Context(), component.Trial{Node: f.ID, Args: args, Running: f.c, Begin: func(step string) { t.Errorf("%s: step %s", tc.attrs, step) }}); got != nil {
			t.Errorf("%s: got %+v", tc.attrs, got)
		}
	}
}

// Without input there is nothing to refuse a version for.
func TestShadowWithoutInput(t *testing.T) {
	f := newShadows(t, "lua")
	f.run(`metrics = function(batch) end`)
	f.passes(`metrics = function(batch) error("no") end`, node.Difference{Note: "the node has no recent input yet"})
}

// The kept input is bounded, survives a reload, and is dropped with on_reload = "shadow".
func TestShadowInput(t *testing.T) {
	f := newShadows(t, "lua")
	records := func() int {
		f.t.Helper()
		_, d := f.try(fmt.Sprintf("metrics = function(batch) local n = %d end", len(f.sink.Batches())))
		return d.Records
	}
	f.attrs = "script {\non_reload = \"shadow\"\nshadow {\ninput_size = \"64KiB\"\n}\n}"
	f.run(`metrics = function(batch) end`)
	in := text(t, 1, strings.Repeat("a 1\n", 100))
	for range 5 {
		f.send(in)
	}
	if got := records(); got != 500 {
		t.Errorf("got %d records, want 500", got)
	}
	f.run(`metrics = function(batch) local after = true end`)
	if got := records(); got != 500 {
		t.Errorf("got %d records after a reload, want 500", got)
	}
	for range 100 {
		f.send(in)
	}
	if got := records(); got < 1000 || got > 2500 {
		t.Errorf("got %d records, want those of about 64KiB", got)
	}
	f.send(text(t, 2, strings.Repeat("b 1\n", 10_000))) // larger than the limit
	if got := records(); got < 1000 || got > 2500 {
		t.Errorf("got %d records, want those of about 64KiB", got)
	}

	f.attrs = ""
	f.run(`metrics = function(batch) local off = true end`)
	f.run(`metrics = function(batch) local off = 1 end`) // the previous version has run
	f.attrs = shadowOn
	if got := records(); got != 0 {
		t.Errorf("got %d records without on_reload = \"shadow\"", got)
	}
	f.run(`metrics = function(batch) local again = true end`)
	f.sink.Refuse(flowtest.ErrRefused)
	if err := f.gate.ConsumeMetrics(context.Background(), in); !errors.Is(err, flowtest.ErrRefused) {
		t.Fatalf("got %v, want a refusal", err)
	}
	f.sink.Refuse(nil)
	f.send(in)
	if got := records(); got != 100 {
		t.Errorf("got %d records, want those of the batch that was sent twice once", got)
	}
}

// Compare finds the difference for a preview: the node keeps and logs nothing of it.
func TestCompare(t *testing.T) {
	both(t, func(f *shadows, pick func(lua, js string) string) {
		keep := pick(`metrics = function(batch) end`, `metrics(batch) {}`)
		drop := pick(`metrics = function(batch) batch:drop_where("value > 1") end`, `metrics(batch) { batch.dropWhere("value > 1"); }`)
		f.run(keep)
		compare := func(ctx context.Context) (string, string) {
			t.Helper()
			r := f.lookup(drop)
			args := r.NewArgs()
			if err := registrytest.Decode(args, f.attrs, f.sink); err != nil {
				t.Fatal(err)
			}
			d, rejection := r.Compare(ctx, component.Trial{Node: f.ID, Args: args, Running: f.c})
			text := timing.ReplaceAllString(d.String(), "… ns")
			if rejection == nil {
				return text, ""
			}
			return text, rejection.Step + ": " + rejection.Err.Error()
		}
		want := func(ctx context.Context, want, wantRefused string) {
			t.Helper()
			got, refused := compare(ctx)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(wantRefused, refused); diff != "" {
				t.Errorf("refused (-want +got):\n%s", diff)
			}
		}
		want(t.Context(), "no comparison: the node has no recent input yet", "")
		f.send(text(t, 1, "a 1\nb 2\n"))
		want(t.Context(), `records: 2; unchanged: 1, changed: 0, dropped: 1, no longer dropped: 0
  dropped: b 2 1000
series that end: 1 (b)
time per record: … ns → … ns`, "")
		f.send(text(t, 2, "b 2\n"))
		want(t.Context(), `records: 3; unchanged: 1, changed: 0, dropped: 2, no longer dropped: 0
  dropped: b 2 1000
  dropped: b 2 1000
series that end: 1 (b)
time per record: … ns → … ns`,
			"shadow: scripts/"+f.path+": the new version drops 2 of 3 recent records that the running version keeps, and keeps 0 that it drops; the limit is an increase of 50 % (script.shadow.max_drop_increase)")
		ended, cancel := context.WithCancelCause(t.Context())
		cancel(errors.New("the preview took too long"))
		want(ended, "no comparison: the preview took too long", "")
		f.attrs = ""
		want(t.Context(), `no comparison: on_reload is not "shadow"`, "")
		if d := f.c.(*node.Component).LastDifference(); d != nil {
			t.Errorf("the node keeps the difference %+v", d)
		}
		if strings.Contains(f.log.String(), "compared") {
			t.Errorf("it was logged:\n%s", &f.log)
		}
	})
}

var timing = regexp.MustCompile(`\d+ ns`)

// A difference is shown with everything that it has.
func TestDifferenceText(t *testing.T) {
	got := (&node.Difference{
		Note: "3 records were not compared", Batches: 2, Records: 10, Kept: 6, Changed: 2, Dropped: 1, Restored: 1,
		EmittedBefore: 1, EmittedAfter: 3, EmittedChanged: 1, EmittedMissing: 0,
		ChangedExamples: []node.Change{{Before: "a 1", After: "a 2"}}, DroppedExamples: []string{"b 1"},
		NewSeries: node.Names{Count: 7, Examples: []string{"x", "y"}}, GoneSeries: node.Names{Count: 1, Examples: []string{"b"}},
		NewLabels: node.Names{Count: 1, Examples: []string{"env"}}, GoneLabels: node.Names{Count: 1, Examples: []string{"pod"}},
		NanosBefore: 100, NanosAfter: 250, ErrorsBefore: 1, ErrorsAfter: 2,
	}).String()
	want := `records: 10; unchanged: 6, changed: 2, dropped: 1, no longer dropped: 1
  changed: a 1
       to: a 2
  dropped: b 1
emitted records: 1 → 3; changed: 1, missing: 0
new series: 7 (x, y, …)
series that end: 1 (b)
new labels: 1 (env)
labels that disappear: 1 (pod)
time per record: 100 ns → 250 ns
errors: 1 → 2
incomplete: 3 records were not compared`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

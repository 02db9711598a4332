package node_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/scripting"
	"github.com/weir-run/weir/scripting/internal/registrytest"
	"github.com/weir-run/weir/scripting/js"
	"github.com/weir-run/weir/scripting/lua"
	"github.com/weir-run/weir/scripting/registry"
	"github.com/weir-run/weir/scripting/versions"
	"github.com/weir-run/weir/stdlib"
)

// trials has a catalog of scripts whose tests fail as it says.
type trials struct {
	*harness
	storage string
	verdict error
	ran     []registry.Tested
	log     bytes.Buffer
	options registry.Options
}

func newTrials(t *testing.T) *trials {
	f := &trials{harness: newHarness(t), storage: t.TempDir()}
	f.options = registry.Options{
		Languages: []scripting.Language{lua.New(), js.New()}, UserDir: f.f.Dir, Modules: stdlib.Modules(),
		Embedded: fstest.MapFS{"lib/shipped.lua": &fstest.MapFile{Data: []byte("return 'shipped'")}},
		Logger:   slog.New(slog.NewTextHandler(&f.log, nil)),
		Test: func(_ context.Context, s registry.Tested) error {
			f.ran = append(f.ran, s)
			return f.verdict
		},
	}
	f.restart()
	return f
}

// restart makes a new catalog, as a new process does.
func (f *trials) restart() {
	f.t.Helper()
	f.options.Versions = versions.Open(f.storage, versions.DefaultLimits, f.options.Logger)
	c, err := registry.NewCatalog(f.options)
	if err != nil {
		f.t.Fatal(err)
	}
	f.cat = c
}

// trial returns what a trial of a.b comes to for a block with attributes.
func (f *trials) trial(attrs string) *component.Rejection {
	f.t.Helper()
	return f.trialOf(attrs, f.t.Context())
}

func (f *trials) trialOf(attrs string, ctx context.Context) *component.Rejection {
	f.t.Helper()
	r, ok := f.cat.Lookup("a.b")
	if !ok || r.Err != nil {
		f.t.Fatalf("a.b is known: %t, %v", ok, r.Err)
	}
	if r.Trial == nil {
		f.t.Fatal("there is no trial")
	}
	args := r.NewArgs()
	if err := registrytest.Decode(args, attrs, f.sink); err != nil {
		f.t.Fatal(err)
	}
	return try(ctx, r, args)
}

// try runs the trial of a version. If the version passes, it becomes active, as in an
// engine.
func try(ctx context.Context, r component.Registration, args any) *component.Rejection {
	rejection := r.Trial(ctx, component.Trial{Node: "a.b.c", Args: args, Begin: func(string) {}})
	if rejection == nil {
		r.Activated("a.b.c", time.Now())
	}
	return rejection
}

func (f *trials) save(path, text string) {
	f.t.Helper()
	f.cat.Refresh([]string{f.f.Write(path, text)})
}

var errTrial = errors.New("test says no")

// A version runs its tests once, whoever uses it, and once more after a reload
// only if it failed.
func TestTrialRunsOnce(t *testing.T) {
	f := newTrials(t)
	f.save("a/b.lua", registrytest.Script)
	f.save("a/b_test.lua", "-- 1\n")
	r, _ := f.cat.Lookup("a.b")

	var got []string
	for _, path := range r.Sources {
		got = append(got, filepath.Base(path))
	}
	if !strings.Contains(fmt.Sprint(got), "b_test.lua") || got[0] != "b.lua" {
		t.Errorf("got sources %q", got)
	}
	f.verdict = errTrial
	for range 3 {
		if got := f.trial(""); got == nil || !errors.Is(got.Err, errTrial) || got.LastGood != nil {
			t.Errorf("got %+v, want the error of the tests and no last good version", got)
		}
	}
	if len(f.ran) != 1 {
		t.Fatalf("the tests ran %d times, want once", len(f.ran))
	}
	if got := f.ran[0]; got.Script.Text != registrytest.Script || got.Test.Text != "-- 1\n" || got.Folder.Dir != f.f.Dir || got.Folder.Catalog == nil {
		t.Errorf("got %+v", got)
	}
	if file, err := f.ran[0].Folder.Env(lua.New()).Require("nope"); err == nil || !strings.Contains(err.Error(), "nope") {
		t.Errorf("got %v, %v for a module that is not there", file, err)
	}
	f.cat.Refresh(f.cat.Roots())
	f.verdict = nil
	for range 2 {
		if got := f.trial(""); got != nil {
			t.Errorf("got %+v", got)
		}
		f.cat.Refresh(f.cat.Roots())
	}
	if len(f.ran) != 2 {
		t.Errorf("the tests ran %d times, want twice: after the reload, and not again when they had passed", len(f.ran))
	}
	f.verdict = errTrial
	f.save("a/b_test.lua", "-- 2\n")
	if got := f.trial(""); got == nil || got.LastGood == nil {
		t.Errorf("got %+v: a change of the test file must be a change of the version", got)
	}
}

// Which scripts are tested is what it is for a save.
func TestTrialOfWhat(t *testing.T) {
	f := newTrials(t)
	f.verdict = errTrial
	f.save("a/b.lua", registrytest.Script)
	if got := f.trial(`script { on_reload = "test" }`); got != nil || len(f.ran) != 0 {
		t.Errorf("got %+v for a script without tests", got)
	}
	f.save("a/b.lua", "-- Does nothing.\n--\n-- Example Input:\n--   a 1\n-- Example Output:\n--   a 1\n"+registrytest.Script)
	if got := f.trial(""); got != nil {
		t.Errorf("got %+v for examples alone", got)
	}
	if got := f.trial(`script { on_reload = "test" }`); got == nil {
		t.Error(`no rejection with on_reload = "test"`)
	}
	f.save("a/b_test.lua", "")
	if got := f.trial(`script { on_reload = "swap" }`); got != nil {
		t.Errorf(`got %+v with on_reload = "swap"`, got)
	}
	if got := f.trial(""); got == nil {
		t.Error("no rejection with a test file")
	}
}

// The last version that passed comes back with everything it was made of.
func TestLastGood(t *testing.T) {
	for _, v := range []struct{ name, script, lib, data, test string }{
		{"lua", "a/b.lua", "lib/mod.lua", "lib/data.json", "a/b_test.lua"},
		{"typescript", "a/b.ts", "a/mod.ts", "a/data.yaml", "a/b.test.ts"},
	} {
		t.Run(v.name, func(t *testing.T) {
			f := newTrials(t)
			write := func(label string) {
				if v.name == "lua" {
					f.save(v.script, `local weir, mod, data, shipped = require "weir", require "mod", require "data.json", require "shipped"
return weir.transform { series = function(s) s.labels.v = "`+label+`" .. mod .. data.x .. shipped end }`)
					f.save(v.lib, `return "`+label+`"`)
				} else {
					f.save(v.script, `import { defineTransform } from "weir"; import { mod } from "./mod"; import data from "./data.yaml";
export default defineTransform({ series(s) { s.labels.v = "`+label+`" + mod + data.x + "shipped"; } });`)
					f.save(v.lib, `export const mod: string = "`+label+`";`)
				}
				f.save(v.data, `{"x": "`+label+`"}`)
			}
			f.save(v.test, "")
			write("1")
			if got := f.trial(""); got != nil {
				t.Fatalf("got %+v", got)
			}
			first, _ := f.cat.Lookup("a.b")

			f.verdict = errTrial
			write("2")
			f.restart()
			if v.name == "lua" { // what is not there any more is in the copy
				if err := os.Remove(filepath.Join(f.f.Dir, filepath.FromSlash(v.data))); err != nil {
					t.Fatal(err)
				}
				f.save(v.script, `return require("weir").transform { args = { new = require("weir").arg.string {} }, series = function() end }`)
			}
			attrs := ""
			if v.name == "lua" {
				attrs = `new = "x"`
			}
			got := f.trial(attrs)
			if got == nil || got.LastGood == nil || !errors.Is(got.Err, errTrial) {
				t.Fatalf("got %+v, want the last good version; log: %s", got, &f.log)
			}
			now, _ := f.cat.Lookup("a.b")
			if got.LastGood.Version != first.Version || got.LastGood.Version == now.Version {
				t.Errorf("got version %s, want %s", got.LastGood.Version, first.Version)
			}
			if diff := cmp.Diff(now.Sources, got.LastGood.Sources); diff != "" {
				t.Errorf("a change of a file of the saved version must be noticed (-want +got):\n%s", diff)
			}
			f.swap(*got.LastGood, "")
			same(t, f.send(text(t, 1, "a 1\n")), "a{v=\"111shipped\"} 1\n")

			f.verdict = nil
			write("3")
			if got := f.trial(""); got != nil {
				t.Fatalf("got %+v", got)
			}
			f.verdict = errTrial
			write("4")
			f.restart()
			got = f.trial("")
			if got == nil || got.LastGood == nil {
				t.Fatalf("got %+v, want the last good version", got)
			}
			f.swap(*got.LastGood, "")
			same(t, f.send(text(t, 2, "a 1\n")), "a{v=\"333shipped\"} 1\n")
		})
	}
}

// Two namespaces of one folder have their own versions.
func TestLastGoodOfNamespaces(t *testing.T) {
	f := newTrials(t)
	f.f.Write("a/b.lua", fmt.Sprintf("local weir = require 'weir'\n"+label, "1"))
	f.f.Write("a/b_test.lua", "")
	catalog := func(namespace, dir string) component.Catalog {
		o := f.options
		o.Namespace, o.UserDir = namespace, dir
		c, err := registry.NewCatalog(o)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	trial := func(c component.Catalog, name string) *component.Rejection {
		r := registrytest.Lookup(t, c, name)
		return try(t.Context(), r, r.NewArgs())
	}
	if got := trial(catalog("v1", f.f.Dir), "v1.a.b"); got != nil {
		t.Fatalf("got %+v", got)
	}
	f.verdict = errTrial
	f.f.Write("a/b.lua", "-- Changed.\n"+fmt.Sprintf("local weir = require 'weir'\n"+label, "2"))
	if got := trial(catalog("v1", f.f.Dir), "v1.a.b"); got == nil || got.LastGood == nil {
		t.Errorf("got %+v, want the version that passed in namespace v1", got)
	}
	if got := trial(catalog("v2", f.f.Dir), "v2.a.b"); got == nil || got.LastGood != nil {
		t.Errorf("got %+v, want no version: none passed in namespace v2", got)
	}
}

// A store that is damaged or cannot be written costs the last good version, and
// is reported.
func TestLastGoodWithoutStore(t *testing.T) {
	f := newTrials(t)
	f.save("a/b.lua", registrytest.Script)
	f.save("a/b_test.lua", "")
	if got := f.trial(""); got != nil {
		t.Fatalf("got %+v", got)
	}
	files, err := filepath.Glob(filepath.Join(f.storage, "*", "*.history"))
	if err != nil || len(files) != 1 {
		t.Fatalf("got files %q, %v", files, err)
	}
	if err := os.WriteFile(files[0], []byte("nonsense"), 0o600); err != nil {
		t.Fatal(err)
	}
	f.verdict = errTrial
	f.restart()
	f.save("a/b.lua", registrytest.Script+"-- 2\n")
	if got := f.trial(""); got == nil || got.LastGood != nil {
		t.Errorf("got %+v, want a rejection without a last good version", got)
	}
	if !strings.Contains(f.log.String(), "cannot read the history of a script, weir begins it again") {
		t.Errorf("logged %s", &f.log)
	}

	f.storage = filepath.Join(files[0]+".damaged", "x") // a file is no folder
	f.restart()
	f.log.Reset()
	if got := f.trial(""); got == nil || !errors.Is(got.Err, errTrial) {
		t.Errorf("got %+v", got)
	}
	f.verdict = nil
	f.save("a/b.lua", registrytest.Script+"-- 3\n")
	if got := f.trial(""); got != nil {
		t.Errorf("got %+v: a version that cannot be stored may run", got)
	}
	if !strings.Contains(f.log.String(), "a later start cannot fall back on it") {
		t.Errorf("logged %s", &f.log)
	}
}

// Tests that do not end in time reject a new version, but not one that has
// passed before. Tests that end because weir stops say nothing.
func TestTrialLate(t *testing.T) {
	f := newTrials(t)
	f.save("a/b.lua", registrytest.Script)
	f.save("a/b_test.lua", "")
	if got := f.trial(""); got != nil {
		t.Fatalf("got %+v", got)
	}
	late, cancel := context.WithTimeout(t.Context(), 0)
	defer cancel()
	<-late.Done()
	f.verdict = errors.New("too slow")
	f.restart()
	if got := f.trialOf("", late); got != nil {
		t.Errorf("got %+v for a version that has passed before", got)
	}
	if !strings.Contains(f.log.String(), "did not end in time") {
		t.Errorf("logged %s", &f.log)
	}
	f.save("a/b.lua", registrytest.Script+"-- 2\n")
	if got := f.trialOf("", late); got == nil || got.LastGood == nil {
		t.Errorf("got %+v for a version that has not passed before", got)
	}

	f.save("a/b.lua", registrytest.Script+"-- 3\n")
	stopping, stop := context.WithCancel(t.Context())
	stop()
	f.trialOf("", stopping)
	f.verdict = nil
	if got := f.trial(""); got != nil {
		t.Errorf("got %+v, which was no verdict", got)
	}
}

// weir check warns of a version that failed its tests when it ran.
func TestRejectedIsKnown(t *testing.T) {
	f := newTrials(t)
	f.save("a/b.lua", registrytest.Script)
	f.save("a/b_test.lua", "")
	warned := func() string {
		var found []string
		o := f.options
		o.Versions = versions.Look(f.storage)
		o.Checks = &registry.Checks{Warn: func(e *scripting.Error) { found = append(found, e.Error()) }}
		c, err := registry.NewCatalog(o)
		if err != nil {
			t.Fatal(err)
		}
		if r := registrytest.Lookup(t, c, "a.b"); r.Err != nil {
			t.Fatal(r.Err)
		}
		return strings.Join(found, "\n")
	}
	if got := warned(); got != "" {
		t.Errorf("warned %q before weir ran", got)
	}
	f.verdict = errTrial
	f.trial("")
	if got := warned(); !strings.Contains(got, "scripts/a/b.lua: this version failed its tests on ") || !strings.Contains(got, " UTC; weir runs it all the same, because no version has passed its tests yet: test says no") {
		t.Errorf("warned %q", got)
	}
	f.verdict = nil
	f.restart()
	f.trial("")
	if got := warned(); got != "" {
		t.Errorf("warned %q after it passed", got)
	}
	f.verdict = errTrial
	f.save("a/b.lua", registrytest.Script+"-- 2\n")
	f.trial("")
	if got := warned(); !strings.Contains(got, "; weir runs version ") {
		t.Errorf("warned %q", got)
	}
	f.save("a/b.lua", registrytest.Script+"-- 3\n")
	if got := warned(); got != "" {
		t.Errorf("warned %q of a version that was not tested", got)
	}
}

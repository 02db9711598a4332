package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/weir-run/weir/cmd/weir/starter"
	"github.com/weir-run/weir/engine/config"
	"github.com/weir-run/weir/scripting/registry"
)

// TestNewComponents creates a component of each language, kind and signal and checks
// that it passes weir check and weir test, that its test notices every change of its
// code, that its header is a manual with a valid config, and that no name of a template
// is left.
func TestNewComponents(t *testing.T) {
	t.Chdir(t.TempDir())
	run := func(args ...string) (stdout string) {
		t.Helper()
		var out, err bytes.Buffer
		if code := execute(t.Context(), &terminal{out: &out, err: &err}, args); code != exitOK || err.Len() > 0 {
			t.Fatalf("weir %s: exit code %d\n%s%s", strings.Join(args, " "), code, &out, &err)
		}
		return out.String()
	}
	var names []string
	for _, lang := range starter.Languages() {
		for _, kind := range starter.Kinds() {
			for _, signal := range starter.Signals() {
				args := []string{"--signal=" + signal}
				if kind == starter.Discovery {
					if signal != starter.Signals()[0] {
						continue
					}
					args = nil
				}
				path := fmt.Sprintf("%s_%s/my_%s", lang, kind, signal)
				run(append(args, "new", "component", path, "--lang="+lang, "--kind="+kind)...)
				names = append(names, strings.ReplaceAll(path, "/", "."))
			}
		}
	}
	if want := 21; len(names) != want {
		t.Fatalf("created %d components, want %d", len(names), want)
	}
	if got, want := run("check", "scripts"), "21 scripts are fine\n"; got != want {
		t.Errorf("weir check printed %q, want %q", got, want)
	}
	report := run("test", "--coverage", "--threshold=100", "scripts")
	if got := len(regexp.MustCompile(`(?m)^ok .*(_test\.lua|\.test\.(js|ts)) +[3-9] tests`).FindAllString(report, -1)); got != len(names) {
		t.Errorf("%d of %d test files have three tests that pass:\n%s", got, len(names), report)
	}
	if got, want := strings.Count(report, " 1 test "), 3*2; got != want {
		t.Errorf("%d examples pass, want one of each transform, %d", got, want)
	}
	if !testing.Short() {
		// The scripts in JavaScript and TypeScript have the same code.
		for _, dir := range []string{"lua", "ts"} {
			for _, kind := range starter.Kinds() {
				run("test", "--mutate-threshold=100", "scripts/"+dir+"_"+kind)
			}
		}
	}

	catalogs, err := scriptsUse{}.catalogs("scripts")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		r, ok := lookup(catalogs, name)
		if !ok {
			t.Errorf("there is no component %s", name)
			continue
		}
		block := headerConfig(name, r.Doc.Summary)
		if block == "" {
			t.Errorf("%s has no config in its header", name)
			continue
		}
		plain := strings.ReplaceAll(block, "\n  ", "\n")[2:] + "\n"
		if formatted, ds := config.Format(name, plain); formatted != plain {
			t.Errorf("%s: the config in its header is not formatted (%v):\n%s", name, ds, plain)
		}
		checkHeaderConfig(t, name, block, "scripts")
	}
	files, err := registry.Walk("scripts", "")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		text, err := os.ReadFile(filepath.Join("scripts", f))
		if err != nil {
			t.Fatal(err)
		}
		if m := regexp.MustCompile(`.*(template|(transform|source|sink)_(metrics|logs)|"discovery\.).*`).Find(text); m != nil {
			t.Errorf("%s contains the name of a template: %s", f, m)
		}
	}
}

// TestProjectWorkflow checks that GitHub Actions can read the workflow of a project.
// testdata/script/new_project.txtar runs its commands.
func TestProjectWorkflow(t *testing.T) {
	for _, f := range starter.Project(starter.Lua) {
		if f.Path != ".github/workflows/check.yml" {
			continue
		}
		var w struct {
			On   map[string]any
			Jobs map[string]struct {
				RunsOn string `yaml:"runs-on"`
				Steps  []struct{ Uses, Run string }
			}
		}
		if err := yaml.Unmarshal([]byte(f.Text), &w); err != nil {
			t.Fatal(err)
		}
		job := w.Jobs["check"]
		if len(w.On) == 0 || job.RunsOn == "" || len(job.Steps) == 0 {
			t.Errorf("the workflow has no triggers, no machine or no steps: %+v", w)
		}
		for i, s := range job.Steps {
			if (s.Uses == "") == (s.Run == "") {
				t.Errorf("step %d needs either uses or run: %+v", i, s)
			}
		}
		return
	}
	t.Error("a project has no workflow")
}

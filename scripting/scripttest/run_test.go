package scripttest_test

import (
	"context"
	"flag"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/config"
	"github.com/weir-run/weir/engine/service"
	"github.com/weir-run/weir/engine/service/telemetry"
	"github.com/weir-run/weir/natives"
	"github.com/weir-run/weir/scripting"
	"github.com/weir-run/weir/scripting/js"
	"github.com/weir-run/weir/scripting/lua"
	"github.com/weir-run/weir/scripting/scripttest"
	"github.com/weir-run/weir/stdlib"
)

var update = flag.Bool("update", false, "rewrite testdata")

func pipelines() *scripttest.Pipelines {
	logs, err := telemetry.New(telemetry.Options{Output: io.Discard})
	if err != nil {
		panic(err)
	}
	return &scripttest.Pipelines{
		Natives: component.NewList(natives.All()...), Services: []service.Definition{logs.Definition()},
		Unsupported: config.Unsupported{"remotecfg": "write a file"},
	}
}

func options(paths ...string) scripttest.Options {
	return scripttest.Options{
		Languages: []scripting.Language{lua.New(), js.New()}, Modules: stdlib.Modules(), Paths: paths,
		Pipelines: pipelines(),
	}
}

// write puts the files of an archive into a new working directory.
func write(t *testing.T, files []txtar.File) {
	t.Helper()
	t.Chdir(t.TempDir())
	for _, f := range files {
		if err := os.MkdirAll(filepath.Dir(f.Name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(f.Name, f.Data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

var elapsed = regexp.MustCompile(`(?m)  [0-9.]+(ns|µs|ms|s)$| in [0-9.]+(ns|µs|ms|s)$`)

// report runs the tests below scripts and returns what people see, without
// times.
func report(t *testing.T, o scripttest.Options) string {
	t.Helper()
	var b strings.Builder
	p := scripttest.Pretty{W: &b}
	o.Each = p.File
	r, err := scripttest.Run(context.Background(), o)
	if err != nil {
		return "error: " + err.Error() + "\n"
	}
	p.Summary(r)
	return elapsed.ReplaceAllString(b.String(), "")
}

// TestReports runs the scripts of every archive in testdata and compares what
// people see with the file `want` in it.
func TestReports(t *testing.T) {
	names, err := filepath.Glob(filepath.Join("testdata", "*.txtar"))
	if err != nil || len(names) == 0 {
		t.Fatalf("there are no archives: %v", err)
	}
	for _, name := range names {
		path, err := filepath.Abs(name)
		if err != nil {
			t.Fatal(err)
		}
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txtar"), func(t *testing.T) {
			a, err := txtar.ParseFile(path)
			if err != nil {
				t.Fatal(err)
			}
			last := len(a.Files) - 1
			if a.Files[last].Name != "want" {
				t.Fatal("the last file must be want")
			}
			write(t, a.Files[:last])
			got := report(t, options())
			if *update {
				a.Files[last].Data = []byte(got)
				if err := os.WriteFile(path, txtar.Format(a), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if diff := cmp.Diff(string(a.Files[last].Data), got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

package api_test

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-run/weir/scripting"
	"github.com/weir-run/weir/scripting/api"
	"github.com/weir-run/weir/scripting/scripttest"
	"github.com/weir-run/weir/stdlib"
)

// TestTSC proves the types both ways with TypeScript's own compiler: what ships,
// the templates of 'weir new', the examples of the table and testdata/tsc/good compile, and of
// testdata/tsc/bad each line with a number does not, and no other.
func TestTSC(t *testing.T) {
	tsc := os.Getenv("WEIR_TSC")
	if tsc == "" {
		t.Skip("WEIR_TSC does not say where tsc is: make tsc fetches and runs it")
	}
	dir := t.TempDir()
	write := func(name, content string) {
		t.Helper()
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, content := range api.TSTypes(stdlib.Modules(), scripttest.API(scripting.Vitest)) {
		write("types/"+name, content)
	}
	config, err := json.Marshal(api.TSConfig("scripts", "types/"+api.TSFile))
	if err != nil {
		t.Fatal(err)
	}
	write("tsconfig.json", string(config))

	var want []string
	n := 0
	expected := regexp.MustCompile(`// (TS\d+)$`)
	copyAll(t, os.DirFS("../../scripts"), func(name, content string) { n++; write("scripts/"+name, content) })
	copyAll(t, os.DirFS("../../cmd/weir/starter/scripts"), func(name, content string) { write("scripts/"+name, content) })
	copyAll(t, os.DirFS("testdata/tsc/good"), func(name, content string) { write("scripts/good/"+name, content) })
	copyAll(t, os.DirFS("testdata/tsc/bad"), func(name, content string) {
		write("scripts/bad/"+name, content)
		for i, line := range strings.Split(content, "\n") {
			if m := expected.FindStringSubmatch(line); m != nil {
				want = append(want, fmt.Sprintf("scripts/bad/%s:%d %s", name, i+1, m[1]))
			}
		}
	})
	if len(want) < 50 {
		t.Fatalf("only %d mistakes in testdata/tsc/bad", len(want))
	}
	for i, e := range examples() {
		write(fmt.Sprintf("scripts/example/e%d.ts", i), exampleFile(e.use, "js"))
		if e.use.TestJS != "" {
			write(fmt.Sprintf("scripts/example/e%d.test.ts", i), exampleTest(e, fmt.Sprintf("e%d.ts", i), "js"))
		}
	}
	out, err := exec.CommandContext(t.Context(), tsc, "-p", dir, "--pretty", "false").CombinedOutput()
	if _, failed := err.(*exec.ExitError); err != nil && !failed {
		t.Fatal(err)
	}
	var got []string
	said := map[string]string{}
	diagnostic := regexp.MustCompile(`(?m)^(\S+)\((\d+),\d+\): error (TS\d+): (.*)$`)
	for _, m := range diagnostic.FindAllStringSubmatch(string(out), -1) {
		name := m[1]
		if rel, err := filepath.Rel(dir, m[1]); err == nil && filepath.IsAbs(m[1]) {
			name = filepath.ToSlash(rel)
		}
		if i := strings.Index(name, "scripts/"); i > 0 {
			name = name[i:]
		}
		key := fmt.Sprintf("%s:%s %s", name, m[2], m[3])
		said[key] = m[4]
		got = append(got, key)
	}
	if len(got) == 0 {
		t.Fatalf("tsc found nothing: %s", out)
	}
	slices.Sort(got)
	slices.Sort(want)
	got = slices.Compact(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-planted +found):\n%s", diff)
		for _, key := range got {
			if !slices.Contains(want, key) {
				t.Errorf("%s: %s", key, said[key])
			}
		}
	}
}

// copyAll hands over what tsc reads of a folder.
func copyAll(t *testing.T, from fs.FS, to func(name, content string)) {
	t.Helper()
	err := fs.WalkDir(from, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !slices.Contains([]string{".ts", ".js", ".json", ".yaml"}, filepath.Ext(name)) {
			return err
		}
		b, err := fs.ReadFile(from, name)
		if err == nil {
			to(name, string(b))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

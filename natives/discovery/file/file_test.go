package file_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	upstream "github.com/prometheus/prometheus/discovery/file"

	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/natives/discovery/discoverytest"
	"github.com/weir-run/weir/natives/discovery/file"
)

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func addresses(ts []map[string]string) (as []string) {
	for _, t := range ts {
		as = append(as, t["__address__"])
	}
	return as
}

// await waits for targets with the given addresses.
func await(t *testing.T, n *discoverytest.Node, want ...string) {
	t.Helper()
	n.Await(t, strings.Join(want, " "), func(ts []map[string]string) bool { return slices.Equal(addresses(ts), want) })
}

// body returns the body of a block for patterns of files in dir.
func body(dir, interval string, patterns ...string) string {
	var quoted []string
	for _, p := range patterns {
		quoted = append(quoted, fmt.Sprintf("%q", filepath.Join(dir, p)))
	}
	return fmt.Sprintf("files = [%s]\nrefresh_interval = %q", strings.Join(quoted, ", "), interval)
}

func TestSameAsPrometheus(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"a.json":       `[{"targets": ["a:1", "a:2"], "labels": {"team": "x", "__meta_rack": "r1"}}, {"targets": ["a:3"]}]`,
		"b.yml":        "- targets: ['b:1']\n  labels: {team: y}\n- targets: []\n",
		"c.yaml":       "- targets:\n  - c:1\n",
		"UPPER.JSON":   `[{"targets": ["u:1"]}]`,
		"bad.json":     `[{"targets": ["bad:1"]`,
		"null.json":    `[null]`,
		"strict.yaml":  "- targets: ['s:1']\n  lables: {}\n",
		"unknown.json": `[{"targets": ["un:1"], "lables": {}}]`,
		"notes.txt":    `[{"targets": ["n:1"]}]`,
	} {
		write(t, filepath.Join(dir, name), text)
	}
	f := func(targets int, patterns ...string) {
		t.Helper()
		text := "files:\n"
		for _, p := range patterns {
			text += fmt.Sprintf("- %q\n", filepath.Join(dir, p))
		}
		discoverytest.Same(t, file.Registration(), body(dir, "1h", patterns...), new(upstream.SDConfig), text, targets)
	}
	f(3, "a.json")
	f(3, "a.json", "a.json", "*.json")
	f(3, "a.json", "missing.json")
	f(6, "*.json", "b.yml", "*.yaml", "*.JSON")
	f(1, "?.yaml")
}

// TestChanges calls Update with the same arguments, as the engine does when files
// change.
func TestChanges(t *testing.T) {
	dir := t.TempDir()
	a, b := filepath.Join(dir, "a.json"), filepath.Join(dir, "b.json")
	write(t, a, `[{"targets": ["a:1"]}, {"targets": ["a:2"]}]`)
	write(t, b, `[{"targets": ["b:1"]}]`)
	args := body(dir, "1h", "*.json")
	n := discoverytest.Run(t, file.Registration(), args)
	await(t, n, "a:1", "a:2", "b:1")
	n.AwaitHealth(t, component.Healthy, "found 3 targets")
	if diff := cmp.Diff([]string{filepath.Join(dir, "*.json")}, n.Component.Sourced()); diff != "" {
		t.Errorf("sourced (-want +got):\n%s", diff)
	}

	// A file that cannot be read keeps its targets; a removed file does not.
	write(t, a, `[{"targets": ["a:3"]}, {"tar`)
	n.Update(t, args)
	n.AwaitHealth(t, component.Unhealthy, "path "+a+": unexpected end of JSON input")
	await(t, n, "a:1", "a:2", "b:1")
	if err := os.Remove(b); err != nil {
		t.Fatal(err)
	}
	n.Update(t, args)
	await(t, n, "a:1", "a:2")
	n.AwaitHealth(t, component.Unhealthy, a)
	write(t, a, `[{"targets": ["a:3"]}]`)
	n.Update(t, args)
	await(t, n, "a:3")
	n.AwaitHealth(t, component.Healthy, "found 1 target")

	// Other files.
	write(t, filepath.Join(dir, "c.yaml"), "- targets: ['c:1']\n")
	n.Update(t, body(dir, "1h", "c.yaml"))
	await(t, n, "c:1")
	if diff := cmp.Diff([]string{filepath.Join(dir, "c.yaml")}, n.Component.Sourced()); diff != "" {
		t.Errorf("sourced (-want +got):\n%s", diff)
	}
}

// TestRefresh: a change is found after refresh_interval without a notification.
func TestRefresh(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "a.json"), `[{"targets": ["a:1"]}]`)
	n := discoverytest.Run(t, file.Registration(), body(dir, "10ms", "a.json"))
	await(t, n, "a:1")
	write(t, filepath.Join(dir, "a.json"), `[{"targets": ["a:2"]}]`)
	await(t, n, "a:2")
	if err := os.Remove(filepath.Join(dir, "a.json")); err != nil {
		t.Fatal(err)
	}
	await(t, n)
}

func TestMistakes(t *testing.T) {
	f := func(body string, want ...string) {
		t.Helper()
		discoverytest.Mistakes(t, file.Registration(), body, want...)
	}
	f(`files = ["a.json", "b/*.yml", "c.YAML"]`)
	f(``, "missing required attribute files")
	f(`files = []`, "files must not be empty")
	f(`files = ["a.txt", "a*.json*"]`, `"a*.json*" must end in .json, .yml or .yaml`, `"a.txt" must end in`)
	f(`files = ["*/a.json"]`, `"*/a.json" may have a * only behind the last /`)
	f(`files = ["[.json"]`, `"[.json" is no pattern: syntax error in pattern`)
	f("files = [\"a.json\"]\nrefresh_interval = \"0s\"", "refresh_interval is 0s")
}

package glob_test

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/weir-run/weir/engine/glob"
)

func TestCheckStorage(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("paths are others")
	}
	const storage = "/var/lib/weir/data"
	f := func(pattern, exclude, want string) {
		t.Helper()
		var got []string
		for _, e := range glob.CheckStorage("targets", []map[string]string{{}, {"__path__": pattern, "__path_exclude__": exclude}}, true, storage) {
			if !e.Warning || e.Path != "targets" {
				t.Errorf("got %+v, want a warning about targets", e)
			}
			got = append(got, e.Error())
		}
		if (len(got) > 0) != (want != "") || !strings.Contains(strings.Join(got, "\n"), want) {
			t.Errorf("%s without %q: got %q, want %q", pattern, exclude, got, want)
		}
	}
	const also = "targets[1]: __path__ "
	// Patterns that can match files below the directory.
	f("/**/*.log", "", `targets[1]: __path__ "/**/*.log" also matches files in weir's storage directory /var/lib/weir/data, which are not read`)
	f("/var/**", "", also)
	f("/var/lib/*/data/*/*.log", "", also)
	f("/var/lib/{weir,other}/**/*.log", "", also)
	f("/var/lib/we[i]r/d?ta/positions.log", "", also)
	f("/var/lib/weir/data/*/positions.log", "", also)
	f("/var/lib/weir/data/loki.source.file.a/positions.log", "", also)
	f("/var/lib/weir/data/x/**", "", also)
	// Patterns that cannot.
	f("/var/log/**/*.log", "", "")
	f("/var/lib/weir/*.log", "", "")
	f("/var/lib/weir/data", "", "")
	f("/var/lib/weir/database/**", "", "")
	f("/var/lib/[a-v]*/**", "", "")
	f("**/*.log", "", "") // below the working directory
	// Patterns whose matches are left out.
	f("/**/*.log", "/var/lib/weir/data/**", "")
	f("/**/*.log", "**/positions.log", "")
	f("/**/*.log", "/var/log/**", also)
}

// TestCheckStorageOfRelativePatterns: both are relative to the working directory.
func TestCheckStorageOfRelativePatterns(t *testing.T) {
	t.Chdir(t.TempDir())
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	f := func(pattern string, patterns bool, want int) {
		t.Helper()
		got := glob.CheckStorage("targets", []map[string]string{{"__path__": pattern}}, patterns, filepath.Join(dir, "data-weir"))
		if len(got) != want {
			t.Errorf("%s: got %v, want %d warnings", pattern, got, want)
		}
	}
	f("**/*.log", true, 1)
	f("./*/*/*.log", true, 1)
	f("logs/**", true, 0)
	if got := glob.CheckStorage("targets", []map[string]string{{"__path__": "**", "__path_exclude__": "data-weir/**"}}, true, filepath.Join(dir, "data-weir")); len(got) > 0 {
		t.Errorf("got %v, want nothing about what is left out", got)
	}
	f("data-weir/loki.source.file.a/positions.log", false, 1)
	f("data-weir.log", false, 0)
	if runtime.GOOS == "windows" {
		return
	}
	for _, link := range [][2]string{{"data-weir", "link"}, {".", "here"}} {
		if err := os.MkdirAll("data-weir", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(link[0], link[1]); err != nil {
			t.Fatal(err)
		}
	}
	f("link/**", true, 1)
	f("here/data-weir/*", true, 1)
	f("link/a/positions.log", false, 1)
}

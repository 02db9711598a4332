package main

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestChecker: what the API says of a config is what weir check says, without secrets.
func TestChecker(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "config.alloy")
	save := func(name, text string) {
		t.Helper()
		name = filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	save("scripts/my/count.lua", "local weir = require \"weir\"\nlocal seen = {}\nreturn weir.transform {\n  series = function(s) seen[s.name] = true end,\n}\n")
	save("config.alloy", `my.count "a" {
  forward_to = [prometheus.remote_write.b.receiver]
}
prometheus.remote_write "b" {
  endpoint {
    url = sys.env("TO")
    basic_auth {
      username = "me"
      pasword  = "hunter2"
    }
  }
}
`)
	check := newChecker("", "", func(name string) (string, bool) { return "http://" + name + ".example.com", true })
	files, ds, err := check(path)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, d := range ds {
		file, err := filepath.Rel(dir, d.File)
		if err != nil {
			file = d.File
		}
		got = append(got, fmt.Sprintf("%s:%d %s: %s", file, d.Line, d.Severity, d.Msg))
	}
	if len(got) != 2 || !strings.Contains(strings.Join(got, "\n"), "config.alloy:9 error: unknown attribute endpoint.basic_auth.pasword") || !strings.Contains(strings.Join(got, "\n"), "warning: ") {
		t.Errorf("got %q", got)
	}
	if text := files[path]; strings.Contains(text, "hunter2") || !strings.Contains(text, `sys.env("TO")`) {
		t.Errorf("got %s", text)
	}
	if _, _, err := newChecker(filepath.Join(dir, "none"), "", os.LookupEnv)(path); err == nil || !strings.Contains(err.Error(), "cannot read scripts") {
		t.Errorf("without scripts: %v", err)
	}
	if diff := cmp.Diff([]string{path}, slices.Collect(maps.Keys(files))); diff != "" {
		t.Errorf("the files (-want +got):\n%s", diff)
	}
}

package config_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/config"
)

// TestNotText: a file that is not text gives one error, not one per byte.
func TestNotText(t *testing.T) {
	f := func(text, want string) {
		t.Helper()
		c, ds := config.Parse(map[string]string{"c.alloy": text})
		if got := strings.TrimSpace(diagnose(ds)); got != want {
			t.Errorf("%q\ngot %s\nwant %s", text, got, want)
		}
		if len(c.Blocks) != 0 {
			t.Errorf("%q: got blocks %v, want none", text, ids(c))
		}
	}
	const latin, utf16 = "the file is not UTF-8 text (save it as UTF-8)", "the file is UTF-16 text (save it as UTF-8)"

	f("a {}\n// f\xfcr\nb {}\n\xff\xff", "c.alloy:2:5: "+latin)
	f("\xa7\x00\x1bLua\xff", "c.alloy:1:1: "+latin)
	f("a {}\x00\n", "c.alloy:1:5: "+latin)
	f("\xff\xfea\x00 \x00{\x00}\x00", "c.alloy:1:1: "+utf16)
	f("\xfe\xff\x00a\x00 \x00{\x00}", "c.alloy:1:1: "+utf16)

	// A UTF-8 byte order mark and U+FFFD are text.
	if _, ds := config.Parse(map[string]string{"c.alloy": "\ufeffa { }\n// \ufffd\n"}); len(ds) != 0 {
		t.Errorf("got %s, want nothing", diagnose(ds))
	}
}

// TestFilesOfEditors: lock files of Emacs, which are dangling links, and the
// metadata files of macOS are not configs.
func TestFilesOfEditors(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"c.alloy": "a {}", "._c.alloy": "\x00\x05\x16\x07", ".hidden.alloy": "b {}"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("me@host.1234", filepath.Join(dir, ".#c.alloy")); err != nil {
		t.Skip(err)
	}
	c, ds := config.Load(dir)
	if got := strings.Join(ids(c), " "); got != "b a" || len(ds) != 0 {
		t.Errorf("got blocks %q and %q, want b and a", got, diagnose(ds))
	}
	for name, want := range map[string]bool{"c.alloy": true, ".hidden.alloy": true, ".#c.alloy": false, "._c.alloy": false, "c.txt": false} {
		if got := config.IsConfigFile(filepath.Join(dir, name)); got != want {
			t.Errorf("%s: got %t, want %t", name, got, want)
		}
	}
}

// TestUnknownFunction: a call is not reported as a text without quotes.
func TestUnknownFunction(t *testing.T) {
	f := func(value, want string) {
		t.Helper()
		c, _ := config.Parse(map[string]string{"c.alloy": "a {\n v = " + value + "\n}"})
		s, _ := universe(c)
		_, ds := c.Blocks[0].Resolve(s)
		if got := strings.TrimSpace(diagnose(ds)); got != want {
			t.Errorf("%s\ngot %s\nwant %s", value, got, want)
		}
	}
	const list = " ('weir help config' lists the functions)"
	f(`uppercase("x")`, "c.alloy:2:6: function uppercase does not exist"+list)
	f(`prometheus.upper("x")`, "c.alloy:2:6: function prometheus.upper does not exist"+list)
	f(`tolower("x")`, "c.alloy:2:6: function tolower does not exist (did you mean string.to_lower?)")
	f(`path_join("x")`, "c.alloy:2:6: function path_join does not exist (did you mean file.path_join?)")
	f(`string.lowercase("x")`, "c.alloy:2:6: function string.lowercase does not exist (string has format, join, replace, split, to_lower, to_upper, trim, trim_prefix, trim_suffix, trim_space)")
	f(`encoding.from_jsn("x")`, "c.alloy:2:6: function encoding.from_jsn does not exist (did you mean encoding.from_json?)")
	f(`sys.getenv("x")`, "c.alloy:2:6: function sys.getenv does not exist (did you mean sys.env?)")
	f(`constants.hostnam`, "c.alloy:2:6: constant constants.hostnam does not exist (did you mean constants.hostname?)")
	f(`to_lower("x") + constants.os`, "")
	f(`coalesc(uppercase)`, `c.alloy:2:6: function coalesc does not exist (did you mean coalesce?)
c.alloy:2:14: uppercase does not exist (a text is written in quotes: "uppercase")`)
	f(`strings.to_upper("x")`, "c.alloy:2:6: function strings.to_upper does not exist (did you mean string.to_upper?)")
}

// TestBrackets: a single value where a list is expected, the most common error
// with forward_to.
func TestBrackets(t *testing.T) {
	f := func(body, want string) {
		t.Helper()
		c, b := parseOne(t, body)
		s, _ := universe(c)
		if got := strings.TrimSpace(diagnose(b.Decode(s, new(arguments)))); got != want {
			t.Errorf("%s\ngot %s\nwant %s", body, got, want)
		}
	}
	f("forward_to = prometheus.remote_write.default.receiver",
		"c.alloy:2:14: forward_to: should be list(receiver), got receiver (a list is written in brackets: [prometheus.remote_write.default.receiver])")
	f(`forward_to = "x"`, `c.alloy:2:14: forward_to: should be list(receiver), got string`)
	f("forward_to = []\ntargets = {a = \"b\"}", `c.alloy:3:11: targets: should be list(map(string)), got object (a list is written in brackets: [ … ])`)
	f("forward_to = []\nsample_limit = local.file.token.content", `c.alloy:3:16: sample_limit: should be number, got secret or string`)
}

// TestUnsetSecret: a secret that is not set is not shown as a secret.
func TestUnsetSecret(t *testing.T) {
	got := config.Redact(struct {
		Unset component.Secret `alloy:"unset,attr"`
		Set   component.Secret `alloy:"set,attr"`
	}{Set: "hush"})
	if diff := cmp.Diff(map[string]any{"unset": "", "set": "(secret)"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/weir-run/weir/engine/component"
)

// alloyBlocks returns the names in testdata/alloy_blocks.txt.
func alloyBlocks(t *testing.T) (names []string) {
	t.Helper()
	text, err := os.ReadFile("testdata/alloy_blocks.txt")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if name := strings.TrimSpace(line); name != "" && !strings.HasPrefix(name, "#") {
			names = append(names, name)
		}
	}
	return names
}

// shipped returns the catalogs that a config can use without a folder of scripts.
func shipped(t *testing.T) []component.Catalog {
	t.Helper()
	cs, err := usable("")
	if err != nil {
		t.Fatal(err)
	}
	return cs
}

// TestAlloyBlocks: each block of Alloy's reference is either in weir or in the
// table of unsupported blocks.
func TestAlloyBlocks(t *testing.T) {
	cs, table, blocks := shipped(t), unsupported(), alloyBlocks(t)
	ofLanguage := []string{"argument", "export", "livedebugging", "tracing"} // known to engine/config
	for _, name := range blocks {
		_, have := lookup(cs, name)
		have = have || slices.Contains(ofLanguage, name)
		if _, lacks := table[name]; have == lacks {
			t.Errorf("%s: weir has it: %t, the table says that it does not: %t", name, have, lacks)
		}
	}
	for name := range table {
		if !slices.Contains(blocks, name) && !strings.HasSuffix(name, ".*") {
			t.Errorf("%s is in the table, but not a block of Alloy", name)
		}
	}
}

var (
	urls   = regexp.MustCompile(`https?://[^\s,;)"]+`)
	dotted = regexp.MustCompile(`[a-z_]+(\.[a-z_]+)+`)
)

// TestReplacementsExist: the replacements in the table exist.
func TestReplacementsExist(t *testing.T) {
	cs := shipped(t)
	spaces := map[string]bool{}
	for _, name := range alloyBlocks(t) {
		space, _, _ := strings.Cut(name, ".")
		spaces[space] = true
	}
	for _, c := range cs {
		for _, name := range c.Names() {
			space, _, _ := strings.Cut(name, ".")
			spaces[space] = true
		}
	}
	for name, instead := range unsupported() {
		named := strings.Contains(instead, "Grafana Alloy")
		for _, word := range dotted.FindAllString(urls.ReplaceAllString(instead, ""), -1) {
			if space, _, _ := strings.Cut(word, "."); !spaces[space] {
				continue
			}
			found := false
			for at := word; at != "" && !found; at = at[:max(0, strings.LastIndexByte(at, '.'))] {
				r, ok := lookup(cs, at)
				found = ok && r.Err == nil
			}
			if !found {
				t.Errorf("%s: the advice names %s, which does not exist: %s", name, word, instead)
			}
			named = named || found
		}
		if !named {
			t.Errorf("%s: the advice names nothing to use instead: %s", name, instead)
		}
		if instead != strings.TrimSpace(instead) || strings.HasSuffix(instead, ".") || strings.Contains(instead, "\n") {
			t.Errorf("%s: a hint is one line without a full stop: %q", name, instead)
		}
	}
}

// TestScrapeAdvice: the targets in the table's advice are valid.
func TestScrapeAdvice(t *testing.T) {
	fragment := regexp.MustCompile(`targets = (\[.*?\])(?: and (metrics_path = "[^"]*"))?`)
	n := 0
	for name, instead := range unsupported() {
		m := fragment.FindStringSubmatch(instead)
		if m == nil {
			continue
		}
		n++
		path := filepath.Join(t.TempDir(), "config.alloy")
		text := "prometheus.scrape \"x\" {\n  targets    = " + m[1] + "\n  forward_to = []\n  " + m[2] + "\n}\n"
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		e, err := lookingEngine(path, "", "", scriptsUse{})
		if err != nil {
			t.Fatal(err)
		}
		if _, ds := e.Check(path); len(ds) > 0 {
			t.Errorf("%s: %v\n%s", name, ds, text)
		}
	}
	if n < 20 {
		t.Errorf("%d entries tell what to scrape, want those of most exporters", n)
	}
}

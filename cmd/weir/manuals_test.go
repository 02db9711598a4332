package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/weir-run/weir/engine/expr"
)

// configSections returns the config blocks in a manual: indented lines, from one
// that begins a block or names a file to the last brace before other text.
// Consecutive blocks are one section.
func configSections(manual string) (sections []string) {
	begin := regexp.MustCompile(`^  (// \S+\.alloy|[a-z_.]+( "\w+")? \{.*)$`)
	var b strings.Builder
	end := func() {
		if b.Len() > 0 {
			sections = append(sections, b.String())
		}
		b.Reset()
	}
	for line := range strings.Lines(manual) {
		line = strings.TrimRight(line, "\n")
		switch {
		case b.Len() == 0 && !begin.MatchString(line):
		case line == "" || strings.HasPrefix(line, "  "):
			b.WriteString(strings.TrimPrefix(line, "  ") + "\n")
		default:
			end()
		}
	}
	end()
	return sections
}

// TestManualLayout: the lines of the manuals fit into a terminal.
func TestManualLayout(t *testing.T) {
	for line := range strings.Lines(configManual()) {
		if n := len([]rune(strings.TrimRight(line, "\n"))); n > 88 && !strings.Contains(line, "→") {
			t.Errorf("%d columns: %s", n, line)
		}
	}
}

// TestManualConfigs: the blocks in the manuals of the languages pass the check.
func TestManualConfigs(t *testing.T) {
	for name, m := range map[string]struct {
		text string
		n    int
	}{"config": {configManual(), 6}, "expr": {expr.Manual(), 1}} {
		dir := t.TempDir()
		sections := configSections(m.text)
		if len(sections) != m.n {
			t.Errorf("help %s shows %d configs, want %d", name, len(sections), m.n)
		}
		for _, text := range sections {
			text, _, _ = strings.Cut(text, "\na + b\n") // the table of operators
			text = strings.TrimRight(text, "\n") + "\n"
			file := "config.alloy"
			if first, _, _ := strings.Cut(text, "\n"); strings.HasPrefix(first, "// ") {
				file = strings.TrimPrefix(first, "// ")
			}
			path := filepath.Join(dir, file)
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
			e, err := lookingEngine(path, "", "", scriptsUse{})
			if err != nil {
				t.Fatal(err)
			}
			if _, ds := e.Check(path); ds.HasErrors() {
				t.Errorf("help %s: %v\n%s", name, ds, text)
			}
		}
	}
}

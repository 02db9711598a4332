package block_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/weir-run/weir/engine/config"
	"github.com/weir-run/weir/scripting"
	"github.com/weir-run/weir/scripting/block"
)

// TestEverythingIsDocumented holds that the manual has each attribute and block that
// the host adds, and nothing else.
func TestEverythingIsDocumented(t *testing.T) {
	used := map[string]bool{}
	for _, def := range []*scripting.Definition{transform(), source(), sink()} {
		docs := block.Docs(def.Kind)
		_, newArgs := block.TypeOf(def)
		for _, f := range config.Describe(newArgs()) {
			if f.Path == "region" || f.Path == "routes" || strings.HasPrefix(f.Path, "routes.") {
				continue // of the script
			}
			if docs[f.Path] == "" {
				t.Errorf("%s: %s is not documented", def.Kind, f.Path)
			}
			used[f.Path] = true
		}
	}
	all := block.Docs(scripting.Sink)
	maps.Copy(all, block.Docs(scripting.Source))
	for _, path := range slices.Sorted(maps.Keys(all)) {
		if !used[path] {
			t.Errorf("%s is documented, and no block has it", path)
		}
		if text := all[path]; !strings.HasSuffix(text, ".") || strings.TrimSpace(text) != text || strings.Contains(text, "\n") {
			t.Errorf("%s: %q is not written in sentences", path, text)
		}
	}
}

// TestDocsByKind holds that batch and journal are in the manual of sinks alone, and
// that a caller may change what it gets.
func TestDocsByKind(t *testing.T) {
	for kind, want := range map[scripting.ComponentKind]bool{scripting.Transform: false, scripting.Source: false, scripting.Sink: true} {
		docs := block.Docs(kind)
		for _, path := range []string{"batch", "batch.max_records", "journal", "journal.on_full"} {
			if _, ok := docs[path]; ok != want {
				t.Errorf("%s: %s: got %t", kind, path, ok)
			}
		}
		docs["script"] = "changed"
		if block.Docs(kind)["script"] == "changed" {
			t.Errorf("%s: the manual is shared", kind)
		}
	}
}

package main

import (
	"go/ast"
	"os/exec"
	"strings"
	"testing"
)

// apache are the folders of Loki that are not AGPL-3.0, according to its
// LICENSING.md. Some of them link other folders that are.
var apache = []string{
	"github.com/grafana/loki/pkg/push",
	"github.com/grafana/loki/v3/pkg/logproto",
	"github.com/grafana/loki/v3/pkg/loghttp",
	"github.com/grafana/loki/v3/pkg/logqlmodel",
	"github.com/grafana/loki/v3/pkg/push",
	"github.com/grafana/loki/v3/pkg/util",
}

// isLoki reports whether a package belongs to Loki, except the few that do not
// link AGPL-3.0 code by themselves.
func isLoki(imp string) bool {
	return match("github.com/grafana/loki", imp) && !match("github.com/grafana/loki/pkg/push", imp)
}

// TestAGPLHasATag: AGPL-3.0 code is imported only by files that the tag nologql
// excludes, including tests.
func TestAGPLHasATag(t *testing.T) {
	tagged := 0
	eachFile(t, func(pkg, file string, f *ast.File) {
		for _, spec := range f.Imports {
			if imp := strings.Trim(spec.Path.Value, `"`); isLoki(imp) {
				tagged++
				if !hasTag(f, "!nologql") {
					t.Errorf("%s imports %s, which is AGPL-3.0 or links such code: it needs //go:build !nologql, and weir must do without it", file, imp)
				}
			}
		}
	})
	if tagged == 0 {
		t.Error("no file imports LogQL: the test looks at the wrong packages")
	}
}

// hasTag reports whether the build constraint of the file requires the tag.
func hasTag(f *ast.File, tag string) bool {
	for _, g := range f.Comments {
		for _, c := range g.List {
			if line, ok := strings.CutPrefix(c.Text, "//go:build "); ok && c.Pos() < f.Package {
				for _, term := range strings.Split(line, "&&") {
					if strings.TrimSpace(term) == tag {
						return true
					}
				}
			}
		}
	}
	return false
}

// TestNoLogQLHasNoAGPL: with -tags nologql, weir links no AGPL-3.0 package of
// Loki, directly or indirectly.
func TestNoLogQLHasNoAGPL(t *testing.T) {
	deps := func(tags string) (agpl []string) {
		out, err := exec.Command("go", "list", "-deps", "-tags", tags, ".").Output()
		if err != nil {
			t.Fatal(err)
		}
		for _, dep := range strings.Fields(string(out)) {
			if match("github.com/grafana/loki", dep) && !matchAny(apache, dep) {
				agpl = append(agpl, dep)
			}
		}
		return agpl
	}
	if got := deps("nologql"); len(got) > 0 {
		t.Errorf("with -tags nologql weir links %q", got)
	}
	if len(deps("")) == 0 {
		t.Error("without the tag weir links nothing that is AGPL-3.0: the test looks at the wrong packages")
	}
}

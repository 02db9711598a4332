package relabel_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-run/weir/engine/component/componenttest"
	"github.com/weir-run/weir/engine/rule"
	"github.com/weir-run/weir/natives/prometheus/relabel"
)

func TestDecode(t *testing.T) {
	a := componenttest.Arguments[*relabel.Arguments](t, relabel.Registration(), `forward_to = []
rule {
	target_label = "x"
	replacement  = "y"
}
rule {
	action        = "hashmod"
	source_labels = ["a", "b"]
	separator     = "/"
	modulus       = 8
	target_label  = "shard"
}
rule {
	action = "labeldrop"
	regex  = "tmp_.*"
}`)
	want := []*rule.Rule{
		{Separator: ";", Regex: "(.*)", TargetLabel: "x", Replacement: "y", Action: "replace"},
		{SourceLabels: []string{"a", "b"}, Separator: "/", Regex: "(.*)", Modulus: 8, TargetLabel: "shard", Replacement: "$1", Action: "hashmod"},
		{Separator: ";", Regex: "tmp_.*", Replacement: "$1", Action: "labeldrop"},
	}
	if diff := cmp.Diff(want, a.Rules); diff != "" {
		t.Errorf("rules (-want +got):\n%s", diff)
	}
}

func TestDecodeMistakes(t *testing.T) {
	f := func(body, want string) {
		t.Helper()
		_, got := componenttest.Decode[*relabel.Arguments](relabel.Registration(), body)
		if diff := cmp.Diff(strings.TrimSpace(want), got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
	f(``, `c.alloy:1:1: missing required attribute forward_to`)
	f("forward_to = []\nrule {\n\tregex = \"a(\"\n\taction = \"drop\"\n}",
		"c.alloy:4:10: rule.regex: cannot compile regex: error parsing regexp: missing closing ): `^(?s:a()$`")
	f("forward_to = []\nrule {\n\taction = \"remove\"\n}",
		`c.alloy:4:11: rule.action: unknown relabel action "remove", want one of replace, keep, drop, hashmod, labelmap, labeldrop, labelkeep, lowercase, uppercase, keepequal, dropequal`)
	f("forward_to = []\nrule { }", `c.alloy:3:1: relabel configuration for replace action requires 'target_label' value`)
	f("forward_to = []\nrule {\n\ttarget_label = \"a-b\"\n}", `c.alloy:4:2: "a-b" is invalid 'target_label' for replace action`)
	f("forward_to = []\nmax_cache_size = 10", `c.alloy:3:1: warning: max_cache_size has no effect`)
	f("forward_to = []\nmax_cache_size = 0\ncache_ttl = \"1s\"", `
c.alloy:3:1: warning: max_cache_size has no effect
c.alloy:4:1: cache_ttl is 1s, must be at least 1m
c.alloy:4:1: warning: cache_ttl has no effect`)
}

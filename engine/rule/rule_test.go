package rule_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/relabel"

	"github.com/weir-run/weir/engine/rule"
)

// with returns a rule with the defaults, changed by edit.
func with(edit func(*rule.Rule)) *rule.Rule {
	r := new(rule.Rule)
	r.SetToDefault()
	edit(r)
	return r
}

func TestDefaults(t *testing.T) {
	got := with(func(r *rule.Rule) {}).Config()
	want := relabel.DefaultRelabelConfig
	want.NameValidationScheme = model.LegacyValidation
	if diff := cmp.Diff(&want, got, cmp.Comparer(func(a, b relabel.Regexp) bool { return a == b })); diff != "" {
		t.Errorf("defaults differ from Prometheus's (-want +got):\n%s", diff)
	}
}

func TestValidate(t *testing.T) {
	f := func(want string, edit func(*rule.Rule)) {
		t.Helper()
		err := with(edit).Validate()
		switch {
		case want == "" && err != nil:
			t.Errorf("got %v, want no error", err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("got %v, want an error with %q", err, want)
		}
	}

	f("", func(r *rule.Rule) { r.TargetLabel = "a" })
	f("", func(r *rule.Rule) { r.TargetLabel = "a_${1}" })
	f("", func(r *rule.Rule) { r.Action = "drop" })
	f("", func(r *rule.Rule) { r.Action, r.TargetLabel, r.Modulus = "hashmod", "a", 8 })
	f("", func(r *rule.Rule) { r.Action, r.Replacement = "labelmap", "a_$1" })
	f("", func(r *rule.Rule) { r.Action, r.Regex = "labeldrop", "a.*" })
	f("", func(r *rule.Rule) { r.Action, r.TargetLabel, r.SourceLabels = "keepequal", "a", []string{"b"} })

	f("action cannot be empty", func(r *rule.Rule) { r.Action = "" })
	for _, action := range []rule.Action{"replace", "lowercase", "uppercase", "keepequal", "dropequal"} {
		f("requires 'target_label'", func(r *rule.Rule) { r.Action = action })
		f("is invalid 'target_label'", func(r *rule.Rule) { r.Action, r.TargetLabel = action, "a-b" })
	}
	f("requires 'target_label'", func(r *rule.Rule) { r.Action, r.Modulus = "hashmod", 8 })
	f("non-zero modulus", func(r *rule.Rule) { r.Action, r.TargetLabel = "hashmod", "a" })
	f("is invalid 'replacement'", func(r *rule.Rule) { r.Action, r.Replacement = "labelmap", "a-b" })
	for _, action := range []rule.Action{"labeldrop", "labelkeep"} {
		f("requires only 'regex'", func(r *rule.Rule) { r.Action, r.SourceLabels = action, []string{"a"} })
		f("requires only 'regex'", func(r *rule.Rule) { r.Action, r.Separator = action, "," })
	}
	f("'replacement' can not be set", func(r *rule.Rule) { r.Action, r.TargetLabel, r.Replacement = "uppercase", "a", "b" })
	f("no other fields", func(r *rule.Rule) { r.Action, r.TargetLabel, r.Regex = "dropequal", "a", "b" })
}

func TestActionText(t *testing.T) {
	for _, action := range actions {
		var a rule.Action
		if err := a.UnmarshalText([]byte(action)); err != nil || string(a) != string(action) {
			t.Errorf("got %q, %v, want %q", a, err, action)
		}
	}
	for _, bad := range []string{"", "Replace", "remove"} {
		var a rule.Action
		if err := a.UnmarshalText([]byte(bad)); err == nil || !strings.Contains(err.Error(), "labelkeep") {
			t.Errorf("%q: got %v, want an error that lists the actions", bad, err)
		}
	}
}

func TestRegexpText(t *testing.T) {
	var re rule.Regexp
	if err := re.UnmarshalText([]byte("a.b")); err != nil {
		t.Fatal(err)
	}
	compiled := with(func(r *rule.Rule) { r.Regex = re }).Config().Regex
	f := func(s string, want bool) {
		t.Helper()
		if got := compiled.MatchString(s); got != want {
			t.Errorf("%q matches: got %v, want %v", s, got, want)
		}
	}
	f("a.b", true)
	f("a\nb", true)
	f("xa.b", false)
	f("a.bx", false)
	if err := re.UnmarshalText([]byte("a(")); err == nil || !strings.HasPrefix(err.Error(), "cannot compile regex: ") {
		t.Errorf("got %v, want an error of compilation", err)
	}
	if re != "a.b" {
		t.Errorf("a bad expression replaced the good one: %q", re)
	}
}

var actions = []relabel.Action{
	relabel.Replace, relabel.Keep, relabel.Drop, relabel.HashMod, relabel.LabelMap, relabel.LabelDrop,
	relabel.LabelKeep, relabel.Lowercase, relabel.Uppercase, relabel.KeepEqual, relabel.DropEqual,
}

// TestRegexpTooLarge: what a regex takes of memory is known before it is compiled.
func TestRegexpTooLarge(t *testing.T) {
	var re rule.Regexp
	err := re.UnmarshalText([]byte(strings.Repeat("(?:[a-z]{500}|b)", 500)))
	if err == nil || !strings.Contains(err.Error(), "the limit is 32.0 MiB") {
		t.Errorf("got %v", err)
	}
	if err := re.UnmarshalText([]byte(strings.Repeat("kube_pod_container_status_ready|", 3000))); err != nil {
		t.Errorf("a list of names: %v", err)
	}
}

package secretfilter_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/natives/loki/secretfilter"
)

// found returns the findings of rules in a line, as "rule secret".
func found(t *testing.T, rules, line string) (fs []string) {
	t.Helper()
	all, err := secretfilter.Find([]byte(rules), line)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range all {
		fs = append(fs, f.Rule+" "+f.Secret)
	}
	return fs
}

func TestConfig(t *testing.T) {
	f := func(rules, line string, want ...string) {
		t.Helper()
		if diff := cmp.Diff(want, found(t, rules, line)); diff != "" {
			t.Errorf("%s\nin %q (-want +got):\n%s", rules, line, diff)
		}
	}
	// A rule with and without keywords, which are matched in any case.
	f("[[rules]]\nid = 'a'\nregex = 'x[0-9]+'", "x1 y2", "a x1")
	f("[[rules]]\nid = 'a'\nregex = 'x[0-9]+'\nkeywords = ['Magic']", "x1 MAGIC", "a x1")
	f("[[rules]]\nid = 'a'\nregex = 'x[0-9]+'\nkeywords = ['magic']", "x1")
	for _, k := range []string{"q", "qz", "qzv", "qzvw", "qzvwx"} { // at each position in a line
		for _, line := range []string{"x1 %s", "%s x1", "x1%s", "%s_x1", "__%s-x1", "a x1 ..%s.", "x1"} {
			rule := "[[rules]]\nid = 'a'\nregex = 'x[0-9]+'\nkeywords = ['" + k + "']"
			if strings.Contains(line, "%s") {
				f(rule, fmt.Sprintf(line, strings.ToUpper(k)), "a x1")
			} else {
				f(rule, line)
			}
		}
	}
	// Groups: the configured one, or the first that is not empty.
	f("[[rules]]\nid = 'a'\nregex = '(k)=(\\w+)'\nsecretGroup = 2", "k=v", "a v")
	f("[[rules]]\nid = 'a'\nregex = '(z)?k=(\\w+)'", "k=v", "a v")
	// The entropy must be higher.
	f("[[rules]]\nid = 'a'\nregex = 'k=(\\w+)'\nentropy = 2.0", "k=abcd")
	f("[[rules]]\nid = 'a'\nregex = 'k=(\\w+)'\nentropy = 1.9", "k=abcd", "a abcd")
	// Paths: a line has no path.
	f("[[rules]]\nid = 'a'\nregex = 'x1'\npath = '\\.go$'", "x1")
	f("[[rules]]\nid = 'a'\nregex = 'x1'\npath = '.*'", "x1", "a x1")
	f("[[rules]]\nid = 'a'\nregex = 'x1'\nskipReport = true", "x1")
	// Allowlists, of the rule and of the configuration.
	const rule = "[[rules]]\nid = 'a'\nregex = 'k=(\\w+)'\n"
	f(rule+"[[rules.allowlists]]\nregexes = ['^v$']", "k=v k=w", "a w")
	f(rule+"[rules.allowlist]\nregexes = ['^v$']", "k=v k=w", "a w")
	f(rule+"[[rules.allowlists]]\nregexTarget = 'match'\nregexes = ['^k=v$']", "k=v k=w", "a w")
	f(rule+"[[rules.allowlists]]\nregexTarget = 'line'\nregexes = ['^test']", "test k=v")
	f(rule+"[[rules.allowlists]]\nstopwords = ['EXAMPLE']", "k=MyExample1 k=w", "a w")
	f(rule+"[[rules.allowlists]]\ncondition = 'AND'\nregexes = ['^v']\nstopwords = ['x']", "k=v k=x k=vx", "a v", "a x")
	f(rule+"[[rules.allowlists]]\ncondition = 'AND'\nregexes = ['^v']\npaths = ['.*']", "k=v", "a v")
	f(rule+"[[rules.allowlists]]\npaths = ['.*']", "k=v", "a v")
	f(rule+"[[allowlists]]\nregexes = ['^v$']", "k=v k=w", "a w")
	f(rule+"[[allowlists]]\ntargetRules = ['a']\nregexes = ['^v$']", "k=v k=w", "a w")
	f(rule+"[[rules]]\nid = 'b'\nregex = 'v'\n[[allowlists]]\ntargetRules = ['a']\nregexes = ['^v$']", "k=v", "b v")
	f(rule+"[allowlist]\nregexes = ['^v$']", "k=v k=w", "a w")
	// A later rule with the same ID replaces the first one.
	f(rule+"[[rules]]\nid = 'a'\nregex = 'w'", "k=v w", "a w")
	// Several lines in one entry.
	f(rule+"[[rules.allowlists]]\nregexTarget = 'line'\nregexes = ['^test']", "test k=v\nk=w\ntest k=x", "a w")
	f("[[rules]]\nid = 'a'\nregex = '\\nk=\\w+\\n'", "x\nk=v\n", "a k=v")
	// Generic rules have lower precedence on the same line.
	f("[[rules]]\nid = 'a'\nregex = 'kv'\n[[rules]]\nid = 'my-generic'\nregex = 'k(v)'", "kv", "a kv")
	f("[[rules]]\nid = 'a'\nregex = 'kv'\n[[rules]]\nid = 'my-generic'\nregex = 'q(v)'", "kv\nqv", "a kv", "my-generic v")
}

// extended is the example of Alloy's manual.
const extended = `
title = "Extended Gitleaks config"
[extend]
useDefault = true
[[rules]]
id = "secret-internal-token"
regex = '''secret_tok_[0-9a-zA-Z]{32}'''
keywords = ["secret_tok_"]
[[rules]]
id = "generic-api-key"
entropy = 4.0
  [[rules.allowlists]]
  regexTarget = "match"
  regexes = ["(?i)token_?id"]
  [[rules.allowlists]]
  regexTarget = "secret"
  regexes = ['''^[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}$''']
`

func TestExtend(t *testing.T) {
	f := func(rules, line string, want ...string) {
		t.Helper()
		if diff := cmp.Diff(want, found(t, rules, line)); diff != "" {
			t.Errorf("in %q (-want +got):\n%s", line, diff)
		}
	}
	internal := "secret_tok_" + strings.Repeat("aB3", 10) + "xy"
	f(extended, "see "+internal, "secret-internal-token "+internal)
	f(extended, "pat "+githubToken, "github-pat "+githubToken)
	f(extended, "token_id=a1B2c3D4e5F6g7H8i9J0")
	f(extended, "token=8f14e45f-ceea-167a-9c2b-1f0a3e4d5c6b")
	f(extended, "token=a1B2c3D4e5F6g7H8i9J0", "generic-api-key a1B2c3D4e5F6g7H8i9J0")
	f("", "pat "+githubToken)
	f("[extend]\nuseDefault = true\ndisabledRules = ['github-pat']", "pat "+githubToken)
	dir := t.TempDir()
	write(t, filepath.Join(dir, "a.toml"), "[[rules]]\nid = 'a'\nregex = 'aa'\n")
	write(t, filepath.Join(dir, "b.toml"), fmt.Sprintf("[extend]\npath = %q\n[[rules]]\nid = 'b'\nregex = 'bb'\n", filepath.Join(dir, "a.toml")))
	f(fmt.Sprintf("[extend]\npath = %q\n[[rules]]\nid = 'a'\nkeywords = ['zz']", filepath.Join(dir, "b.toml")), "aa bb", "b bb")
}

func TestConfigErrors(t *testing.T) {
	f := func(rules string, want ...string) {
		t.Helper()
		_, err := secretfilter.Find([]byte(rules), "")
		if err == nil {
			t.Errorf("%s: no error", rules)
			return
		}
		for _, w := range want {
			if !strings.Contains(err.Error(), w) {
				t.Errorf("%s\ngot %v\nwant %s", rules, err, w)
			}
		}
	}
	f("[[rules]\nid = 1", "1:9")
	f("[[rules]]\nid = 1", "2:6")
	f("[[rules]]\nregex = 'x'", "rule 1: it has no id")
	f("[[rules]]\nid = 'a'", `rule "a": it has no regex`)
	f("[[rules]]\nid = 'a'\nregex = '('\n[[rules]]\nid = 'b'\nregex = 'x'\npath = '['", `rule "a": cannot parse regex`, `rule "b": cannot parse path`)
	f("[[rules]]\nid = 'a'\nregex = '(x)'\nsecretGroup = 2", `rule "a": secretGroup is 2, but the regex has 1 groups`)
	f("[[rules]]\nid = 'a'\nregex = 'x'\n[[rules.required]]\nid = 'b'", `rule "a": [[rules.required]] is not supported`)
	f("[[rules]]\nid = 'a'\nregex = 'x'\n[[rules.allowlists]]\n", `rule "a": allowlists 1: it is empty`)
	f("[[rules]]\nid = 'a'\nregex = 'x'\n[[rules.allowlists]]\nregexes = ['(']", `allowlists 1: cannot parse a regex`)
	f("[[rules]]\nid = 'a'\nregex = 'x'\n[rules.allowlist]\nregexes = ['x']\n[[rules.allowlists]]\nregexes = ['x']", `[rules.allowlist] and [[rules.allowlists]] cannot be used together`)
	f("[[allowlists]]\nregexes = ['x']\ncondition = 'XOR'", `unknown condition "XOR"`)
	f("[[allowlists]]\nregexes = ['x']\nregexTarget = 'file'", `unknown regexTarget "file"`)
	f("[[allowlists]]\ntargetRules = ['z']\nregexes = ['x']", `there is no rule "z"`)
	f("[allowlist]\nregexes = ['x']\n[[allowlists]]\nregexes = ['x']", "[allowlist] and [[allowlists]] cannot be used together")
	f("[extend]\nurl = 'http://x'", "extend.url is not supported")
	f("[extend]\nuseDefault = true\npath = 'x'", "extend.path and extend.useDefault cannot be used together")
	f("[extend]\npath = '/nowhere/at/all.toml'", "cannot read extend.path")
}

// TestFile: a node reads its file again when it changes, and keeps its rules if
// the file is invalid.
func TestFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "rules.toml")
	base := filepath.Join(t.TempDir(), "base.toml")
	write(t, base, "[[rules]]\nid = 'b'\nregex = 'bbbb'\n")
	write(t, path, fmt.Sprintf("[extend]\npath = %q\n[[rules]]\nid = 'a'\nregex = 'aaaa'\n", base))
	body := fmt.Sprintf("redact_with = \"$SECRET_NAME\"\ngitleaks_config = %q", path)
	l := newHarness(t, body)
	if diff := cmp.Diff([]string{base, path}, l.c.Sourced()); diff != "" {
		t.Errorf("sources (-want +got):\n%s", diff)
	}
	l.want("aaaa bbbb cccc", "a b cccc")
	write(t, path, "[[rules]]\nid = 'c'\nregex = 'cccc'\n")
	if err := l.c.Update(l.arguments(body)); err != nil {
		t.Fatal(err)
	}
	l.want("aaaa bbbb cccc", "aaaa bbbb c")
	write(t, path, "[[rules]]\nid = 'c'\nregex = '('\n")
	if err := l.c.Update(l.arguments(body)); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("got %v, want the file named", err)
	}
	l.want("aaaa bbbb cccc", "aaaa bbbb c")
	r := secretfilter.Registration()
	checked := r.Check(l.arguments(body), func(string) bool { return true })
	if len(checked) != 1 || checked[0].Path != "gitleaks_config" || !checked[0].Warning {
		t.Errorf("got %v from Check", checked)
	}
	if got := r.Check(l.arguments(body), func(string) bool { return false }); got != nil {
		t.Errorf("a path that is not known was read: %v", got)
	}
}

var _ component.Sourced = node(nil)

package http_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/weir-run/weir/engine/service/http"
)

// TestPageNames: every name that the page's script uses is declared in it or is
// the browser's. A script that throws shows nothing, and there is no browser
// where the other tests run. Scopes are not looked at.
func TestPageNames(t *testing.T) {
	if got := undeclared(script(t)); len(got) > 0 {
		t.Errorf("the page's script uses %s, which it does not declare", strings.Join(got, ", "))
	}
	// It would be noticed.
	f := func(from, to, want string) {
		t.Helper()
		broken := strings.Replace(script(t), from, to, 1)
		if broken == script(t) {
			t.Fatalf("the script has no %q", from)
		}
		if got := strings.Join(undeclared(broken), ", "); got != want {
			t.Errorf("without %q: got %q, want %q", from, got, want)
		}
	}
	f("const sick =", "const well =", "sick")
	f("const seen =", "const saw =", "seen")
	f("function row(", "function line(", "row")
}

func script(t *testing.T) string {
	t.Helper()
	_, text, ok := strings.Cut(http.PageText, "<script nonce=\"{{.Nonce}}\">")
	text, _, end := strings.Cut(text, "</script>")
	if !ok || !end {
		t.Fatal("the page has no script")
	}
	return text
}

var (
	// Text that is not code: strings, comments, and template actions.
	notCode = regexp.MustCompile(`"(?:[^"\\\n]|\\.)*"|//[^\n]*|\{\{[^}]*\}\}`)
	// A name, with the character before it and the one behind.
	usedName = regexp.MustCompile(`(^|[^\w$.]|\.\.\.)([A-Za-z_$][\w$]*)\s*(:?)`)
	jsName   = regexp.MustCompile(`[A-Za-z_$][\w$]*`)
	// Where names are declared: const x = …; const x = …, y = …; functions;
	// parameters; destructuring.
	declarations = []*regexp.Regexp{
		regexp.MustCompile(`\b(?:const|let|function)\s+([A-Za-z_$][\w$]*)`),
		regexp.MustCompile(`\b(?:const|let)\b[^;\n]*?,\s*([A-Za-z_$][\w$]*)\s*=[^=>]`),
		regexp.MustCompile(`\b(?:const|let)\s+\[([^\]]*)\]`),
		regexp.MustCompile(`\bfunction\s+[\w$]+\(([^)]*)\)`),
		regexp.MustCompile(`\(([\w$\s,.\[\]]*)\)\s*=>`),
		regexp.MustCompile(`([A-Za-z_$][\w$]*)\s*=>`),
		regexp.MustCompile(`\bcatch\s*\(([^)]*)\)`),
	}
	known = strings.Fields(`const let function return if else for of in new try catch finally throw typeof await async true false null undefined
		Boolean document window fetch alert encodeURIComponent setInterval Date JSON Map Math Object Set String Error`)
)

// undeclared returns the names, each once, in the order they come.
func undeclared(js string) (names []string) {
	js = notCode.ReplaceAllString(js, `""`)
	ok := map[string]bool{}
	for _, k := range known {
		ok[k] = true
	}
	for _, re := range declarations {
		for _, m := range re.FindAllStringSubmatch(js, -1) {
			for _, name := range jsName.FindAllString(m[1], -1) {
				ok[name] = true
			}
		}
	}
	for _, m := range usedName.FindAllStringSubmatch(js, -1) {
		// A name before a colon is a key, but for the second part of ?:, of which
		// the condition's names are enough.
		if name := m[2]; m[3] == "" && !ok[name] {
			ok[name] = true
			names = append(names, name)
		}
	}
	return names
}

package process_test

import (
	"context"
	"strings"
	"testing"
	"time"
)

// slowLine is a line in which a search for x*y takes quadratic time.
var slowLine = `{a="1"} ` + strings.Repeat("x", 300_000) + " 18\n"

// TestMatchLimit sends lines for which a stage would need hours or create
// gigabytes. They are dropped and counted; the other lines are processed.
func TestMatchLimit(t *testing.T) {
	f := func(name, stages string) {
		t.Helper()
		t.Run(name, func(t *testing.T) {
			n := builtLab(t, stages)
			n.send("{a=\"1\"} abc\n" + slowLine + "{a=\"2\"} abc 100000000000\n")
			n.wantLines("abc abc 100000000000")
			if d := n.dropped(); d != "match_limit 1\n" {
				t.Errorf("got dropped %q", d)
			}
		})
	}
	f("replace", "stage.replace {\nexpression = \"(x)(?:x*y)?\"\nreplace = \"z\"\n}")
	f("replace in match", "stage.match {\nselector = \"{a=~\\\"1|2\\\"}\"\nstage.replace {\nexpression = \"(x)(?:x*y)?\"\nreplace = \"z\"\n}\n}")
	f("replace by a template", "stage.replace {\nexpression = \"(x)\"\nreplace = \"{{ .Value | repeat 1000 }}\"\n}")
	f("luhn", "stage.luhn {\nmin_length = 1\nskip_regex = \"x*y|x\"\n}")
	output := func(template string) string {
		return "stage.template {\nsource = \"out\"\ntemplate = `" + template + "`\n}\nstage.output {\nsource = \"out\"\n}"
	}
	f("regexReplaceAll", output(`{{ regexReplaceAll "x*y|x" .Entry "" }}`))
	f("regexReplaceAllLiteral", output(`{{ regexReplaceAllLiteral "x*y|x" .Entry "" }}`))
	f("regexFindAll", output(`{{ if len (regexFindAll "x*y|x" .Entry -1) }}{{ end }}{{ .Entry }}`))
	f("regexSplit", output(`{{ if len (regexSplit "x*y|x" .Entry -1) }}{{ end }}{{ .Entry }}`))
	f("loops", output(`{{ $l := splitList "x" .Entry }}{{ range $l }}{{ range $l }}{{ range $l }}{{ end }}{{ end }}{{ end }}{{ .Entry }}`))
	f("Replace", output(`{{ Replace .Entry "x" .Entry -1 }}`))
}

// TestTemplateNumbers: a number in a line cannot make a template exceed the
// limits.
func TestTemplateNumbers(t *testing.T) {
	for _, call := range []string{
		`repeat $n "x"`, `until $n`, `untilStep 0 $n 1`, `untilStep $n 0 -1`, `seq $n`, `seq 1 $n`, `seq 1 1 $n`, `indent $n "x"`, `nindent $n "x"`,
		`randAlpha $n`, `randAlphaNum $n`, `randAscii $n`, `randNumeric $n`, `randBytes $n`,
	} {
		n := builtLab(t, "stage.template {\nsource = \"out\"\ntemplate = `{{ $n := int64 .Entry | int }}{{ len ("+call+") }}`\n}\nstage.output {\nsource = \"out\"\n}")
		n.send("{a=\"1\"} 100000000000\n{a=\"1\"} 3\n")
		if d := n.dropped(); d != "match_limit 1\n" {
			t.Errorf("%s: got dropped %q", call, d)
		}
	}
}

// TestMatchEndsWithCall: if the context of a call ends during a match, the call
// returns and its lines are delivered again.
func TestMatchEndsWithCall(t *testing.T) {
	n := builtLab(t, "stage.replace {\nexpression = \"(x)(?:x*y)?\"\nreplace = \"z\"\n}")
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := n.c.ConsumeLogs(ctx, n.parse(strings.Repeat(slowLine, 100))); err != context.DeadlineExceeded {
		t.Errorf("got %v", err)
	}
	if got := n.lines(); got != "" {
		t.Errorf("got %.100q", got)
	}
}

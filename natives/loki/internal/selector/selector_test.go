package selector_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/regex"
	"github.com/weir-run/weir/natives/loki/internal/selector"
)

func parse(t *testing.T, src string) *selector.Selector {
	t.Helper()
	s, err := selector.Parse(src)
	if err != nil {
		t.Fatalf("%s: %v", src, err)
	}
	return s
}

func streamOf(t testing.TB, text string) *batch.Stream {
	t.Helper()
	b, err := batch.ParseLogsText(text+" x", batch.TextOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return b.Stream[0]
}

func TestStream(t *testing.T) {
	f := func(src, labels string, want bool) {
		t.Helper()
		s, of := parse(t, src), streamOf(t, labels)
		for range 2 { // computed, then cached
			if got := s.Stream(of); got != want {
				t.Errorf("%s of %s: got %v", src, labels, got)
			}
		}
	}
	f(`{}`, `{app="a"}`, true)
	f(`{app="a"}`, `{app="a"}`, true)
	f(`{app="a"}`, `{app="ab"}`, false)
	f(`{app!="a"}`, `{app="b"}`, true)
	f(`{app!="a"}`, `{x="y"}`, true)
	f(`{app=""}`, `{x="y"}`, true)
	f(`{app=~"a|b"}`, `{app="b"}`, true)
	f(`{app=~"a|b"}`, `{app="ab"}`, false) // the whole value
	f(`{app=~"a.b"}`, "{app=\"a\\nb\"}", true)
	f(`{app!~"a.*"}`, `{app="ab"}`, false)
	f(`{app!~"a.*"}`, `{x="y"}`, true)
	f(`{app="a", env=~"prod|stage"}`, `{app="a",env="stage"}`, true)
	f(`{app="a", env=~"prod|stage"}`, `{app="a",env="dev"}`, false)
	// Keywords of LogQL are valid labels, as in Alloy.
	f(`{json="a", by="b"}`, `{by="b",json="a"}`, true)
}

// TestStreamOfReleased: the cached result for a released stream is not used for
// another stream with the same ID.
func TestStreamOfReleased(t *testing.T) {
	s := parse(t, `{app="a"}`)
	of := streamOf(t, `{app="a"}`)
	of.Release()
	if !s.Stream(of) {
		t.Error("a released stream does not match")
	}
	for _, app := range []string{"b", "c"} {
		if s.Stream(streamOf(t, `{app="`+app+`"}`)) {
			t.Error("another stream matches")
		}
		s.Sweep()
	}
}

func TestLine(t *testing.T) {
	f := func(filters, line string, want bool) {
		t.Helper()
		s := parse(t, `{a="b"} `+filters)
		if got, err := s.Line(line, regex.Guard{}); got != want || err != nil {
			t.Errorf("%s of %q: got %v, %v", filters, line, got, err)
		}
		if s.Filters() != (filters != "") {
			t.Errorf("%s: says it has filters: %v", filters, s.Filters())
		}
	}
	f("", "anything", true)
	// Texts.
	f(`|= "err"`, "an error", true)
	f(`|= "err"`, "an Error", false)
	f(`!= "err"`, "an error", false)
	f(`!= "err"`, "fine", true)
	f(`|= "a" |= "b" != "c"`, "ab", true)
	f(`|= "a" |= "b" != "c"`, "abc", false)
	f(`|= "a" |= "b" != "c"`, "a", false)
	f("|= `\"a\\d\"`", `x "a\d" y`, true)
	f(`|= "\x41\u00fc\101\t"`, "AüA\t", true)
	f(`|= ""`, "", true)
	f(`!= ""`, "x", false)
	// One of them, and none of them.
	f(`|= "a" or "b"`, "b", true)
	f(`|= "a" or "b" or "c"`, "d", false)
	f(`!= "a" or "b"`, "b", false)
	f(`!= "a" OR "b"`, "c", true)
	f(`|= "x" != "a" or "b"`, "xc", true)
	// Regular expressions match a part of the line.
	f(`|~ "e.r"`, "an error", true)
	f(`|~ "^err"`, "an error", false)
	f(`!~ "e.r"`, "an error", false)
	f(`|~ "a.b"`, "a\nb", false)
	f(`|~ "(?s)a.b"`, "a\nb", true)
	f(`|~ "foo|bar"`, "a bar", true)
	f(`|~ "foo|bar" or "baz"`, "a baz", true)
	f(`!~ "foo|bar" or "baz"`, "a baz", false)
	f(`|~ "(?i)error"`, "ERROR", true)
	f(`|~ "foo.*(bar|buzz)"`, "foo x bar", true)
	f(`|~ "a(b|c)?d"`, "xabd", true)
	f(`|~ "a(b|c)?d"`, "xad", true)
	f(`|~ "a(b|c)?d"`, "xabcd", false)
	f(`|~ "\\d{3}"`, "code 503", true)
	f(`|~ "ab+c"`, "abbbc", true)
	f(`|~ "ab+c"`, "ac", false)
	f(`|~ "[a-c]x"`, "bx", true)
	f(`|~ "[a-c]x"`, "dx", false)
	f(`|~ "(status=)+5.."`, "status=503", true)
	f(`|~ "(status=)+5.."`, "5033", false)
	f(`|~ ""`, "x", true)
	f("|~ `\ufffd`", "\xff", true)
	// Patterns.
	f(`|> "<_> err"`, "an err", true)
	f(`|> "<_>err<_>"`, "an error", true)
	f(`|> "<_>err<_>"`, "error", false) // no text before
	f(`|> "<_>err<_>"`, "an err", false)
	f(`|> "<_> bar"`, "foo bar baz", false)
	f(`|> "err"`, "err", true)
	f(`|> "err"`, "errs", false)
	f(`|> ""`, "", true)
	f(`|> ""`, "x", false)
	f(`|> "<_>"`, "x", true)
	f(`|> "<_>"`, "", false)
	f(`!> "<_> err"`, "an err", false)
	f(`|> "<_> a <_> b" or "<_> c"`, "x c", true)
	// Addresses.
	f(`|= ip("10.0.0.1")`, "from 10.0.0.1:80", true)
	f(`|= ip("10.0.0.0/8")`, "from 10.9.0.1 to", true)
	f(`|= ip("10.0.0.0/8")`, "from 11.9.0.1 to", false)
	f(`|= ip("10.0.0.1-10.0.0.9")`, "10.0.0.9", true)
	f(`|= ip("10.0.0.1-10.0.0.9")`, "10.0.0.10", false)
	f(`!= ip("10.0.0.1")`, "10.0.0.1", false)
	f(`!= ip("10.0.0.1") or ip("10.0.0.2") or "x"`, "10.0.0.2", false)
	f(`|= ip("2001:db8::/32")`, "peer 2001:db8::7 closed", true)
	f(`|= ip("2001:db8::/32")`, "at 12:30:45", false)
	// Comments and white space.
	f("# why\n|= \"a\" // and\n/* so */ or\t\"b\"", "b", true)
}

func TestString(t *testing.T) {
	f := func(src, want string) {
		t.Helper()
		if got := parse(t, src).String(); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
		if again := parse(t, want).String(); again != want {
			t.Errorf("%s came back as %s", want, again)
		}
	}
	f(` ( {a = "b" , c=~`+"`d`"+`}|="x"or"y" # z
		!= ip ("10.0.0.1") ) `, `{a="b", c=~"d"} |= "x" or "y" != ip("10.0.0.1")`)
	f(`{}`, `{}`)
}

func TestMistakes(t *testing.T) {
	f := func(src, want string) {
		t.Helper()
		s, err := selector.Parse(src)
		if err == nil {
			t.Errorf("%s: accepted as %s", src, s)
			return
		}
		if diff := cmp.Diff("cannot use selector: "+strings.TrimSpace(want), err.Error()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", src, diff)
		}
	}
	f("", `want { of a stream selector such as {app="api"}, have the end`)
	f(`app="a"`, `
want a stream selector such as {app="api"}: metrics of lines are made by stage.metrics, not by LogQL (1:1)
 | app="a"
 | ^`)
	f(`{app="a"} | json | x="y"`, `
after line filters there are no stages such as "| json" here: write them as stage.logql { pipeline = "| json" } (1:11)
 | {app="a"} | json | x="y"
 |           ^`)
	f(`({app="a"} |= "x" | status >= 500)`, `
after line filters there are no stages such as "| status" here: write them as stage.logql { pipeline = "| status" } (1:19)
 | ({app="a"} |= "x" | status >= 500)
 |                   ^`)
	f("rate({app=\"a\"}[5m])", `
want a stream selector such as {app="api"}: metrics of lines are made by stage.metrics, not by LogQL (1:1)
 | rate({app="a"}[5m])
 | ^`)
	f(`({app="a"}[5m])`, `
a range belongs to a metric query; metrics of lines are made by stage.metrics (1:11)
 | ({app="a"}[5m])
 |           ^`)
	f(`{app}`, `
want =, !=, =~ or !~ after the label, have "}" (1:5)
 | {app}
 |     ^`)
	f("{app=\"ä\",\n\t}", `
want a label, have "}" (2:2)
 |  }
 |  ^`)
	f(`{"app"="a"}`, `
want a label, have "\"app\"" (1:2)
 | {"app"="a"}
 |  ^`)
	f(`{app='a'}`, `
want a value in quotes, have "'" (1:6)
 | {app='a'}
 |      ^`)
	f(`{app=~"a("}`, "cannot compile regular expression: error parsing regexp: missing closing ): `^(?s:a()$` (1:7)\n | {app=~\"a(\"}\n |       ^")
	f(`{a="b"`, "want } or a comma, have the end (1:7)\n | {a=\"b\"\n |       ^")
	f(`{a="b} |= "x"`, "want } or a comma, have \"x\" (1:12)\n | {a=\"b} |= \"x\"\n |            ^")
	f(`{a="b}`, "the string does not end (1:4)\n | {a=\"b}\n |    ^")
	f(`{a="b"} /* x`, "the comment does not end (1:9)\n | {a=\"b\"} /* x\n |         ^")
	f(`{a="\d"}`, "the string has an escape that there is not; in backquotes there are none (1:4)\n | {a=\"\\d\"}\n |    ^")
	f(`{a="b"} |= x`, "want a string in quotes, or ip(\"…\"), have \"x\" (1:12)\n | {a=\"b\"} |= x\n |            ^")
	f(`{a="b"} |~ "a" or "b("`, "cannot compile regular expression: error parsing regexp: missing closing ): `b(` (1:19)\n | {a=\"b\"} |~ \"a\" or \"b(\"\n |                   ^")
	f(`{a="b"} |> "<x> y"`, "<x> in a pattern takes something out of the line, which a filter cannot: write <_> (1:12)\n | {a=\"b\"} |> \"<x> y\"\n |            ^")
	f(`{a="b"} |> "<_><_>"`, "between two <_> of a pattern there must be some text (1:12)\n | {a=\"b\"} |> \"<_><_>\"\n |            ^")
	f(`{a="b"} |> "\xff"`, "a pattern is UTF-8 text (1:12)\n | {a=\"b\"} |> \"\\xff\"\n |            ^")
	f(`{a="b"} |~ ip("10.0.0.1")`, "ip() goes with |= and != only, not with |~ (1:12)\n | {a=\"b\"} |~ ip(\"10.0.0.1\")\n |            ^")
	f(`{a="b"} |= ip("10.0.0")`, "\"10.0.0\" is no IP address, no network such as 10.0.0.0/8 and no range such as 10.0.0.1-10.0.0.9 (1:12)\n | {a=\"b\"} |= ip(\"10.0.0\")\n |            ^")
	f(`{a="b"} |= "x" or ip("10.0.0.1")`, "ip() is no operand of \"or\": Loki takes it for plain text there; write a stage.match for each (1:19)\n | {a=\"b\"} |= \"x\" or ip(\"10.0.0.1\")\n |                   ^")
	f(`{a="b"} |= ip("10") or "x"`, "ip() is no operand of \"or\": Loki takes it for plain text there; write a stage.match for each (1:12)\n | {a=\"b\"} |= ip(\"10\") or \"x\"\n |            ^")
	f(`{a="b"} |= ip("10.0.0.1"`, "want ) after the address, have the end (1:25)\n | {a=\"b\"} |= ip(\"10.0.0.1\"\n |                         ^")
	f(`{a="b"} and {c="d"}`, "want a line filter such as |= \"text\", or the end, have \"and\" (1:9)\n | {a=\"b\"} and {c=\"d\"}\n |         ^")
	f("{a=\"\xff\"}", "it is no UTF-8 text")
	f(strings.Repeat(" ", 128<<10), "it has 131072 bytes, more than the 131071 allowed")
}

// TestSource: the argument of a stage keeps its text.
func TestSource(t *testing.T) {
	var s selector.Source
	if err := s.UnmarshalText([]byte(`{a="b"} |= "c"`)); err != nil || s != `{a="b"} |= "c"` {
		t.Errorf("got %q, %v", s, err)
	}
	if text, err := s.MarshalText(); err != nil || string(text) != string(s) {
		t.Errorf("got %q, %v", text, err)
	}
	if ok, _ := s.Compile().Line("abc", regex.Guard{}); !ok {
		t.Error("what was compiled filters otherwise")
	}
	var none selector.Source
	if err := none.UnmarshalText([]byte(`{a`)); err == nil || none != "" {
		t.Errorf("got %q, %v", none, err)
	}
	defer func() {
		if r, _ := recover().(string); !strings.HasPrefix(r, "BUG: ") {
			t.Errorf("got %q", r)
		}
	}()
	none.Compile()
}

//go:build !nologql

package selector_test

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/grafana/loki/v3/pkg/logql/log"
	"github.com/grafana/loki/v3/pkg/logql/syntax"
	"github.com/prometheus/prometheus/model/labels"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/regex"
	"github.com/weir-run/weir/natives/loki/internal/selector"
)

// lokis is a selector as parsed by Loki.
type lokis struct {
	matchers []*labels.Matcher
	pipeline log.Pipeline
	filters  []*syntax.LineFilterExpr
}

// errOther means that a LogQL expression is not a selector.
var errOther = fmt.Errorf("metrics, or stages that are no line filters")

func parseLokis(src string) (l lokis, err error) {
	e, err := syntax.ParseLogSelector(src, false)
	if err != nil {
		if strings.Contains(err.Error(), "only log selector is supported") {
			err = errOther
		}
		return l, err
	}
	switch e := e.(type) {
	case *syntax.MatchersExpr:
	case *syntax.PipelineExpr:
		for _, s := range e.MultiStages {
			f, ok := s.(*syntax.LineFilterExpr)
			if !ok {
				return l, errOther
			}
			l.filters = append(l.filters, f)
		}
	default:
		return l, errOther
	}
	l.matchers = e.Matchers()
	l.pipeline, err = e.Pipeline()
	return l, err
}

func (l lokis) stream(ls labels.Labels) bool {
	for _, m := range l.matchers {
		if !m.Matches(ls.Get(m.Name)) {
			return false
		}
	}
	return true
}

func (l lokis) line(line string) bool {
	_, _, ok := l.pipeline.ForStream(labels.EmptyLabels()).ProcessString(0, line, labels.EmptyLabels())
	return ok
}

// keywords are the words that Loki does not accept as labels. Our parser accepts
// them after an opening brace or a comma, like Alloy.
var keywords = regexp.MustCompile(`(?i)^(by|without|bool|offset|on|ignoring|group_left|group_right|or|and|unless|json|regexp|logfmt|unpack|pattern|label_format|line_format|decolorize|drop|keep|variants|of|unwrap)$`)

var isName = regexp.MustCompile(`^[_\pL][_\pL\p{Nd}]*$`)

// compare compares our parsing of src, and our result for a line of a stream,
// with Loki's.
func compare(t *testing.T, src, value, line string) (outcome string) {
	t.Helper()
	ours, err := selector.Parse(src)
	theirs, lokiErr := parseLokis(src)
	if err != nil {
		msg := err.Error()
		switch {
		case lokiErr != nil:
			return "refused"
		case strings.Contains(msg, "ip() is no operand"), strings.Contains(strings.ToLower(src), `\ud`), strings.Contains(strings.ToLower(src), `\u0000d`):
			return "refused by choice"
		}
		for _, m := range theirs.matchers {
			if !isName.MatchString(m.Name) {
				return "refused by choice"
			}
		}
		t.Fatalf("%q: Loki takes it, and we do not: %v", src, err)
	}
	text := ours.String()
	if again, err := selector.Parse(text); err != nil || again.String() != text {
		t.Fatalf("%q: came back from %s as %v, %v", src, text, again, err)
	}
	if lokiErr != nil {
		renamed := false
		text = eachLabel(text, func(name string) string {
			if keywords.MatchString(name) {
				renamed = true
				return "_" + name
			}
			return name
		})
		if !renamed {
			t.Fatalf("%q: we take it, and Loki does not: %v", src, lokiErr)
		}
		return compare(t, text, value, line)
	}

	ls := map[string]string{}
	for _, m := range theirs.matchers {
		ls[m.Name] = value
	}
	delete(ls, "gone")
	var of []batch.Label
	labels.FromMap(ls).Range(func(l labels.Label) {
		if l.Value != "" {
			of = append(of, batch.Label{Name: l.Name, Value: l.Value})
		}
	})
	s := batch.NewSeries(of)
	defer s.Release()
	if got, want := ours.Stream(s), theirs.stream(s.PromLabels()); got != want {
		t.Fatalf("%q of %s: got %v, Loki says %v", src, s, got, want)
	}

	got, err := ours.Line(line, regex.Guard{})
	if err != nil {
		t.Fatal(err)
	}
	want := theirs.line(line)
	logical, odd := reference(t, theirs.filters, line)
	if got != logical {
		t.Fatalf("%q of %q: got %v, its operands one by one say %v", src, line, got, logical)
	}
	if got != want {
		if odd == "" {
			t.Fatalf("%q of %q: got %v, Loki says %v", src, line, got, want)
		}
		return odd
	}
	return strconv.FormatBool(got)
}

// eachLabel replaces the labels of the matchers in a selector formatted by
// String.
func eachLabel(src string, to func(string) string) string {
	return regexp.MustCompile(`([{,]\s*)([_\pL][_\pL\p{Nd}]*)`).ReplaceAllStringFunc(src, func(m string) string {
		i := strings.LastIndexAny(m, "{, \t\r\n") + 1
		return m[:i] + to(m[i:])
	})
}

// reference returns the result of the operands of Loki's filters, evaluated
// separately: regular expressions by RE2, everything else by Loki. odd is the
// reason why Loki's own result may differ: its simplification of regular
// expressions treats .+ as any non-empty line and foo.*(bar|baz) as foobar or
// foobaz, and folds fewer letters; and it drops an operand of "or" that matches
// every line.
func reference(t *testing.T, filters []*syntax.LineFilterExpr, line string) (pass bool, odd string) {
	t.Helper()
	pass = true
	for _, f := range filters {
		for ; f != nil; f = f.Left {
			either, every := false, false
			n := 0
			for o := f; o != nil; o = o.Or {
				n++
				in, isOdd := operand(t, o, line)
				if isOdd {
					odd = "regexp"
				}
				either = either || in
				always, _ := operand(t, o, "")
				every = every || always
			}
			if n > 1 && every {
				odd = "or"
			}
			pass = pass && either
		}
	}
	return pass, odd
}

func operand(t *testing.T, f *syntax.LineFilterExpr, line string) (in, odd bool) {
	t.Helper()
	src := "{} " + f.Ty.String() + " " + strconv.Quote(f.Match)
	if f.Op != "" {
		src = "{} " + f.Ty.String() + " " + f.Op + "(" + strconv.Quote(f.Match) + ")"
	}
	l, err := parseLokis(src)
	if err != nil {
		t.Fatalf("%s: %v", src, err)
	}
	in = l.line(line)
	if f.Ty == log.LineMatchRegexp || f.Ty == log.LineMatchNotRegexp {
		is := regexp.MustCompile(f.Match).MatchString(line) == (f.Ty == log.LineMatchRegexp)
		return is, is != in
	}
	return in, false
}

var (
	names   = []string{"app", "env", "gone", "a_1", "_x", "ä", "json", "by", "sum", "ip", "Drop"}
	values  = []string{"", "a", "api", "prod", "x\ny", "ünï", "a|b"}
	res     = []string{"", ".*", ".+", "a", "a.*", "a|b", "foo.*(bar|buzz)", "foo|", "(?i)Error", "^a", "a$", "a.b", "(a|b)+", "foo(bar|baz)?", "[ab]x", `\d+`, "ba(r|z)", "x{2,3}", "(?i)ß|K", "err.*time", "(a)(b|c)d", "é", "�", "(?s).", "foo.+bar", "a|ab|abc"}
	texts   = []string{"", "a", "foo", "bar", "error", "\"", "\\", "é", "10.0.0.1", " "}
	pats    = []string{"", "<_>", "a", "<_>a", "a<_>", "<_> a <_>", "<_>foo<_>bar", "foo<_>bar", "<a<_>", "< _>", "<_", "a<_>b<_>c"}
	ips     = []string{"10.0.0.1", "10.0.0.0/8", "10.0.0.1-10.0.0.9", "::1", "2001:db8::/32", "2001:db8::1-2001:db8::ff", "10.0.0.9-10.0.0.1"}
	blanks  = []string{"", " ", "\n", "\t", " # note\n", " // note\n", " /* note */ "}
	parts   = []string{"foo", "bar", "buzz", "foobar", "error", "ERROR", "a", "b", "ab", "abc", "x", "xx", "10.0.0.1", "10.0.0.5:80", "11.1.1.1", "2001:db8::7", "::1", "12:30:45", "é", "K", "\n", " ", "\"", "\\", "\xff", "<a", "<_", "1.", "::"}
	strange = []string{"|", "=", "!", "~", "{", "}", "(", ")", ",", "\"", "`", "or", "\\", "'", "#", "0", "5m", "[5m]", "| json", "\u00a0", "\x00", "\xff", "-", "."}
)

func pick[T any](r *rand.Rand, from []T) T { return from[r.IntN(len(from))] }

func quote(r *rand.Rand, s string) string {
	if r.IntN(3) == 0 && !strings.Contains(s, "`") {
		return "`" + s + "`"
	}
	return strconv.Quote(s)
}

// random returns a selector that is mostly valid.
func random(r *rand.Rand) string {
	var b strings.Builder
	put := func(parts ...string) {
		for _, p := range parts {
			b.WriteString(p)
			b.WriteString(pick(r, blanks))
		}
	}
	parentheses := r.IntN(6) / 5
	put(strings.Repeat("(", parentheses), "{")
	for i := range r.IntN(3) {
		if i > 0 {
			put(",")
		}
		op := pick(r, []string{"=", "!=", "=~", "!~"})
		v := pick(r, values)
		if op[1:] == "~" {
			v = pick(r, res)
		}
		put(pick(r, names), op, quote(r, v))
	}
	put("}")
	for range r.IntN(4) {
		op := pick(r, []string{"|=", "!=", "|~", "!~", "|>", "!>"})
		put(op)
		for i := range 1 + r.IntN(3)*r.IntN(2) {
			if i > 0 {
				put(pick(r, []string{"or", "OR"}) + " ")
			}
			switch {
			case op[1] == '=' && r.IntN(4) == 0:
				put("ip", "(", quote(r, pick(r, ips)), ")")
			case op[1] == '=':
				put(quote(r, pick(r, texts)))
			case op[1] == '~':
				put(quote(r, pick(r, res)))
			default:
				put(quote(r, pick(r, pats)))
			}
		}
	}
	put(strings.Repeat(")", parentheses))
	src := b.String()
	if r.IntN(4) == 0 { // an error
		at := r.IntN(len(src) + 1)
		src = src[:at] + pick(r, strange) + src[at+r.IntN(2)*r.IntN(len(src)-at+1):]
	}
	return src
}

// TestLoki compares random selectors with Loki on random lines.
func TestLoki(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	seen := map[string]int{}
	for range 5000 {
		var line strings.Builder
		for range r.IntN(6) {
			line.WriteString(pick(r, parts))
		}
		seen[compare(t, random(r), pick(r, values), line.String())]++
	}
	t.Logf("outcomes: %v", seen)
	for _, o := range []string{"true", "false", "refused", "refused by choice", "regexp", "or"} {
		if seen[o] == 0 {
			t.Errorf("no selector was %s: the test shows little", o)
		}
	}
	if n := seen["true"] + seen["false"]; n < 2500 {
		t.Errorf("only %d verdicts were compared", n)
	}
}

func FuzzLoki(f *testing.F) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 100 {
		f.Add(random(r), pick(r, values), pick(r, parts))
	}
	f.Add(`{a="b"} | json`, "", "")
	f.Add(`rate({a="b"}[5m])`, "", "")
	f.Fuzz(func(t *testing.T, src, value, line string) { compare(t, src, value, line) })
}

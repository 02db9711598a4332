package regex_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-run/weir/engine/regex"
)

var expressions = []string{
	``, `a`, `a*`, `a+`, `a|b`, `x*y|x`, `(a)(b)?`, `^a`, `^`, `$`, `(?m)^a`, `(?m)^`, `(?m)$`, `\b`, `\B`, `\ba`, `a\b`, `\bé\b`, `\b(\w+)\b`, `\B(a|$)`,
	`(?i)É`, `.`, `(?s).`, `.*`, `.*?`, `(.*?),`, `(a|ab)(c|bcd)(d*)`, `\Aa`, `\A`, `a\z`, `(?:^|,)([^,]*)`, `[^a]`, `(?P<n>a)(?P<m>b*)`, `ab`, `ab+c`, `\Qa.b`,
	`a{2,3}`, `(a{1,2}){2}`, `\x{FFFD}`, `(?:)|a`, `a(?:)`, `\pL+`, `[^\pL]`, `(?i)ab`, `a??`, `(?:a|b)*c`, `(\ba|b\B)+`,
}

var texts = []string{
	"", "a", "aa", "ab", "ba", "aaab", "a,b,,c,", "xxxx", "xxxy", "é", "aéa é", "\xff", "a\xffb\xc3", "a\nb\na", "\n", "\n\n", "foo bar  baz", "abcd abcd",
	"a.b a.b", "ÉéE", "日本語 a", "ab ab\nab", "aab aaabb", "\U0001f600a\U0001f600",
}

// TestLikeRegexp compares what is done in pieces with regexp.
func TestLikeRegexp(t *testing.T) {
	guard := regex.Guard{Check: func() error { return nil }}
	for _, expr := range expressions {
		want := regexp.MustCompile(expr)
		pieces, err := regex.Compile(expr, 0)
		if err != nil {
			t.Fatal(err)
		}
		pieces.InPieces()
		whole, _ := regex.Compile(expr, regex.MaxBytes)
		in := texts
		r := rand.New(rand.NewPCG(1, 2))
		for range 50 {
			b := make([]byte, r.IntN(20))
			for i := range b {
				b[i] = "aabbcxy,é\n \xff"[r.IntN(12)]
			}
			in = append(in, string(b))
		}
		for _, s := range in {
			for name, got := range map[string]*regex.Regexp{"in pieces": pieces, "at once": whole} {
				f := func(what string, got, want any, err error) {
					t.Helper()
					if err != nil {
						t.Errorf("%s of %q in %q %s: %v", what, expr, s, name, err)
					}
					if d := cmp.Diff(want, got); d != "" {
						t.Errorf("%s of %q in %q %s (-want +got):\n%s", what, expr, s, name, d)
					}
				}
				ok, err := got.Match(s, guard)
				f("match", ok, want.MatchString(s), err)
				m, err := got.FindSubmatchIndex(s, guard)
				f("find", m, want.FindStringSubmatchIndex(s), err)
				for _, n := range []int{-1, 0, 1, 2} {
					var all [][]int
					err = got.Each(s, n, guard, func(m []int) error { all = append(all, m); return nil })
					f(fmt.Sprintf("%d matches", n), all, want.FindAllStringSubmatchIndex(s, n), err)
				}
				text, err := got.Replace(s, 0, guard, func(dst []byte, m []int) ([]byte, error) { return got.Expand(dst, "<$0$1>", s, m), nil })
				f("replace", text, want.ReplaceAllString(s, "<$0$1>"), err)
			}
		}
	}
}

// TestEnds stops matches that would take hours.
func TestEnds(t *testing.T) {
	stop := errors.New("enough")
	f := func(expr, text string, all bool) {
		t.Helper()
		r, err := regex.Compile(expr, 0)
		if err != nil {
			t.Fatal(err)
		}
		asked := 0
		g := regex.Guard{Check: func() error {
			if asked++; asked == 3 {
				return stop
			}
			return nil
		}}
		if all {
			err = r.Each(text, -1, g, func([]int) error { return nil })
		} else if _, err = r.FindSubmatchIndex(text, g); err == stop {
			asked = 0
			_, err = r.Match(text, g)
		}
		if err != stop {
			t.Errorf("%.50q: got %v, want %v", expr, err, stop)
		}
	}
	x := strings.Repeat("x", 8<<20)
	f(`x*y|x`, x, true)
	f(`(?:x*y|x)\b|x`, x, true)
	f(`^|x*y|x`, x, true)
	f(`x+?.*y|é`, strings.Repeat("é", 1<<20), true)
	f(`(x+x+)+y`, x, false)
	f(`(.*)(.*)(.*)(.*)(.*)[^x]`, x, false)
	f(`\b(x{1,100}){1,10}y`, x, false)
}

// TestLimit refuses a text before it is looked at.
func TestLimit(t *testing.T) {
	r, err := regex.Compile(`(x{30}){30}y`, regex.MaxBytes)
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Repeat("x", 1<<20)
	f := func(_ any, err error) {
		t.Helper()
		limit, ok := errors.AsType[*regex.LimitError](err)
		if !ok || limit.Bytes != len(text) || limit.Expr != r.String() || !strings.Contains(err.Error(), `cannot match a text of 1048576 bytes by the pattern "(x{30}){30}y": it has `) {
			t.Errorf("got %v", err)
		}
	}
	g := regex.Guard{Steps: regex.MaxSteps}
	f(r.Match(text, g))
	f(r.FindSubmatchIndex(text, g))
	f(nil, r.Each(text, -1, g, func([]int) error { return nil }))
	f(r.Replace(text, 0, g, func(dst []byte, _ []int) ([]byte, error) { return dst, nil }))
	small, _ := regex.Compile("x", 0)
	f2 := func(n int, want bool) {
		t.Helper()
		_, err := small.Replace("xxxx", n, regex.Guard{}, func(dst []byte, _ []int) ([]byte, error) { return append(dst, "yy"...), nil })
		if _, ok := errors.AsType[*regex.LimitError](err); ok != want {
			t.Errorf("at most %d: got %v", n, err)
		}
	}
	f2(7, true)
	f2(8, false)
}

// TestSize compiles expressions of all kinds: none may take much more than what
// was said before.
func TestSize(t *testing.T) {
	f := func(expr string) {
		t.Helper()
		size, err := regex.Measure(expr)
		if err != nil {
			t.Fatal(err)
		}
		const n = 20
		var before, after runtime.MemStats
		var all [n]*regexp.Regexp
		runtime.GC()
		runtime.ReadMemStats(&before)
		for i := range all {
			all[i] = regexp.MustCompile(expr)
		}
		runtime.GC()
		runtime.ReadMemStats(&after)
		took := (int(after.HeapAlloc) - int(before.HeapAlloc)) / n
		runtime.KeepAlive(&all)
		if took > size.Bytes+size.Bytes/2+8<<10 {
			t.Errorf("%.60q takes %d KiB, estimated %d KiB", expr, took>>10, size.Bytes>>10)
		}
		t.Logf("%.60q: %d KiB, estimated %d KiB", expr, took>>10, size.Bytes>>10)
	}
	f(`a`)
	f(`(a{100}b){9}`)
	f(`^(a{100}){9}$`)
	f(`[\pL\pN]{900}`)
	f(`^[\pL\pN]{900}$`)
	f(`^(?:[\pL]\d|\pN[a-z]){40}$`)
	f(`(?i)` + strings.Repeat("k", 5000))
	f(`^(?i)` + strings.Repeat("k", 900))
	f(`^(?:` + strings.Join(strings.Split(strings.Repeat("a b c d e f g h i j k l m n ", 20), " "), `\d|`) + `x)$`)
	f(strings.Repeat(`\pL`, 2000))
	f(strings.Repeat(`(a)`, 300))
	f(`^` + strings.Repeat(`(a)`, 200) + `$`)
	f(`(((a{1,10}){1,10}){1,9}b){1}`)
	f(`^(((a{1,9}){1,9}b){1,9}c)$`)
	f(`^(?:é*á*í*ó*ú*){30}$`)
}

// TestTooLarge refuses expressions before they are compiled.
func TestTooLarge(t *testing.T) {
	for _, expr := range []string{
		`(` + strings.Repeat("abcdefgh", 500) + `){800}`, strings.Repeat(`a{1000}`, 100), `(` + strings.Repeat(`\pL{10}`, 100) + `){100}`,
		`^\pL{490}\d$`, strings.Repeat(`(a)`, 2700), `(?i)(` + strings.Repeat(`k{9}`, 1000) + `){100}`, strings.Repeat(`[^a]{1000}`, 800),
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := regex.Compile(expr, regex.MaxBytes)
		runtime.ReadMemStats(&after)
		if err == nil || !strings.Contains(err.Error(), "and the limit is 4.0 MiB") {
			t.Errorf("%.60q: got %v", expr, err)
		}
		if n := after.TotalAlloc - before.TotalAlloc; n > 8<<20 {
			t.Errorf("%.60q: allocated %d MiB to be refused", expr, n>>20)
		}
	}
	if _, err := regex.Compile(strings.Repeat(`a{1000}`, 100), 0); err != nil {
		t.Error(err)
	}
}

func TestCache(t *testing.T) {
	c := regex.NewCache(1 << 20)
	a, err := c.Compile("a")
	if err != nil {
		t.Fatal(err)
	}
	if again, _ := c.Compile("a"); again != a {
		t.Error("it was compiled again")
	}
	for i := range 200 {
		if _, err := c.Compile(fmt.Sprintf("a{100}b{%d}", i)); err != nil {
			t.Fatal(err)
		}
		if n := c.Used(); n > 1<<20 {
			t.Fatalf("the cache has %d bytes", n)
		}
	}
	if _, err := c.Compile("("); err == nil {
		t.Error("no error")
	}
}

// TestMeter ends a text, then a batch, then with the context.
func TestMeter(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes six seconds")
	}
	r, err := regex.Compile(`x*y|x`, 0)
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Repeat("x", 1<<20)
	ctx, cancel := context.WithCancel(context.Background())
	m := regex.NewMeter(ctx)
	run := func() error { return r.Each(text, -1, m.Guard(), func([]int) error { return nil }) }
	if err := run(); err == nil || err.Error() != "matching it took longer than 1s" {
		t.Errorf("got %v", err)
	}
	for range 20 {
		if err = run(); err == nil || strings.Contains(err.Error(), "the batch") {
			break
		}
	}
	if err == nil || err.Error() != "matching the texts of the batch took longer than 5s" || m.Err() != nil {
		t.Errorf("got %v, %v", err, m.Err())
	}
	m = regex.NewMeter(ctx)
	cancel()
	if err := run(); err != context.Canceled || m.Err() != context.Canceled {
		t.Errorf("got %v", err)
	}
}

func BenchmarkFind(b *testing.B) {
	for _, expr := range []string{`(\d+)\s+"([^"]*)"`, `\b\d{4}\b`} {
		std, own := regexp.MustCompile(expr), must(b, expr)
		for _, n := range []int{1, 10, 100} {
			text := strings.Repeat(`10.0.0.1 - - "GET /index.html" 200 1234 `, 5*n)
			b.Run(fmt.Sprintf("regexp/%d/%s", len(text), expr), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					_ = std.FindAllStringSubmatchIndex(text, -1)
				}
			})
			b.Run(fmt.Sprintf("regex/%d/%s", len(text), expr), func(b *testing.B) {
				b.ReportAllocs()
				g := regex.Guard{Check: func() error { return nil }}
				for b.Loop() {
					_ = own.Each(text, -1, g, func([]int) error { return nil })
				}
			})
		}
	}
}

func must(t testing.TB, expr string) *regex.Regexp {
	r, err := regex.Compile(expr, 0)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

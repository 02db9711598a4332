package hostiletest

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"
)

// Pattern is a case of FuzzPatterns: a pattern and a text that is a part, many
// times, and what stands after it.
type Pattern struct {
	Op            int // what to do, of as many as the language has
	Pattern       string
	Part, After   string
	N             int
	Flags, Insert string
}

const (
	// maxPatternText is how long the text of a case may be, in bytes.
	maxPatternText = 1 << 20
	// patternTime is what a case may take. The limits of the scripts are a fiftieth
	// of it: the machine may be busy.
	patternTime = time.Minute
)

// hostilePatterns and hostileParts go with each other in the seeds.
var hostilePatterns = []string{
	`x*y|x`, `(x+x+)+y`, `^(?=(x+x+)+y)`, `(x{30}){30}y`, `(.*)(.*)(.*)(.*)[^x]`, `\b(x*y|x)`, `(?:x*y)?`, `.*?y|x`, `(x|xx)+$`, `(a)|b`, `\pL{900}`, `^\pL{490}\d$`,
	`(?i)(é|x)*z`, `[^y]*y|.`, `$`, `^`, `(x+)\1y`, `(?<=x*)y`, `x(?=x*y)`, `%b()`, `(x*)y`, `.-.-.-y`, `%f[x]x*y`, `(x+)%1y`,
	`(` + strings.Repeat("abcdefgh", 400) + `){900}`, strings.Repeat(`\pL{1000}\pN{1000}`, 50), strings.Repeat(`(a)`, 2700), strings.Repeat(`(`, 3000), `[`, `\`, `(?:`, "\xff",
}

var hostileParts = []string{"x", "xy", "é", "x\n", "ab ", "(", "\xff", "\U0001f600"}

// PatternSeeds are cases for a language that has so many things to do.
func PatternSeeds(ops int) []Pattern {
	var out []Pattern
	for op := range ops {
		for _, p := range hostilePatterns[:3] {
			out = append(out, Pattern{Op: op, Pattern: p, Part: "x", N: 60_000, Insert: "z"}, Pattern{Op: op, Pattern: p, Part: "x", After: "é", N: 40, Insert: "z", Flags: "g"})
		}
	}
	for i, p := range hostilePatterns {
		for j, part := range hostileParts {
			if j > 1 && (i+j)%4 > 0 {
				continue
			}
			out = append(out, Pattern{Op: (i + 3*j) % ops, Pattern: p, Part: part, After: "z", N: []int{40, 3000, 100_000}[(i+j)%3], Flags: []string{"", "g", "gi", "u", "gy", "gs"}[(i+j)%6], Insert: []string{"", "$1", "yy$&"}[j%3]})
		}
	}
	return out
}

// FuzzPatterns sends patterns and texts to the test of the name, which serves
// them.
func FuzzPatterns(f *testing.F, serves string, ops int) {
	if testing.Short() {
		f.Skip("patterns that backtrack take a minute")
	}
	child := NewChild(f, serves)
	for _, p := range PatternSeeds(ops) {
		f.Add(uint8(p.Op), p.Pattern, p.Part, p.After, p.N, p.Flags, p.Insert)
	}
	f.Fuzz(func(t *testing.T, op uint8, pattern, part, after string, n int, flags, insert string) {
		p := Pattern{int(op) % ops, pattern, part, after, n, flags, insert}
		if len(pattern)+len(part)+len(after)+len(flags)+len(insert) > 64<<10 {
			return
		}
		data, err := json.Marshal([]string{strconv.Itoa(p.Op), code(p.Pattern), code(p.Part), code(p.After), strconv.Itoa(p.N), code(p.Flags), code(p.Insert)})
		if err != nil {
			t.Fatal(err)
		}
		child.Run(t, data)
	})
}

func code(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }

// Labels are the case as labels of a metric in text form: numbers as they are,
// texts in base64.
func (p Pattern) Labels() string {
	return fmt.Sprintf(`op="%d",n="%d",pattern=%q,part=%q,after=%q,flags=%q,insert=%q,quoted=%q`,
		p.Op, p.Times(), code(p.Pattern), code(p.Part), code(p.After), code(p.Flags), code(p.Insert), code(strconv.Quote(p.Pattern)))
}

// Times is how often the part is in the text.
func (p Pattern) Times() int { return max(0, min(p.N, maxPatternText/max(1, len(p.Part)))) }

// Text is the text of the case.
func (p Pattern) Text() string { return strings.Repeat(p.Part, p.Times()) + p.After }

// ServePatterns serves the cases of FuzzPatterns: run must return in time.
func ServePatterns(t *testing.T, open func(t testing.TB) func(Pattern) error) {
	Serve(t, func(t testing.TB) func([]byte) error {
		run := open(t)
		return func(data []byte) error {
			var in []string
			if err := json.Unmarshal(data, &in); err != nil {
				return err
			}
			var p Pattern
			p.Op, _ = strconv.Atoi(in[0])
			p.N, _ = strconv.Atoi(in[4])
			for i, to := range map[int]*string{1: &p.Pattern, 2: &p.Part, 3: &p.After, 5: &p.Flags, 6: &p.Insert} {
				text, err := base64.StdEncoding.DecodeString(in[i])
				if err != nil {
					return err
				}
				*to = string(text)
			}
			began := time.Now()
			if err := run(p); err != nil {
				return err
			}
			if d := time.Since(began); d > patternTime {
				return fmt.Errorf("%+v took %s", p, d)
			}
			return nil
		}
	})
}

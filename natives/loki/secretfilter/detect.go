package secretfilter

import (
	"math"
	"math/bits"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/weir-run/weir/engine/regex"
)

// detectors is a compiled configuration. It is immutable; its methods are safe
// for concurrent use.
type detectors struct {
	rules  []*rule
	allow  []*allowlist
	words  *scanner
	always []int // rules without keywords
}

// rule finds one kind of secret.
type rule struct {
	id      string
	generic bool
	regex   func() *regex.Regexp
	hint    func() *regex.Regexp // cheaper than regex, and matches whenever regex does; may be nil
	anchor  *anchor              // cheaper still; may be nil
	run     int                  // minimum number of consecutive token bytes in a match
	group   int
	entropy float64
	allow   []*allowlist
}

// allowlist defines exceptions.
type allowlist struct {
	all    bool   // all conditions must be met
	target string // the text that regex is applied to: "" the secret, match or line
	regex  func() *regex.Regexp
	stop   []string // lower case
}

// finding is a secret in a line.
type finding struct {
	rule   *rule
	secret string
	row    int // for a line with line breaks, the row in which the match begins
}

// lazily returns a function that compiles a regex when it is first called: most
// rules never see a line with their keyword.
func lazily(expr string) func() *regex.Regexp {
	return sync.OnceValue(func() *regex.Regexp {
		re, err := regex.Compile(expr, 0)
		if err != nil {
			panic("BUG: a regex was not checked: " + err.Error())
		}
		return re
	})
}

// scratch is the working memory of find.
type scratch struct {
	found    rulesFound
	findings []finding
}

var scratches = sync.Pool{New: func() any { return new(scratch) }}

// find returns the secrets in line. They are valid until the next call with s.
// over may be nil; otherwise, find calls it before each rule and returns with ok
// false if it returns true. find also returns with ok false if g ends the matches
// of a rule.
func (rs *detectors) find(line string, s *scratch, over func() bool, g regex.Guard) (fs []finding, ok bool) {
	s.found.reset(len(rs.rules))
	rs.words.scan(line, &s.found)
	if len(rs.always) > 0 {
		s.found.add(rs.always)
	}
	if !s.found.any {
		return nil, true
	}
	clear(s.findings)
	s.findings = s.findings[:0]
	longest, ascii := longestToken(line)
	for i, set := range s.found.bits {
		for ; set != 0; set &= set - 1 {
			r := rs.rules[i*64+bits.TrailingZeros64(set)]
			if longest < r.run {
				continue
			}
			if over != nil && over() {
				return nil, false
			}
			may, err := r.mayMatch(line, ascii, g)
			if may && err == nil {
				s.findings, err = rs.apply(r, line, s.findings, g)
			}
			if err != nil {
				return nil, false
			}
		}
	}
	if over != nil && over() {
		return nil, false
	}
	return preferred(s.findings), true
}

// allowed marks a line as one without secrets, as in Gitleaks.
const allowed = "gitleaks:allow"

// apply appends the secrets that r finds in line.
func (rs *detectors) apply(r *rule, line string, fs []finding, g regex.Guard) ([]finding, error) {
	err := r.regex().Each(line, -1, g, func(at []int) error {
		match := strings.Trim(line[at[0]:at[1]], "\n")
		secret, err := r.secret(match, g)
		if err != nil || secret == "" || r.entropy != 0 && entropy(secret) <= r.entropy {
			return err
		}
		whole := lineAround(line, at[0], at[0]+len(match))
		if strings.Contains(whole, allowed) {
			return nil
		}
		for _, lists := range [][]*allowlist{rs.allow, r.allow} {
			if allows, err := anyAllows(lists, secret, match, whole, g); allows || err != nil {
				return err
			}
		}
		fs = append(fs, finding{r, secret, strings.Count(line[:at[0]], "\n")})
		return nil
	})
	return fs, err
}

// secret returns the part of a match that is the secret: the configured group,
// the first group that is not empty, or the whole match.
func (r *rule) secret(match string, g regex.Guard) (string, error) {
	at, err := r.regex().FindSubmatchIndex(match, g)
	if len(at) < 4 || err != nil {
		return match, err
	}
	group := func(i int) string {
		if at[2*i] < 0 {
			return ""
		}
		return match[at[2*i]:at[2*i+1]]
	}
	if r.group > 0 {
		return group(r.group), nil
	}
	for i := 1; i < len(at)/2; i++ {
		if g := group(i); g != "" {
			return g, nil
		}
	}
	return match, nil
}

// lineAround returns the whole lines that contain text[from:to].
func lineAround(text string, from, to int) string {
	from = strings.LastIndexByte(text[:from], '\n') + 1
	if n := strings.IndexByte(text[to:], '\n'); n >= 0 {
		return text[from : to+n]
	}
	return text[from:]
}

func anyAllows(lists []*allowlist, secret, match, line string, g regex.Guard) (bool, error) {
	for _, a := range lists {
		target := secret
		switch a.target {
		case "match":
			target = match
		case "line":
			target = line
		}
		if allows, err := a.allows(target, secret, g); allows || err != nil {
			return allows, err
		}
	}
	return false, nil
}

func (a *allowlist) allows(target, secret string, g regex.Guard) (bool, error) {
	byRegex := false
	if a.regex != nil {
		var err error
		if byRegex, err = a.regex().Match(target, g); err != nil {
			return false, err
		}
	}
	if !a.all && byRegex {
		return true, nil
	}
	byWord := false
	if len(a.stop) > 0 {
		lower := strings.ToLower(secret)
		for _, w := range a.stop {
			if byWord = strings.Contains(lower, w); byWord {
				break
			}
		}
	}
	if !a.all {
		return byWord, nil
	}
	return (a.regex == nil || byRegex) && (len(a.stop) == 0 || byWord), nil
}

// preferred removes the findings of generic rules where a more specific rule has
// a finding.
func preferred(fs []finding) []finding {
	left := fs[:0]
	for _, f := range fs {
		if f.rule.generic && betterThan(f, fs) {
			continue
		}
		left = append(left, f)
	}
	return left
}

func betterThan(f finding, fs []finding) bool {
	for _, o := range fs {
		if !o.rule.generic && o.row == f.row && strings.Contains(o.secret, f.secret) {
			return true
		}
	}
	return false
}

// entropy returns the Shannon entropy of the characters of s, in bits. The total
// is the number of bytes of s, even if characters have several bytes.
func entropy(s string) (e float64) {
	var few [utf8.RuneSelf]int
	var others map[rune]int
	for _, c := range s {
		switch {
		case c < utf8.RuneSelf:
			few[c]++
			continue
		case others == nil:
			others = map[rune]int{}
		}
		others[c]++
	}
	add := func(n int) {
		if n > 0 {
			p := float64(n) / float64(len(s))
			e -= p * math.Log2(p)
		}
	}
	for _, n := range few {
		add(n)
	}
	for _, n := range others {
		add(n)
	}
	return e
}

package secretfilter

import (
	"math"
	"math/bits"
	"regexp"
	"strings"
	"sync"
	"unicode/utf8"
)

// ruleset is a configuration at work. It is immutable; its methods are safe for
// concurrent use.
type ruleset struct {
	rules  []*rule
	allow  []*allowlist
	words  *scanner
	always []int // rules without keywords
}

// rule finds one kind of secret.
type rule struct {
	id      string
	generic bool
	regex   func() *regexp.Regexp
	hint    func() *regexp.Regexp // cheaper than regex, and matches where it does; nil for none
	anchor  *anchor               // cheaper still; nil for none
	run     int                   // bytes of a token that a match has at least
	group   int
	entropy float64
	allow   []*allowlist
}

// allowlist says what is no secret.
type allowlist struct {
	all    bool   // all that is said must be true
	target string // what regex is about: "" the secret, match or line
	regex  func() *regexp.Regexp
	stop   []string // lower case
}

// finding is a secret in a line.
type finding struct {
	rule   *rule
	secret string
	row    int // of a line with line breaks, where the match begins
}

// lazily returns what compiles a regex at its first use: most rules never see a
// line with their keyword.
func lazily(expr string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expr) })
}

// scratch is what find needs beside the line.
type scratch struct {
	found    rulesFound
	findings []finding
}

var scratches = sync.Pool{New: func() any { return new(scratch) }}

// find returns the secrets in line; they are valid until the next call with s.
// over is asked before each rule and tells it to give up, ok is false then; it
// may be nil.
func (rs *ruleset) find(line string, s *scratch, over func() bool) (fs []finding, ok bool) {
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
			if r.mayMatch(line, ascii) {
				s.findings = rs.apply(r, line, s.findings)
			}
		}
	}
	if over != nil && over() {
		return nil, false
	}
	return preferred(s.findings), true
}

// allowed marks a line as one that has no secrets, as in Gitleaks.
const allowed = "gitleaks:allow"

// apply appends what r finds in line.
func (rs *ruleset) apply(r *rule, line string, fs []finding) []finding {
	for _, at := range r.regex().FindAllStringIndex(line, -1) {
		match := strings.Trim(line[at[0]:at[1]], "\n")
		secret := r.secret(match)
		if secret == "" || r.entropy != 0 && entropy(secret) <= r.entropy {
			continue
		}
		whole := lineAround(line, at[0], at[0]+len(match))
		if strings.Contains(whole, allowed) || anyAllows(rs.allow, secret, match, whole) || anyAllows(r.allow, secret, match, whole) {
			continue
		}
		fs = append(fs, finding{r, secret, strings.Count(line[:at[0]], "\n")})
	}
	return fs
}

// secret returns the part of a match that is one: the group that is named, the
// first that is not empty, or all.
func (r *rule) secret(match string) string {
	groups := r.regex().FindStringSubmatch(match)
	if len(groups) < 2 {
		return match
	}
	if r.group > 0 {
		return groups[r.group]
	}
	for _, g := range groups[1:] {
		if g != "" {
			return g
		}
	}
	return match
}

// lineAround returns the whole lines that text[from:to] is in.
func lineAround(text string, from, to int) string {
	from = strings.LastIndexByte(text[:from], '\n') + 1
	if n := strings.IndexByte(text[to:], '\n'); n >= 0 {
		return text[from : to+n]
	}
	return text[from:]
}

func anyAllows(lists []*allowlist, secret, match, line string) bool {
	for _, a := range lists {
		target := secret
		switch a.target {
		case "match":
			target = match
		case "line":
			target = line
		}
		if a.allows(target, secret) {
			return true
		}
	}
	return false
}

func (a *allowlist) allows(target, secret string) bool {
	byRegex := a.regex != nil && a.regex().MatchString(target)
	if !a.all && byRegex {
		return true
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
		return byWord
	}
	return (a.regex == nil || byRegex) && (len(a.stop) == 0 || byWord)
}

// preferred leaves out what a generic rule found where another one says more.
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

// entropy returns Shannon's entropy of the characters of s, in bits; one of
// several bytes counts as one of as many as there are bytes in s.
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

// Package regex matches regular expressions against texts when either may be
// hostile. It is Go's regexp with limits: the size of an expression is known
// before it is compiled, and matching a long text stops when its Guard returns
// an error.
//
// Go's regexp takes time in proportion to expression × text for one match. All
// matches of one text may take that time for each match, and nothing can
// interrupt it. Short texts are matched by regexp directly, at no extra cost;
// longer texts are matched in pieces, and the Guard is called in between.
package regex

import (
	"fmt"
	"io"
	"regexp"
	"regexp/syntax"
	"strings"
	"sync"
	"unicode/utf8"
)

// Limits for scripts, expressions in the config and templates, whose
// expressions and texts are created at run time.
const (
	// MaxBytes is the memory limit for an expression.
	MaxBytes = 4 << 20
	// MaxSteps is the maximum cost of one match, which takes about 0.2 s on an
	// idle machine.
	MaxSteps = 1 << 24
)

const (
	// easySteps is the maximum cost of a match that cannot be interrupted: on an
	// idle machine, about a tenth of a second.
	easySteps = 1 << 22
	// easyAll is the equivalent for all matches of a text, each of which may scan
	// the whole rest of it.
	easyAll = 1 << 26
	// checkSteps is the amount of work between two calls of a Guard.
	checkSteps = 1 << 20
)

// Guard limits matching. Its zero value has no limits.
type Guard struct {
	// Steps is the maximum cost of one match, as counted by Regexp.Steps; 0 means
	// no limit. A longer text is refused with a *LimitError before it is scanned.
	Steps int
	// Check is called while matching takes long, by the calling goroutine, about
	// every 10 ms. Its error ends the match and is returned unchanged. It may be
	// nil.
	Check func() error
}

func (g Guard) check() error {
	if g.Check == nil {
		return nil
	}
	return g.Check()
}

// LimitError means that a text would take, or took, too long.
type LimitError struct {
	Expr  string // the expression
	Bytes int    // of the text
	Limit string // the exceeded limit
}

func (e *LimitError) Error() string {
	return fmt.Sprintf("cannot match a text of %d bytes by the pattern %q: %s", e.Bytes, Shorten(e.Expr), e.Limit)
}

// Shorten returns an expression for messages: its first 100 bytes.
func Shorten(expr string) string {
	if len(expr) <= 100 {
		return expr
	}
	return strings.ToValidUTF8(expr[:100], "") + "…"
}

// Regexp is a compiled expression. It is safe for concurrent use.
type Regexp struct {
	re    *regexp.Regexp
	size  Size
	steps int

	// behind means that a match depends on the character before it.
	behind bool
	// rest matches from the second character of a text on, in a group.
	rest func() (*regexp.Regexp, error)

	easySteps, easyAll int // the constants, except in tests
}

// Compile compiles an expression in Go's syntax. An expression that would take
// more than limit bytes is refused before it is compiled; 0 means no limit.
func Compile(expr string, limit int) (*Regexp, error) {
	tree, err := syntax.Parse(expr, syntax.Perl)
	if err != nil {
		return nil, err
	}
	size := sizeOf(tree)
	if err := size.Fits(limit); err != nil {
		return nil, err
	}
	re, err := regexp.Compile(expr)
	if err != nil {
		return nil, err
	}
	return wrap(re, tree, size), nil
}

// Of returns a limited Regexp for a compiled expression, which must have Go's
// default syntax.
func Of(re *regexp.Regexp) (*Regexp, error) {
	tree, err := syntax.Parse(re.String(), syntax.Perl)
	if err != nil {
		return nil, err
	}
	return wrap(re, tree, sizeOf(tree)), nil
}

func wrap(re *regexp.Regexp, tree *syntax.Regexp, size Size) *Regexp {
	r := &Regexp{re: re, size: size, steps: size.steps(), behind: looksBehind(tree), easySteps: easySteps, easyAll: easyAll}
	if r.behind {
		r.size.Bytes = add(size.Bytes, size.Bytes) // of rest
	}
	whole := tree.String() // the expression may end in \Q, which would quote the text after it
	r.rest = sync.OnceValues(func() (*regexp.Regexp, error) {
		return regexp.Compile(`\A(?s:.)(?s:.*?)(` + whole + `)`)
	})
	return r
}

// Easy reports whether all matches in a text of n bytes take negligible time,
// however they are found.
func (r *Regexp) Easy(n int) bool { return product(r.Steps(n), n) <= r.easyAll }

// String returns the expression.
func (r *Regexp) String() string { return r.re.String() }

// Bytes returns the approximate memory of the expression, including the memory
// for matching in one goroutine.
func (r *Regexp) Bytes() int { return r.size.Bytes }

// Steps returns the maximum cost of one match in a text of n bytes. A step
// takes about 10 ns.
func (r *Regexp) Steps(n int) int { return product(r.steps, n) }

// NumSubexp returns the number of groups.
func (r *Regexp) NumSubexp() int { return r.re.NumSubexp() }

// SubexpNames returns the names of the groups, as regexp.Regexp does.
func (r *Regexp) SubexpNames() []string { return r.re.SubexpNames() }

// Expand is like ExpandString of regexp.Regexp.
func (r *Regexp) Expand(dst []byte, template, s string, match []int) []byte {
	return r.re.ExpandString(dst, template, s, match)
}

// Match reports whether s has a match.
func (r *Regexp) Match(s string, g Guard) (bool, error) {
	if r.Steps(len(s)) <= r.easySteps {
		return r.re.MatchString(s), nil
	}
	in, err := r.pieces(s, g)
	if err != nil {
		return false, err
	}
	if in == nil {
		return r.re.MatchString(s), nil
	}
	ok := in.from >= 0 && r.re.MatchReader(in)
	return ok && in.err == nil, in.err
}

// FindSubmatchIndex returns the first match in s, as regexp.Regexp does.
func (r *Regexp) FindSubmatchIndex(s string, g Guard) ([]int, error) {
	if r.Steps(len(s)) <= r.easySteps {
		return r.re.FindStringSubmatchIndex(s), nil
	}
	return r.find(r.re, s, g)
}

// find is like FindSubmatchIndex, for a text that may be long, with r.re or
// r.rest.
func (r *Regexp) find(re *regexp.Regexp, s string, g Guard) ([]int, error) {
	in, err := r.pieces(s, g)
	if err != nil {
		return nil, err
	}
	if in == nil {
		return re.FindStringSubmatchIndex(s), nil
	}
	if re != r.re {
		in.from = 0
	}
	if in.from < 0 {
		return nil, in.err
	}
	in.at = in.from
	m := re.FindReaderSubmatchIndex(in)
	if in.err != nil {
		return nil, in.err
	}
	for i := range m {
		if m[i] >= 0 {
			m[i] += in.from
		}
	}
	return m, nil
}

// pieces returns a reader for s that regularly calls the guard, or nil if s is
// short.
func (r *Regexp) pieces(s string, g Guard) (*reader, error) {
	n := r.Steps(len(s))
	if g.Steps > 0 && n > g.Steps {
		return nil, &LimitError{Expr: r.String(), Bytes: len(s), Limit: fmt.Sprintf("it has %d instructions, with which a text may have at most %d bytes", r.size.Instructions, g.Steps/r.steps)}
	}
	if n <= r.easySteps || g.Check == nil {
		return nil, nil
	}
	if err := g.Check(); err != nil {
		return nil, err
	}
	in := &reader{s: s, every: max(1, checkSteps/r.steps), check: g.Check}
	// regexp searches for the constant prefix of an expression itself, but not
	// when it uses a reader.
	if prefix, _ := r.re.LiteralPrefix(); prefix != "" && !r.behind {
		in.from = strings.Index(s, prefix)
		in.at = in.from
	}
	return in, nil
}

// reader reads a text until its check returns an error.
type reader struct {
	s        string
	from, at int
	every    int // runes between checks
	read     int
	check    func() error
	err      error
}

// ReadRune implements io.RuneReader.
func (in *reader) ReadRune() (c rune, size int, err error) {
	if in.read++; in.read >= in.every {
		in.read = 0
		if in.err == nil {
			in.err = in.check()
		}
	}
	if in.err != nil || in.at >= len(in.s) {
		return 0, 0, io.EOF
	}
	if c := in.s[in.at]; c < utf8.RuneSelf {
		in.at++
		return rune(c), 1, nil
	}
	c, size = utf8.DecodeRuneInString(in.s[in.at:])
	in.at += size
	return c, size, nil
}

// Each calls f with the matches that FindAllStringSubmatchIndex of
// regexp.Regexp returns, at most n of them if n is not negative. It ends with
// the first error. f may keep its argument.
func (r *Regexp) Each(s string, n int, g Guard, f func(match []int) error) error {
	if n == 0 {
		return nil
	}
	if r.Easy(len(s)) {
		for _, m := range r.re.FindAllStringSubmatchIndex(s, n) {
			if err := f(m); err != nil {
				return err
			}
		}
		return nil
	}
	work, last := 0, -1
	for pos := 0; pos <= len(s); {
		if work += r.Steps(len(s) - pos); work >= checkSteps {
			work = 0
			if err := g.check(); err != nil {
				return err
			}
		}
		m, err := r.findFrom(s, pos, g)
		if err != nil || m == nil {
			return err
		}
		again := m[1] == pos && m[0] == last // an empty match right after another one
		last = m[1]
		if m[1] > pos {
			pos = m[1]
		} else if pos == len(s) {
			pos++
		} else {
			_, size := utf8.DecodeRuneInString(s[pos:])
			pos += size
		}
		if again {
			continue
		}
		if err := f(m); err != nil {
			return err
		}
		if n--; n == 0 {
			return nil
		}
	}
	return nil
}

// findFrom finds the first match in s from pos on. The text before pos is used
// only as the context of the match.
func (r *Regexp) findFrom(s string, pos int, g Guard) ([]int, error) {
	switch {
	case pos == 0:
		return r.find(r.re, s, g)
	case !r.behind:
		m, err := r.find(r.re, s[pos:], g)
		return shift(m, pos), err
	}
	rest, err := r.rest()
	if err != nil {
		return nil, &LimitError{Expr: r.String(), Bytes: len(s), Limit: err.Error()}
	}
	_, size := utf8.DecodeLastRuneInString(s[:pos])
	m, err := r.find(rest, s[pos-size:], g)
	if m != nil {
		m = m[2:] // without the groups of r.rest itself
	}
	return shift(m, pos-size), err
}

func shift(m []int, by int) []int {
	for i := range m {
		if m[i] >= 0 {
			m[i] += by
		}
	}
	return m
}

// Replace replaces every match by the text that with appends for it. The result
// may have at most most bytes, or any number if most is 0. A longer result is a
// *LimitError.
func (r *Regexp) Replace(s string, most int, g Guard, with func(dst []byte, match []int) ([]byte, error)) (string, error) {
	var out []byte
	last, found := 0, false
	tooLong := func(n int) error {
		if most > 0 && n > most {
			return &LimitError{Expr: r.String(), Bytes: len(s), Limit: fmt.Sprintf("with the replacements it would be longer than %d bytes", most)}
		}
		return nil
	}
	err := r.Each(s, -1, g, func(m []int) (err error) {
		found = true
		out = append(out, s[last:m[0]]...)
		if out, err = with(out, m); err != nil {
			return err
		}
		last = m[1]
		return tooLong(len(out))
	})
	if err != nil || !found {
		return s, err
	}
	if err := tooLong(len(out) + len(s) - last); err != nil {
		return s, err
	}
	return string(append(out, s[last:]...)), nil
}

package process

import (
	"context"
	"errors"
	"strings"
	"unicode/utf8"

	"github.com/weir-run/weir/engine/regex"
)

// LuhnArguments are the arguments of stage.luhn.
type LuhnArguments struct {
	// The replacement for a number.
	Replacement string `alloy:"replacement,attr,optional"`
	// The extracted value to read and change instead of the line.
	Source *string `alloy:"source,attr,optional"`
	// The minimum number of digits of a number.
	MinLength int `alloy:"min_length,attr,optional"`
	// Characters that may occur between the digits of a number, such as " -".
	Delimiters string `alloy:"delimiters,attr,optional"`
	// A regular expression; text that matches it is not changed.
	SkipRegex string `alloy:"skip_regex,attr,optional"`
}

// SetToDefault sets the arguments for card numbers.
func (a *LuhnArguments) SetToDefault() {
	*a = LuhnArguments{Replacement: "**REDACTED**", MinLength: 13}
}

// Validate checks that the expression compiles.
func (a *LuhnArguments) Validate() error {
	var errs []error
	errs = append(errs, notEmpty(a.Source))
	return errors.Join(append(errs, optionalRegexp("skip_regex", a.SkipRegex))...)
}

// luhnStage replaces numbers whose last digit is the check digit of Luhn's
// formula.
//
// Formula: https://en.wikipedia.org/wiki/Luhn_algorithm
type luhnStage struct {
	LuhnArguments
	source int
	skip   *regex.Regexp // nil without skip_regex
}

func (a *LuhnArguments) compile(c *compiler) (stage, error) {
	s := &luhnStage{LuhnArguments: *a, source: -1}
	if s.Replacement == "" {
		s.Replacement = "**REDACTED**"
	}
	if s.MinLength < 1 {
		s.MinLength = 13
	}
	if a.SkipRegex != "" {
		var err error
		if s.skip, err = compileRegexp("skip_regex", a.SkipRegex); err != nil {
			return nil, err
		}
	}
	if a.Source != nil {
		s.source = c.read(*a.Source)
	}
	return s, nil
}

func (s *luhnStage) run(_ context.Context, p *pass) {
	for _, r := range p.rows {
		in, ok := p.source(s.source, r)
		if !ok {
			continue
		}
		out, err := s.redacted(in, p.guard())
		if err != nil {
			p.tooSlow(r)
			continue
		}
		if s.source >= 0 || len(out) != len(in) || out != in {
			p.setLine(r, out)
		}
	}
}

// redacted returns in with all numbers replaced. If there are none, it returns in
// itself.
func (s *luhnStage) redacted(in string, g regex.Guard) (string, error) {
	out := s.replaceIn(in)
	if s.skip == nil || out == in {
		return out, nil
	}
	var b strings.Builder
	done := 0
	err := s.skip.Each(in, -1, g, func(at []int) error {
		b.WriteString(s.replaceIn(in[done:at[0]]))
		b.WriteString(in[at[0]:at[1]])
		done = at[1]
		return nil
	})
	b.WriteString(s.replaceIn(in[done:]))
	return b.String(), err
}

func (s *luhnStage) replaceIn(in string) string {
	var b strings.Builder
	done := 0
	for i := 0; i < len(in); i++ {
		if !isDigit(in[i]) {
			continue
		}
		digits, last, end := s.number(in, i)
		if digits >= s.MinLength && isLuhn(in[i:last]) {
			b.WriteString(in[done:i])
			b.WriteString(s.Replacement)
			done = last
		}
		i = end - 1
	}
	if done == 0 {
		return in
	}
	b.WriteString(in[done:])
	return b.String()
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

// number returns the number of digits of the number that starts at from, the
// position of its last digit, and the end of the delimiters that follow.
func (s *luhnStage) number(in string, from int) (digits, last, end int) {
	for end = from; end < len(in); {
		if isDigit(in[end]) {
			digits++
			end++
			last = end
			continue
		}
		if s.Delimiters == "" {
			break
		}
		c, n := utf8.DecodeRuneInString(in[end:])
		if !strings.ContainsRune(s.Delimiters, c) {
			break
		}
		end += n
	}
	return digits, last, end
}

// isLuhn reports whether the digits of a text pass the Luhn check. It ignores all
// other characters. Numbers that exceed 64 bits never pass.
func isLuhn(text string) bool {
	var room [64]byte
	digits := room[:0]
	for i := range len(text) {
		if isDigit(text[i]) {
			digits = append(digits, text[i])
		}
	}
	const most = "9223372036854775807"
	if n := strings.TrimLeft(string(digits), "0"); len(n) > len(most) || len(n) == len(most) && n > most {
		return false
	}
	sum := 0
	for i := range digits {
		n := int(digits[len(digits)-1-i] - '0')
		if i%2 == 1 {
			if n *= 2; n > 9 {
				n -= 9
			}
		}
		sum += n
	}
	return sum%10 == 0
}

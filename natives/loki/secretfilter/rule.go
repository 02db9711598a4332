package secretfilter

import (
	"regexp/syntax"
	"strings"

	"github.com/weir-run/weir/engine/regex"
)

// newRule returns a rule whose regex has the given tree.
func newRule(f *fileRule, tree *syntax.Regexp, allow []*allowlist) *rule {
	r := &rule{
		id: f.ID, generic: strings.Contains(strings.ToLower(f.ID), "generic"),
		regex: lazily(f.Regex), group: f.SecretGroup, entropy: f.Entropy, allow: allow,
	}
	pure, n, run := tokens(tree)
	if pure {
		run = max(run, n)
	}
	r.run = run
	rest, ok := withoutPrefix(tree)
	if ok {
		r.hint = lazily(rest.String())
	}
	var words []string
	for _, k := range f.Keywords {
		words = append(words, strings.ToLower(k))
	}
	r.anchor = newAnchor(rest, words)
	return r
}

// withoutPrefix returns a regex that matches in the same texts as tree, without
// an optional beginning: [\w.-]{0,50}? before a keyword makes a search many times
// slower. If there is no such beginning, it returns tree, and ok is false.
func withoutPrefix(tree *syntax.Regexp) (rest *syntax.Regexp, ok bool) {
	if tree.Op != syntax.OpConcat || len(tree.Sub) < 2 {
		return tree, false
	}
	first := tree.Sub[0]
	if first.Op != syntax.OpRepeat && first.Op != syntax.OpStar && first.Op != syntax.OpQuest || first.Min > 0 {
		return tree, false
	}
	rest = &syntax.Regexp{Op: tree.Op, Flags: tree.Flags, Sub: tree.Sub[1:]}
	return rest, true
}

// mayMatch reports whether the regex may match. If it returns false, the line has
// no match.
func (r *rule) mayMatch(line string, ascii bool, g regex.Guard) (bool, error) {
	switch {
	case ascii && r.anchor != nil:
		return r.anchor.matches(line, g)
	case r.hint != nil:
		return r.hint().Match(line, g)
	}
	return true, nil
}

// isToken contains the bytes of which most secrets consist.
var isToken = func() (is [256]bool) {
	for c := range is {
		is[c] = c >= 0x80 || strings.IndexByte("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.=+/~-", byte(c)) >= 0
	}
	return is
}()

// longestToken returns the maximum number of consecutive token bytes, and whether
// all bytes are ASCII.
func longestToken(line string) (longest int, ascii bool) {
	n := 0
	var high byte
	for i := range len(line) {
		high |= line[i]
		if isToken[line[i]] {
			n++
			continue
		}
		longest, n = max(longest, n), 0
	}
	return max(longest, n), high < 0x80
}

// tokens returns whether a regex only matches token bytes and at least how many,
// and otherwise the minimum number of consecutive token bytes in a match.
func tokens(re *syntax.Regexp) (pure bool, n, run int) {
	switch re.Op {
	case syntax.OpLiteral:
		for _, c := range re.Rune {
			if c < 0x80 && !isToken[c] {
				return false, 0, 0
			}
		}
		return true, len(re.Rune), 0
	case syntax.OpCharClass:
		for i := 0; i < len(re.Rune); i += 2 {
			for c := re.Rune[i]; c <= re.Rune[i+1] && c < 0x80; c++ {
				if !isToken[c] {
					return false, 0, 0
				}
			}
		}
		return true, 1, 0
	case syntax.OpEmptyMatch, syntax.OpBeginLine, syntax.OpEndLine, syntax.OpBeginText, syntax.OpEndText, syntax.OpWordBoundary, syntax.OpNoWordBoundary:
		return true, 0, 0
	case syntax.OpCapture:
		return tokens(re.Sub[0])
	case syntax.OpStar, syntax.OpQuest:
		pure, _, _ = tokens(re.Sub[0])
		return pure, 0, 0
	case syntax.OpPlus:
		return tokens(re.Sub[0])
	case syntax.OpRepeat:
		pure, n, run = tokens(re.Sub[0])
		if re.Min == 0 {
			return pure, 0, 0
		}
		return pure, n * re.Min, run
	case syntax.OpConcat:
		return tokensInRow(re.Sub)
	case syntax.OpAlternate:
		return tokensOfAny(re.Sub)
	}
	return false, 0, 0
}

func tokensInRow(subs []*syntax.Regexp) (pure bool, n, run int) {
	pure = true
	row := 0
	for _, sub := range subs {
		p, k, inside := tokens(sub)
		if p {
			row += k
			n += k
			continue
		}
		pure = false
		run, row = max(run, row, inside), 0
	}
	return pure, n, max(run, row)
}

func tokensOfAny(subs []*syntax.Regexp) (pure bool, n, run int) {
	pure = true
	for i, sub := range subs {
		p, k, inside := tokens(sub)
		pure = pure && p
		if p {
			inside = max(inside, k)
		}
		if i == 0 {
			n, run = k, inside
			continue
		}
		n, run = min(n, k), min(run, inside)
	}
	return pure, n, run
}

package selector

import (
	"fmt"
	"regexp/syntax"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/weir-run/weir/engine/regex"
)

// newExpression returns a function that reports whether a regular expression may
// match a part of a line, and the expression if the function is not sufficient.
// An expression that is equivalent to a few plain texts is searched as text. For
// another expression, a text that occurs in every match is searched first.
func newExpression(src string) (in func(line string) bool, re *regex.Regexp, err error) {
	if re, err = regex.Compile(src, 0); err != nil {
		return nil, nil, fmt.Errorf("cannot compile regular expression: %w", err)
	}
	tree, err := syntax.Parse(src, syntax.Perl)
	if err != nil {
		return nil, nil, fmt.Errorf("cannot compile regular expression: %w", err)
	}
	if texts, ok := expand(tree); ok {
		return anyOf(texts), nil, nil
	}
	must := required(tree) // often "", which every line contains
	return func(line string) bool { return strings.Contains(line, must) }, re, nil
}

// anyOf returns a function that reports whether a line contains one of the texts.
func anyOf(texts []string) func(line string) bool {
	// A text that contains another one is redundant.
	slices.SortFunc(texts, func(a, b string) int { return len(a) - len(b) })
	var few []string
	for _, t := range texts {
		if !slices.ContainsFunc(few, func(f string) bool { return strings.Contains(t, f) }) {
			few = append(few, t)
		}
	}
	if len(few) == 1 {
		return func(line string) bool { return strings.Contains(line, few[0]) }
	}
	return func(line string) bool {
		for _, t := range few {
			if strings.Contains(line, t) {
				return true
			}
		}
		return false
	}
}

const (
	maxTexts   = 8  // number of texts that can replace an expression
	maxOfClass = 16 // maximum number of characters of a class that are tried one by one
)

// expand returns the texts to which an expression is equivalent, if there are
// only a few.
func expand(re *syntax.Regexp) (texts []string, ok bool) {
	switch re.Op {
	case syntax.OpEmptyMatch:
		return []string{""}, true
	case syntax.OpLiteral:
		if re.Flags&syntax.FoldCase != 0 || slices.Contains(re.Rune, utf8.RuneError) { // this character matches any invalid byte
			return nil, false
		}
		return []string{string(re.Rune)}, true
	case syntax.OpCapture:
		return expand(re.Sub[0])
	case syntax.OpQuest:
		texts, ok = expand(re.Sub[0])
		return append(texts, ""), ok && len(texts) < maxTexts
	case syntax.OpCharClass:
		return expandClass(re.Rune)
	case syntax.OpAlternate:
		for _, sub := range re.Sub {
			more, ok := expand(sub)
			if texts = append(texts, more...); !ok || len(texts) > maxTexts {
				return nil, false
			}
		}
		return texts, true
	case syntax.OpConcat:
		texts = []string{""}
		for _, sub := range re.Sub {
			tails, ok := expand(sub)
			if !ok || len(texts)*len(tails) > maxTexts {
				return nil, false
			}
			heads := texts
			texts = nil
			for _, h := range heads {
				for _, t := range tails {
					texts = append(texts, h+t)
				}
			}
		}
		return texts, true
	}
	return nil, false
}

// expandClass returns the characters of a character class, if there are only a
// few.
func expandClass(ranges []rune) (texts []string, ok bool) {
	for i := 0; i+1 < len(ranges); i += 2 {
		if ranges[i+1]-ranges[i] >= maxOfClass {
			return nil, false
		}
		for r := ranges[i]; r <= ranges[i+1]; r++ {
			if texts = append(texts, string(r)); r == utf8.RuneError || len(texts) > maxTexts {
				return nil, false
			}
		}
	}
	return texts, len(texts) > 0
}

// required returns the longest text that occurs in every match, or "" if none is
// known.
func required(re *syntax.Regexp) (longest string) {
	switch re.Op {
	case syntax.OpLiteral:
		if texts, ok := expand(re); ok {
			return texts[0]
		}
	case syntax.OpCapture, syntax.OpPlus:
		return required(re.Sub[0])
	case syntax.OpConcat:
		for _, sub := range re.Sub {
			if t := required(sub); len(t) > len(longest) {
				longest = t
			}
		}
	}
	return longest
}

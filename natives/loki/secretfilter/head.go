package secretfilter

import (
	"regexp/syntax"
	"strings"
	"unicode"

	"github.com/weir-run/weir/engine/regex"
)

// maxHeads is the maximum number of beginnings of a regex that are considered.
const maxHeads = 512

// head is a possible beginning of a text that a regex matches, in lower case.
type head struct {
	text string
	all  bool // the text ends here
}

// anchor searches for a regex only at the positions of some words, with which all
// its matches begin.
type anchor struct {
	words []string
	first [256]bool // the bytes with which a word begins, in both cases
	regex func() *regex.Regexp
}

// newAnchor returns an anchor for the regex of a tree at words, which are in
// lower case. It returns nil if matches may begin with other text.
func newAnchor(tree *syntax.Regexp, words []string) *anchor {
	hs, ok := heads(tree)
	if !ok || len(words) == 0 {
		return nil
	}
	for _, h := range hs {
		if !startsWithAny(h.text, words) {
			return nil
		}
	}
	a := &anchor{words: words, regex: lazily(`\A(?:` + tree.String() + ")")}
	for _, w := range words {
		a.first[w[0]] = true
		a.first[w[0]&^0x20] = a.first[w[0]&^0x20] || 'a' <= w[0] && w[0] <= 'z'
	}
	return a
}

func startsWithAny(s string, words []string) bool {
	for _, w := range words {
		// The character before the word is not part of a word, so that \b still
		// matches after it is cut off.
		if w != "" && isWord(w[0]) && strings.HasPrefix(s, w) {
			return true
		}
	}
	return false
}

func isWord(c byte) bool {
	return c == '_' || '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}

// matches reports whether the regex may match in a line of ASCII characters. If
// it returns false, the line has no match.
func (a *anchor) matches(line string, g regex.Guard) (bool, error) {
	tries := 0
	for i := range len(line) {
		if !a.first[line[i]] {
			continue
		}
		for _, w := range a.words {
			if hasFold(line, i, w) {
				if ok, err := a.regex().Match(line[i:], g); ok || err != nil {
					return ok, err
				}
				// Each attempt may read to the end of the line.
				if tries++; tries%triesPerCheck == 0 && g.Check != nil {
					if err := g.Check(); err != nil {
						return false, err
					}
				}
				break
			}
		}
	}
	return false, nil
}

// triesPerCheck is the number of attempts of an anchor between two checks of the
// clock.
const triesPerCheck = 16

// heads returns the possible beginnings of the texts that a regex matches. ok is
// false if they are unknown or too many.
func heads(re *syntax.Regexp) (hs []head, ok bool) {
	switch re.Op {
	case syntax.OpEmptyMatch, syntax.OpWordBoundary:
		return []head{{"", true}}, true
	case syntax.OpLiteral:
		return []head{{strings.ToLower(string(re.Rune)), true}}, true
	case syntax.OpCharClass:
		return headsOfClass(re.Rune)
	case syntax.OpCapture:
		return heads(re.Sub[0])
	case syntax.OpPlus:
		return cut(heads(re.Sub[0]))
	case syntax.OpQuest, syntax.OpStar:
		hs, ok = heads(re.Sub[0])
		if re.Op == syntax.OpStar {
			hs, ok = cut(hs, ok)
		}
		return append(hs, head{"", true}), ok
	case syntax.OpRepeat:
		return headsOfRepeat(re)
	case syntax.OpAlternate:
		for _, sub := range re.Sub {
			more, ok := heads(sub)
			if hs = append(hs, more...); !ok || len(hs) > maxHeads {
				return nil, false
			}
		}
		return hs, true
	case syntax.OpConcat:
		return headsInRow(re.Sub)
	}
	return nil, false
}

// cut marks heads as incomplete.
func cut(hs []head, ok bool) ([]head, bool) {
	for i := range hs {
		hs[i].all = false
	}
	return hs, ok
}

func headsOfRepeat(re *syntax.Regexp) (hs []head, ok bool) {
	if re.Min == 0 {
		hs, ok = cut(heads(re.Sub[0]))
		return append(hs, head{"", true}), ok
	}
	return cut(heads(re.Sub[0]))
}

// headsOfClass returns the letters of a character class that has only a few.
func headsOfClass(ranges []rune) (hs []head, ok bool) {
	seen := map[rune]bool{}
	for i := 0; i < len(ranges); i += 2 {
		if ranges[i+1]-ranges[i] > 16 {
			return nil, false
		}
		for c := ranges[i]; c <= ranges[i+1]; c++ {
			if l := unicode.ToLower(c); !seen[l] {
				seen[l] = true
				hs = append(hs, head{string(l), true})
			}
		}
	}
	return hs, len(hs) <= 16
}

// headsInRow concatenates heads as long as they are complete. Any text may follow
// an incomplete head.
func headsInRow(subs []*syntax.Regexp) ([]head, bool) {
	hs := []head{{"", true}}
	for i, sub := range subs {
		next, ok := heads(sub)
		if !ok && i == 0 {
			return nil, false
		}
		if !ok {
			return cut(hs, true)
		}
		var joined []head
		open := false
		for _, h := range hs {
			if !h.all {
				joined = append(joined, h)
				continue
			}
			for _, n := range next {
				joined = append(joined, head{h.text + n.text, n.all})
				open = open || n.all
			}
		}
		if len(joined) > maxHeads {
			return cut(hs, true)
		}
		if hs = joined; !open {
			break
		}
	}
	return hs, true
}

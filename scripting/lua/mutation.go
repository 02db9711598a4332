package lua

import (
	"cmp"
	"slices"
	"strings"

	"github.com/weir-run/weir/scripting"
)

var _ scripting.Mutator = (*Language)(nil)

var grammar = scripting.Grammar{
	Swaps: map[string]string{
		"==": "~=", "~=": "==", "<": "<=", "<=": "<", ">": ">=", ">=": ">",
		"+": "-", "-": "+", "*": "/", "/": "*", "%": "*", "and": "or", "or": "and",
	},
	Keywords: map[string]bool{
		"and": true, "break": true, "do": true, "else": true, "elseif": true, "end": true, "for": true, "function": true, "goto": true, "if": true, "in": true,
		"local": true, "not": true, "or": true, "repeat": true, "return": true, "then": true, "until": true, "while": true,
	},
	Not:    "not",
	Opens:  []string{"function", "if", "do", "repeat"},
	Closes: []string{"end", "until"},
	Fields: "{",
}

// Mutations implements scripting.Mutator.
func (*Language) Mutations(f scripting.File) []scripting.Mutation {
	tokens := tokensOf(f.Text)
	out := append(grammar.Mutations(f, tokens), negations(f, tokens)...)
	out = append(out, drops(f, tokens)...)
	slices.SortStableFunc(out, func(a, b scripting.Mutation) int { return cmp.Compare(a.Start, b.Start) })
	return out
}

// negations are the conditions of if and while, negated.
func negations(f scripting.File, tokens []scripting.Token) (out []scripting.Mutation) {
	for i, t := range tokens {
		end := "then"
		switch {
		case t.Kind != scripting.TokenWord:
			continue
		case t.Text == "while":
			end = "do"
		case t.Text != "if" && t.Text != "elseif":
			continue
		}
		n := slices.IndexFunc(tokens[i:], func(t scripting.Token) bool { return t.Kind == scripting.TokenWord && t.Text == end })
		if n < 2 || !grammar.Negated(tokens[i+1:i+n]) {
			continue
		}
		from, to := tokens[i+1].At, tokens[i+n-1].End()
		out = append(out, scripting.NewMutation(f, from, to, "not ("+f.Text[from:to]+")", ""))
	}
	return out
}

// drops are the statements that are calls, assignments, return or break, dropped.
func drops(f scripting.File, tokens []scripting.Token) (out []scripting.Mutation) {
	depth := []string{}     // open blocks and brackets
	heads := map[int]bool{} // the ends of the parameters of functions
	for i, t := range tokens {
		prev := scripting.Token{}
		if i > 0 {
			prev = tokens[i-1]
		}
		if t.Kind == scripting.TokenWord && t.Text == "function" {
			heads[i+slices.IndexFunc(tokens[i:], func(t scripting.Token) bool { return t.Text == ")" })] = true
		}
		inBlock := len(depth) > 0 && depth[len(depth)-1] == "block"
		starts := prev.Line < t.Line && !continues(prev) || prev.Text == ";" || heads[i-1] ||
			prev.Kind == scripting.TokenWord && slices.Contains([]string{"then", "do", "else", "repeat"}, prev.Text)
		word := t.Kind == scripting.TokenWord && (!grammar.Keywords[t.Text] || t.Text == "break" || t.Text == "return" && inBlock)
		if starts && word && (inBlock || len(depth) == 0) {
			if end := statementEnd(tokens, i); end > i {
				code := f.Text[t.At:tokens[end-1].End()]
				out = append(out, scripting.NewMutation(f, t.At, tokens[end-1].End(), "", "drop "+scripting.Excerpt(code)))
			}
		}
		switch nesting(t) {
		case 1:
			kind := "block"
			if t.Kind == scripting.TokenSymbol {
				kind = "bracket"
			}
			depth = append(depth, kind)
		case -1:
			depth = depth[:max(0, len(depth)-1)]
		}
	}
	return out
}

// nesting is 1 for a token that opens a block or a bracket, and -1 for one that closes.
func nesting(t scripting.Token) int {
	word := t.Kind == scripting.TokenWord
	switch t.Text {
	case "(", "[", "{":
		return 1
	case ")", "]", "}":
		return -1
	}
	switch {
	case word && slices.Contains(grammar.Opens, t.Text):
		return 1
	case word && slices.Contains(grammar.Closes, t.Text):
		return -1
	}
	return 0
}

// statementEnd returns the index after the last token of the statement that begins at a
// token.
func statementEnd(tokens []scripting.Token, start int) int {
	depth := 0
	for i := start; i < len(tokens); i++ {
		t := tokens[i]
		if depth == 0 && i > start {
			switch {
			case t.Text == "end" || t.Text == "else" || t.Text == "elseif" || t.Text == "until" || t.Text == ";":
				return i
			case t.Line > tokens[i-1].Line && !continues(tokens[i-1]) && t.Kind == scripting.TokenWord && t.Text != "and" && t.Text != "or":
				return i
			}
		}
		if depth += nesting(t); depth < 0 {
			return start
		}
	}
	return len(tokens)
}

// continues reports whether the statement of a token goes on after it.
func continues(t scripting.Token) bool {
	switch t.Kind {
	case scripting.TokenSymbol:
		return t.Text != ")" && t.Text != "]" && t.Text != "}" && t.Text != "..." && t.Text != ";" && t.Text != "::"
	case scripting.TokenWord:
		return t.Text == "and" || t.Text == "or" || t.Text == "not" || t.Text == "local" || t.Text == "function" || t.Text == "for" || t.Text == "in"
	}
	return false
}

var symbols = []string{"...", "..", "==", "~=", "<=", ">=", "::"}

// Ignores implements scripting.Mutator.
func (l *Language) Ignores(f scripting.File) []scripting.Ignore { return ignoresOf(f) }

func ignoresOf(f scripting.File) []scripting.Ignore {
	return scripting.Ignores(f.Text, "--", tokensOf)
}

// tokensOf returns the tokens of a text that can be parsed.
func tokensOf(text string) (out []scripting.Token) {
	line, at := 1, 0
	for at < len(text) {
		rest := text[at:]
		n, kind, keep := 1, scripting.TokenSymbol, true
		switch c := rest[0]; {
		case strings.HasPrefix(rest, "--"):
			n, keep = 2, false
			if long := longString(rest[2:]); long > 0 {
				n += long
			} else if end := strings.IndexByte(rest, '\n'); end >= 0 {
				n = end
			} else {
				n = len(rest)
			}
		case c == ' ' || c == '\t' || c == '\r' || c == '\n':
			keep = false
		case c == '"' || c == '\'':
			kind = scripting.TokenString
			for n < len(rest) && rest[n] != c {
				if rest[n] == '\\' {
					n++
				}
				n++
			}
			n++
		case c == '[' && longString(rest) > 0:
			kind, n = scripting.TokenString, longString(rest)
		case isLetter(c):
			kind = scripting.TokenWord
			for n < len(rest) && (isLetter(rest[n]) || isDigit(rest[n])) {
				n++
			}
		case isDigit(c) || c == '.' && len(rest) > 1 && isDigit(rest[1]):
			kind = scripting.TokenNumber
			for n < len(rest) && (isLetter(rest[n]) || isDigit(rest[n]) || rest[n] == '.' && !strings.HasPrefix(rest[n:], "..") ||
				(rest[n] == '+' || rest[n] == '-') && (rest[n-1] == 'e' || rest[n-1] == 'E') && !strings.HasPrefix(rest, "0x")) {
				n++
			}
		default:
			for _, s := range symbols {
				if strings.HasPrefix(rest, s) {
					n = len(s)
					break
				}
			}
		}
		n = min(n, len(rest))
		if keep {
			out = append(out, scripting.Token{Kind: kind, Text: rest[:n], At: at, Line: line})
		}
		line += strings.Count(rest[:n], "\n")
		at += n
	}
	return out
}

func isLetter(c byte) bool { return c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' }

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

// longString returns the length of a string in long brackets, or 0.
func longString(s string) int {
	if !strings.HasPrefix(s, "[") {
		return 0
	}
	level := 1
	for level < len(s) && s[level] == '=' {
		level++
	}
	if level >= len(s) || s[level] != '[' {
		return 0
	}
	closing := "]" + s[1:level] + "]"
	end := strings.Index(s, closing)
	if end < 0 {
		return 0
	}
	return end + len(closing)
}

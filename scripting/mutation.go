package scripting

import (
	"slices"
	"strconv"
	"strings"
)

// Mutation is a small change of a script. A good test notices it.
type Mutation struct {
	Start, End int    // the bytes of the text that With replaces
	With       string // may be empty
	Line, Col  int
	Change     string // for people: == → ~=
}

// Apply returns the changed text.
func (m Mutation) Apply(text string) string { return text[:m.Start] + m.With + text[m.End:] }

// Mutator is a Language that finds mutations of its scripts.
type Mutator interface {
	Language
	// Mutations returns the mutations of a file that compiles, in order of position.
	// Some of them may not compile.
	Mutations(f File) []Mutation
	// Ignores returns the comments weir:ignore of a file that compiles.
	Ignores(f File) []Ignore
}

// TokenKind is the kind of a Token.
type TokenKind uint8

// The kinds of tokens. TokenOther is a part of a template or a regular expression.
const (
	TokenWord TokenKind = iota
	TokenNumber
	TokenString
	TokenSymbol
	TokenOther
)

// Token is a part of a script, without blanks and comments.
type Token struct {
	Kind TokenKind
	Text string
	At   int // its byte in the text
	Line int
}

// End returns the byte after the token.
func (t Token) End() int { return t.At + len(t.Text) }

// Grammar is what mutations need to know of a language.
type Grammar struct {
	Swaps    map[string]string // binary operators, and what they become
	Keywords map[string]bool   // words that are no operands
	Not      string            // the operator
	// Opens and Closes are words that begin and end a block.
	Opens, Closes []string
	// Fields is the bracket in which = and , belong to fields, whose strings stay: they
	// are mostly documentation.
	Fields string
}

// quietCalls are functions whose strings are for people, or name modules.
var quietCalls = []string{"require", "import", "error", "Error", "TypeError", "RangeError", "debug", "info", "warn", "log"}

// helpCalls are functions of ctx.metrics, whose strings after the name are help texts.
var helpCalls = []string{"counter", "gauge", "histogram"}

// largeNumber is where numbers begin that are limits, whose exact value no test
// depends on.
const largeNumber = 1000

// limitName reports whether a field is a limit, such as max of a state or maxRecords of a
// batch: a test that fills it would depend on its exact value only.
func limitName(name string) bool { return strings.HasPrefix(name, "max") }

// maxMutated is how many characters of a change are shown.
const maxMutated = 60

// NewMutation returns a mutation of f that replaces text[start:end].
func NewMutation(f File, start, end int, with, change string) Mutation {
	before := f.Text[:start]
	m := Mutation{Start: start, End: end, With: with, Line: 1 + strings.Count(before, "\n"), Change: change}
	m.Col = start - strings.LastIndexByte(before, '\n')
	if change == "" {
		m.Change = Excerpt(f.Text[start:end]) + " → " + Excerpt(with)
	}
	return m
}

// Excerpt returns the beginning of code in one line.
func Excerpt(code string) string {
	short := []rune(strings.Join(strings.Fields(code), " "))
	if len(short) > maxMutated {
		short = append(short[:maxMutated-1], '…')
	}
	return string(short)
}

// Mutations returns the mutations of operators and constants, which all languages have.
func (g Grammar) Mutations(f File, tokens []Token) (out []Mutation) {
	type open struct{ bracket, call string }
	var stack []open
	for i, t := range tokens {
		prev, next := Token{}, Token{}
		if i > 0 {
			prev = tokens[i-1]
		}
		if i+1 < len(tokens) {
			next = tokens[i+1]
		}
		in := open{}
		if len(stack) > 0 {
			in = stack[len(stack)-1]
		}
		with := ""
		switch t.Kind {
		case TokenSymbol, TokenWord:
			switch {
			case t.Text == "(" || t.Text == "[" || t.Text == "{" || t.Text == "${":
				o := open{bracket: t.Text}
				if t.Text == "(" && prev.Kind == TokenWord {
					o.call = prev.Text
				}
				stack = append(stack, o)
			case (t.Text == ")" || t.Text == "]" || t.Text == "}") && len(stack) > 0:
				stack = stack[:len(stack)-1]
			case slices.Contains(g.Opens, t.Text):
				stack = append(stack, open{bracket: t.Text})
			case slices.Contains(g.Closes, t.Text) && len(stack) > 0:
				stack = stack[:len(stack)-1]
			case t.Text == "true" && prev.Text != ".":
				with = "false"
			case t.Text == "false" && prev.Text != ".":
				with = "true"
			case g.Swaps[t.Text] != "" && (g.Operand(prev) || t.Text == "++" || t.Text == "--"):
				with = g.Swaps[t.Text]
			case t.Text == g.Not && prev.Text != ".":
				out = append(out, NewMutation(f, t.At, next.At, "", "drop "+Excerpt(f.Text[t.At:next.End()])+" → "+next.Text))
			}
		case TokenNumber:
			if field := prev.Text == ":" || prev.Text == "=" && in.bracket == g.Fields; field && i > 1 && limitName(tokens[i-2].Text) {
				continue
			}
			with = "(" + t.Text + " + 1)"
			if n, err := strconv.Atoi(t.Text); err == nil {
				with = strconv.Itoa(n + 1)
				if n >= largeNumber {
					with = "1"
				}
			}
		case TokenString:
			if g.telling(prev, next, in.bracket, in.call) {
				with = `""`
				if len(t.Text) == 2 {
					with = `"mutated"`
				}
			}
		}
		if with != "" {
			out = append(out, NewMutation(f, t.At, t.End(), with, ""))
		}
	}
	return out
}

// telling reports whether the program depends on a string, rather than people.
func (g Grammar) telling(prev, next Token, bracket, call string) bool {
	compared := func(t Token) bool {
		return t.Kind == TokenSymbol && slices.Contains([]string{"==", "~=", "===", "!==", "!=", "..", "+"}, t.Text)
	}
	switch {
	case compared(prev) || compared(next):
		return !slices.Contains(quietCalls, call)
	case prev.Kind == TokenWord && prev.Text == "return":
		return true
	case prev.Text == "=":
		return bracket != g.Fields
	case prev.Text == ",":
		return bracket == "(" && !slices.Contains(quietCalls, call) && !slices.Contains(helpCalls, call)
	case prev.Text == "(":
		return bracket == "(" && !slices.Contains(quietCalls, call)
	case prev.Kind == TokenWord && !g.Keywords[prev.Text]: // Lua: f "x"
		return !slices.Contains(quietCalls, prev.Text)
	}
	return false
}

// Operand reports whether a token can be the end of an operand.
func (g Grammar) Operand(t Token) bool {
	switch t.Kind {
	case TokenWord:
		return t.Text != "" && !g.Keywords[t.Text]
	case TokenSymbol:
		return t.Text == ")" || t.Text == "]" || t.Text == "}" || t.Text == "..."
	}
	return true
}

// Negated reports whether to negate a condition gives another mutation than those of
// Mutations: that of a single comparison or negation does not.
func (g Grammar) Negated(condition []Token) bool {
	equalities := 0
	for _, t := range condition {
		switch t.Text {
		case "and", "or", "&&", "||":
			return true
		case "==", "~=", "===", "!==", "!=", g.Not:
			equalities++
		}
	}
	return equalities != 1
}

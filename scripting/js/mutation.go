package js

import (
	"cmp"
	"path"
	"slices"
	"strings"

	"github.com/evanw/esbuild/pkg/api"

	"github.com/weir-run/weir/scripting"
)

var _ scripting.Mutator = (*Language)(nil)

var grammar = scripting.Grammar{
	Swaps: map[string]string{
		"===": "!==", "!==": "===", "==": "!=", "!=": "==", "<": "<=", "<=": "<", ">": ">=", ">=": ">",
		"+": "-", "-": "+", "*": "/", "/": "*", "%": "*", "**": "*", "+=": "-=", "-=": "+=", "*=": "/=", "/=": "*=",
		"++": "--", "--": "++", "&&": "||", "||": "&&", "??": "&&", "&": "|", "|": "&", "<<": ">>", ">>": "<<",
	},
	Keywords: map[string]bool{
		"await": true, "break": true, "case": true, "const": true, "continue": true, "default": true, "delete": true, "do": true, "else": true, "export": true,
		"extends": true, "for": true, "function": true, "if": true, "import": true, "in": true, "instanceof": true, "let": true, "new": true, "of": true, "return": true,
		"switch": true, "throw": true, "try": true, "typeof": true, "var": true, "void": true, "while": true, "yield": true,
	},
	Not: "!",
}

// Mutations implements scripting.Mutator.
func (*Language) Mutations(f scripting.File) []scripting.Mutation {
	tokens := tokensOf(f.Text)
	all := append(grammar.Mutations(f, tokens), conditions(f, tokens)...)
	all = append(all, drops(f, tokens)...)
	slices.SortStableFunc(all, func(a, b scripting.Mutation) int { return cmp.Compare(a.Start, b.Start) })
	// A change of types changes no code.
	same, _ := codeOf(f.Name, f.Text)
	return slices.DeleteFunc(all, func(m scripting.Mutation) bool {
		code, ok := codeOf(f.Name, m.Apply(f.Text))
		return !ok || code == same
	})
}

// codeOf is a text without types.
func codeOf(name, text string) (code string, ok bool) {
	loader := api.LoaderJS
	if path.Ext(name) == ".ts" {
		loader = api.LoaderTS
	}
	r := api.Transform(text, api.TransformOptions{Loader: loader, Target: api.ES2022, MinifyWhitespace: true, LogLevel: api.LogLevelSilent})
	return string(r.Code), len(r.Errors) == 0
}

// conditions are the conditions of if, while and ?:, changed.
func conditions(f scripting.File, tokens []scripting.Token) (out []scripting.Mutation) {
	for i, t := range tokens {
		switch {
		case t.Kind == scripting.TokenWord && (t.Text == "if" || t.Text == "while") && i+1 < len(tokens) && tokens[i+1].Text == "(":
			end := closing(tokens, i+1)
			if end < i+3 || !grammar.Negated(tokens[i+2:end]) {
				continue
			}
			from, to := tokens[i+2].At, tokens[end-1].End()
			out = append(out, scripting.NewMutation(f, from, to, "!("+f.Text[from:to]+")", ""))
		case t.Kind == scripting.TokenSymbol && t.Text == "?":
			for _, with := range []string{"|| true ", "&& false "} {
				out = append(out, scripting.NewMutation(f, t.At, t.At, with, "? → "+with+"?"))
			}
		}
	}
	return out
}

// closing returns the index of the bracket that closes the one at an index, or -1.
func closing(tokens []scripting.Token, open int) int {
	depth := 0
	for i := open; i < len(tokens); i++ {
		if depth += bracketDepth(tokens[i]); depth == 0 {
			return i
		}
	}
	return -1
}

func bracketDepth(t scripting.Token) int {
	if t.Kind != scripting.TokenSymbol {
		return 0
	}
	switch t.Text {
	case "(", "[", "{", "${":
		return 1
	case ")", "]", "}":
		return -1
	}
	return 0
}

// declaring are words with which no statement begins that can be dropped.
var declaring = []string{
	"async", "case", "class", "const", "declare", "default", "do", "else", "enum", "export", "for", "function", "if", "import", "interface",
	"let", "switch", "try", "type", "var", "while", "catch", "finally",
}

// drops are the statements that end with a semicolon, without declarations, dropped.
func drops(f scripting.File, tokens []scripting.Token) (out []scripting.Mutation) {
	var open []string
	for i, t := range tokens {
		switch bracketDepth(t) {
		case 1:
			open = append(open, t.Text)
		case -1:
			open = open[:max(0, len(open)-1)]
		}
		if t.Kind != scripting.TokenWord || slices.Contains(declaring, t.Text) || len(open) > 0 && open[len(open)-1] == "(" {
			continue
		}
		if i > 0 && !slices.Contains([]string{";", "{", "}", ")", "else", "=>"}, tokens[i-1].Text) {
			continue
		}
		depth := 0
		for j := i; j < len(tokens); j++ {
			if depth += bracketDepth(tokens[j]); depth < 0 {
				break
			}
			if depth == 0 && tokens[j].Text == ";" && tokens[j].Kind == scripting.TokenSymbol {
				out = append(out, scripting.NewMutation(f, t.At, tokens[j].End(), ";", "drop "+scripting.Excerpt(f.Text[t.At:tokens[j].End()])))
				break
			}
		}
	}
	return out
}

var punctuators = []string{
	">>>=", "...", "===", "!==", "**=", "<<=", ">>=", ">>>", "&&=", "||=", "??=", "=>", "==", "!=", "<=", ">=", "&&", "||", "??", "?.", "++", "--",
	"+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "**", "<<", ">>",
}

// Ignores implements scripting.Mutator.
func (l *Language) Ignores(f scripting.File) []scripting.Ignore { return ignoresOf(f) }

func ignoresOf(f scripting.File) []scripting.Ignore {
	return scripting.Ignores(f.Text, "//", tokensOf)
}

// tokensOf returns the tokens of a text that can be parsed.
func tokensOf(text string) (out []scripting.Token) {
	line, at := 1, 0
	var templates []int // for each open template, the depth of braces in its code
	for at < len(text) {
		rest := text[at:]
		n, kind, keep := 1, scripting.TokenSymbol, true
		prev := scripting.Token{}
		if len(out) > 0 {
			prev = out[len(out)-1]
		}
		switch c := rest[0]; {
		case strings.HasPrefix(rest, "//"):
			if n = strings.IndexByte(rest, '\n'); n < 0 {
				n = len(rest)
			}
			keep = false
		case strings.HasPrefix(rest, "/*"):
			n, keep = strings.Index(rest[2:], "*/")+4, false
		case c == ' ' || c == '\t' || c == '\r' || c == '\n':
			keep = false
		case c == '"' || c == '\'':
			kind, n = scripting.TokenString, quoted(rest, string(c))
		case c == '`' || c == '}' && len(templates) > 0 && templates[len(templates)-1] == 0:
			from := 0
			if c == '}' {
				out = append(out, scripting.Token{Kind: scripting.TokenSymbol, Text: "}", At: at, Line: line})
				templates, from = templates[:len(templates)-1], 1
			}
			n = quoted(rest, "`", "${")
			chunk, more := strings.CutSuffix(rest[from:n], "${")
			out = append(out, scripting.Token{Kind: scripting.TokenOther, Text: chunk, At: at + from, Line: line})
			line += strings.Count(chunk, "\n")
			if more {
				templates = append(templates, 0)
				out = append(out, scripting.Token{Kind: scripting.TokenSymbol, Text: "${", At: at + n - 2, Line: line})
			}
			at += n
			continue
		case c == '/' && (len(out) == 0 || !grammar.Operand(prev)):
			kind, n = scripting.TokenOther, regexpLength(rest)
		case letter(c):
			kind = scripting.TokenWord
			for n < len(rest) && (letter(rest[n]) || digit(rest[n])) {
				n++
			}
		case digit(c) || c == '.' && len(rest) > 1 && digit(rest[1]):
			kind = scripting.TokenNumber
			for n < len(rest) && (letter(rest[n]) || digit(rest[n]) || rest[n] == '.' ||
				(rest[n] == '+' || rest[n] == '-') && (rest[n-1] == 'e' || rest[n-1] == 'E') && !strings.HasPrefix(rest, "0x")) {
				n++
			}
			if rest[n-1] == 'n' {
				kind = scripting.TokenOther // a BigInt
			}
		default:
			for _, s := range punctuators {
				if strings.HasPrefix(rest, s) {
					n = len(s)
					break
				}
			}
			if len(templates) > 0 {
				templates[len(templates)-1] += map[string]int{"{": 1, "}": -1}[rest[:n]]
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

func letter(c byte) bool {
	return c == '_' || c == '$' || c == '#' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= 0x80
}

func digit(c byte) bool { return c >= '0' && c <= '9' }

// quoted returns the length of what begins with a byte and goes up to one of ends.
func quoted(s string, ends ...string) int {
	for i := 1; i < len(s); i++ {
		if s[i] == '\\' {
			i++
			continue
		}
		for _, end := range ends {
			if strings.HasPrefix(s[i:], end) {
				return i + len(end)
			}
		}
	}
	return len(s)
}

// regexpLength returns the length of a regular expression with its flags.
func regexpLength(s string) int {
	class := false
	for i := 1; i < len(s); i++ {
		switch {
		case s[i] == '\\':
			i++
		case s[i] == '[':
			class = true
		case s[i] == ']':
			class = false
		case s[i] == '/' && !class:
			for i++; i < len(s) && letter(s[i]); i++ {
			}
			return i
		}
	}
	return len(s)
}

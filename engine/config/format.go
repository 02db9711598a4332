package config

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/grafana/alloy/syntax/ast"
	"github.com/grafana/alloy/syntax/parser"
	"github.com/grafana/alloy/syntax/printer"
	"github.com/grafana/alloy/syntax/scanner"
	"github.com/grafana/alloy/syntax/token"
)

// Format returns a config file as formatted by `weir fmt`: the same statements
// and comments, in Alloy's layout, with a line break at the end. name is the
// file name in the diagnostics. If there are syntax errors, it returns no text.
func Format(name, text string) (string, Diagnostics) {
	if _, _, ds := parseFile(name, text); len(ds) > 0 {
		return "", ds
	}
	file, err := parser.ParseFile(name, []byte(text))
	if err != nil {
		return "", fromSyntax(err, Span{File: name})
	}
	out, err := layOut(file)
	if err == nil && !sameSubstance(name, text, out) {
		// The printer also strips white space from the lines of raw strings.
		restore := hideRaw(file, text)
		if out, err = layOut(file); err == nil {
			out = restore(out)
		}
	}
	switch {
	case err != nil:
		return "", Diagnostics{{Span: Span{File: name}, Msg: fmt.Sprintf("cannot format: %v", err)}}
	case !sameSubstance(name, text, out):
		return "", Diagnostics{{Span: Span{File: name}, Msg: "cannot format: the result would not mean the same"}}
	}
	return out, nil
}

// layOut prints a file. It recovers from panics of the third-party printer, so
// that they do not end weir.
func layOut(file *ast.File) (out string, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the printer panicked: %v", p)
		}
	}()
	var b bytes.Buffer
	if err := printer.Fprint(&b, file); err != nil {
		return "", err
	}
	if out = strings.TrimSpace(b.String()); out != "" {
		out += "\n"
	}
	return out, nil
}

// hideRaw replaces each raw string in file with a word. restore puts the raw
// strings back into the printed text.
func hideRaw(file *ast.File, text string) (restore func(string) string) {
	mark := "raw"
	for strings.Contains(text, mark) {
		mark += "x"
	}
	var words []string
	ast.Walk(visitor(func(n ast.Node) {
		if l, ok := n.(*ast.LiteralExpr); ok && strings.HasPrefix(l.Value, "`") {
			word := fmt.Sprintf("%q", fmt.Sprint(mark, len(words)/2, "."))
			words = append(words, word, l.Value)
			l.Value = word
		}
	}), file)
	return strings.NewReplacer(words...).Replace
}

// sameSubstance reports whether a text and its formatted version have the same
// tokens, except for line ends and commas, and the same comments. It is a
// safety check, because the formatted text replaces the file.
func sameSubstance(name, text, out string) bool {
	return slices.Equal(substance(name, text), substance(name, out))
}

// substance returns what formatting must not change: all comments, and all
// tokens except line ends and commas, which it may add and remove.
func substance(name, text string) (out []string) {
	f := token.NewFile(name)
	s := scanner.New(f, []byte(text), nil, scanner.IncludeComments)
	for {
		_, tok, lit := s.Scan()
		switch tok {
		case token.EOF:
			return out
		case token.TERMINATOR, token.COMMA:
		case token.COMMENT:
			// The lines of a comment may be indented differently.
			for line := range strings.Lines(lit) {
				out = append(out, strings.TrimSpace(line))
			}
		default:
			out = append(out, fmt.Sprint(tok, " ", lit))
		}
	}
}

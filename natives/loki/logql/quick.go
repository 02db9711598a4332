//go:build !nologql

package logql

import (
	"slices"
	"strings"
	"text/template/parse"
	"unicode/utf8"
	"unsafe"

	"github.com/grafana/loki/v3/pkg/logql/log"
	"github.com/grafana/loki/v3/pkg/logql/log/jsonexpr"
	"github.com/grafana/loki/v3/pkg/logql/syntax"
	"github.com/grafana/loki/v3/pkg/logqlmodel"
)

// replaceStages replaces common stages in their simple form by faster ones with
// the same result.
func replaceStages(stages []log.Stage, exprs syntax.MultiStageExpr) []log.Stage {
	var members []*syntax.JSONExpressionParserExpr // in the order of their stages
	for _, e := range exprs {
		if e, ok := e.(*syntax.JSONExpressionParserExpr); ok {
			members = append(members, e)
		}
	}
	out := slices.Clone(stages)
	for i, s := range stages {
		switch s := s.(type) {
		case *log.JSONExpressionParser:
			if len(members) == 0 {
				continue
			}
			if quick := newJSONMembers(s, members[0].Expressions); quick != nil {
				out[i] = quick
			}
			members = members[1:]
		case *log.LineFormatter:
			if quick := newPlainFormat(s); quick != nil {
				out[i] = quick
			}
		}
	}
	return out
}

// plainFormat is a line_format whose template consists of text and labels.
type plainFormat struct {
	*log.LineFormatter
	parts []formatPart
	buf   []byte
}

// formatPart is a label if it has a name, otherwise text.
type formatPart struct{ label, text string }

// newPlainFormat returns nil for other templates, and for those that consist of
// one label, which are already fast in Loki.
func newPlainFormat(f *log.LineFormatter) *plainFormat {
	if f.Tree == nil || f.Root == nil || len(f.Root.Nodes) < 2 {
		return nil
	}
	p := &plainFormat{LineFormatter: f}
	for _, n := range f.Root.Nodes {
		switch n := n.(type) {
		case *parse.TextNode:
			p.parts = append(p.parts, formatPart{text: string(n.Text)})
		case *parse.ActionNode:
			name, ok := onlyField(n.Pipe)
			if !ok || name == logqlmodel.ErrorLabel || name == logqlmodel.ErrorDetailsLabel {
				return nil
			}
			p.parts = append(p.parts, formatPart{label: name})
		default:
			return nil
		}
	}
	return p
}

// onlyField returns the field if it is the only content of a pipe.
func onlyField(p *parse.PipeNode) (name string, ok bool) {
	if len(p.Decl) > 0 || len(p.Cmds) != 1 || len(p.Cmds[0].Args) != 1 {
		return "", false
	}
	f, ok := p.Cmds[0].Args[0].(*parse.FieldNode)
	if !ok || len(f.Ident) != 1 {
		return "", false
	}
	return f.Ident[0], true
}

// Process returns the line that the template creates from the labels.
func (p *plainFormat) Process(_ int64, _ []byte, b *log.LabelsBuilder) ([]byte, bool) {
	p.buf = p.buf[:0]
	for _, part := range p.parts {
		if part.label == "" {
			p.buf = append(p.buf, part.text...)
			continue
		}
		v, _ := b.Get(part.label)
		p.buf = append(p.buf, v...)
	}
	return p.buf, true
}

// jsonMembers is json with names of members of the object. It parses lines
// without unusual content, as far as Loki's parser would read them, and leaves
// all other lines to Loki's parser.
type jsonMembers struct {
	*log.JSONExpressionParser
	ids, names []string
	found      []foundMember
}

type foundMember struct {
	there bool
	text  string
}

// newJSONMembers returns nil if the expressions are more than names, or if the
// result depends on their order.
func newJSONMembers(p *log.JSONExpressionParser, exprs []log.LabelExtractionExpr) *jsonMembers {
	j := &jsonMembers{JSONExpressionParser: p}
	for _, e := range exprs {
		way, err := jsonexpr.Parse(e.Expression, false)
		if err != nil || len(way) != 1 {
			return nil
		}
		name, ok := way[0].(string)
		if !ok || name == "" || name[0] == '[' || slices.Contains(j.names, name) ||
			slices.Contains(j.ids, e.Identifier) || strings.HasSuffix(e.Identifier, "_extracted") {
			return nil
		}
		j.ids, j.names = append(j.ids, e.Identifier), append(j.names, name)
	}
	j.found = make([]foundMember, len(j.ids))
	return j
}

// Process sets the labels. Their values alias the line, which nobody writes to.
func (j *jsonMembers) Process(t int64, line []byte, b *log.LabelsBuilder) ([]byte, bool) {
	if b.ParserLabelHints().NoLabels() {
		return line, true
	}
	clear(j.found)
	found, ok := j.find(unsafe.String(unsafe.SliceData(line), len(line)))
	if !ok {
		return j.JSONExpressionParser.Process(t, line, b)
	}
	for i, f := range j.found {
		if f.there {
			id := j.ids[i]
			if b.BaseHas(id) || b.HasInCategory(id, log.StructuredMetadataLabel) {
				id += "_extracted"
			}
			b.Set(log.ParsedLabel, id, f.text)
		}
	}
	if found == len(j.ids) {
		return line, true
	}
	for _, id := range j.ids {
		if _, ok := b.Get(id); !ok {
			b.Set(log.ParsedLabel, id, "")
		}
	}
	return line, true
}

// find finds the members, the first of each name. ok is false if the line needs
// Loki's parser.
func (j *jsonMembers) find(s string) (found int, ok bool) {
	if s == "" || s[0] != '{' {
		return 0, false
	}
	i := space(s, 1)
	if i < len(s) && s[i] == '}' {
		return 0, space(s, i+1) == len(s)
	}
	for {
		if i >= len(s) || s[i] != '"' {
			return 0, false
		}
		end := quote(s, i+1)
		if end < 0 { // not found, or escaped
			return 0, false
		}
		at := slices.Index(j.names, s[i+1:end])
		if i = space(s, end+1); i >= len(s) || s[i] != ':' {
			return 0, false
		}
		from := space(s, i+1)
		if i = skipped(s, from); i < 0 {
			return 0, false
		}
		if at >= 0 && !j.found[at].there {
			text, ok := asLabel(s[from:i])
			if !ok {
				return 0, false
			}
			j.found[at] = foundMember{true, text}
			if found++; found == len(j.ids) {
				return found, true // Loki's parser does not read the rest either
			}
		}
		if i = space(s, i); i >= len(s) {
			return 0, false
		}
		switch s[i] {
		case ',':
			i = space(s, i+1)
		case '}':
			return found, space(s, i+1) == len(s)
		default:
			return 0, false
		}
	}
}

// space returns the end of the white space at i.
func space(s string, i int) int {
	for i < len(s) && (s[i] == ' ' || s[i] == '\t' || s[i] == '\n' || s[i] == '\r') {
		i++
	}
	return i
}

// quote returns the position of the closing quote, or -1 if there is none or a
// backslash precedes it.
func quote(s string, i int) int {
	n := strings.IndexByte(s[i:], '"')
	if n < 0 || strings.IndexByte(s[i:i+n], '\\') >= 0 {
		return -1
	}
	return i + n
}

// skipped returns the end of the value at i, or -1 if it is not certain.
func skipped(s string, i int) int {
	if i >= len(s) {
		return -1
	}
	switch s[i] {
	case '"':
		for i++; i < len(s); i++ {
			switch s[i] {
			case '"':
				return i + 1
			case '\\':
				i++
			}
		}
		return -1
	case '{', '[':
		return nested(s, i)
	}
	from := i
	for i < len(s) && (s[i] == '-' || s[i] == '+' || s[i] == '.' || '0' <= s[i] && s[i] <= '9' || 'a' <= s[i]|0x20 && s[i]|0x20 <= 'z') {
		i++
	}
	if i == from || i < len(s) && strings.IndexByte(" \t\n\r,}]", s[i]) < 0 {
		return -1
	}
	return i
}

// nested is skipped for objects and lists.
func nested(s string, i int) int {
	var room [64]byte
	open := room[:0] // the brackets that close the open ones
	for i < len(s) {
		switch c := s[i]; c {
		case '\\':
			return -1
		case '"':
			if i = quote(s, i+1); i < 0 {
				return -1
			}
		case '{', '[':
			if len(open) == cap(open) {
				return -1
			}
			open = append(open, c+2)
		case '}', ']':
			if open[len(open)-1] != c {
				return -1
			}
			if open = open[:len(open)-1]; len(open) == 0 {
				return i + 1
			}
		}
		i++
	}
	return -1
}

// asLabel returns the label value for a JSON value.
func asLabel(s string) (text string, ok bool) {
	switch c := s[0]; {
	case c == '"':
		s = s[1 : len(s)-1]
		if strings.IndexByte(s, '\\') >= 0 {
			s, ok = unescaped(s)
			return s, ok && isText(s)
		}
		return s, isText(s)
	case c == '{':
		return s, true
	case c == '[':
		return s, isText(s)
	case s == "null":
		return "", true
	case s == "true", s == "false", c == '-', '0' <= c && c <= '9':
		return s, true
	}
	return "", false
}

// isText reports whether s is valid UTF-8 without the replacement character,
// which Loki replaces.
func isText(s string) bool { return !strings.ContainsRune(s, utf8.RuneError) }

// plainEscapes are the escapes of JSON that consist of one letter.
var plainEscapes = [256]byte{'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t'}

// unescaped replaces these escapes. ok is false if there are other escapes.
func unescaped(s string) (_ string, ok bool) {
	var b strings.Builder
	b.Grow(len(s))
	for {
		at := strings.IndexByte(s, '\\')
		if at < 0 {
			b.WriteString(s)
			return b.String(), true
		}
		c := plainEscapes[s[at+1]] // a text never ends with a backslash
		if c == 0 {
			return "", false
		}
		b.WriteString(s[:at])
		b.WriteByte(c)
		s = s[at+2:]
	}
}

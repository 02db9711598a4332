package config

import (
	"cmp"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/grafana/alloy/syntax/ast"
	"github.com/grafana/alloy/syntax/parser"
	"github.com/grafana/alloy/syntax/scanner"
	"github.com/grafana/alloy/syntax/token"

	"github.com/weir-run/weir/engine/component"
)

// Masker hides secrets in the text of configs: literals in arguments that are secrets,
// headers or queries, values whose names are those of secrets, every other place where the
// same secrets are written, and what component.HideURLs hides. In a statement with a syntax
// error, it hides all strings. The lines do not move, so positions stay valid.
type Masker struct {
	// Args returns a pointer to the arguments of a block, or nil if the block is not known.
	Args func(block string) any
	// Secrets are values that are hidden wherever they are written.
	Secrets []string
}

// minSecret is the length in bytes of the shortest secret that is hidden wherever it is
// written. Shorter ones are parts of other words.
const minSecret = 4

// secretNames are names of attributes, keys and arguments of modules whose values are
// hidden although their type is not that of a secret.
const secretNames = `(?i:passw|passphrase|secret|token|credential|api_?key|access_?key|private_?key|key_pem|authorization|bearer|cookie)`

var (
	secretName = regexp.MustCompile(secretNames)
	// secretLine is an assignment in a comment, or in a statement with syntax errors.
	secretLine = regexp.MustCompile(`(?m)(\b\w*` + secretNames + `\w*"?[ \t]*=[ \t]*)([^\n]+)`)
	// quoted is a string, or a word whose first quote is missing.
	quoted  = regexp.MustCompile(`[^\s="{\[(,]*"(?:[^"\\\n]|\\.)*"?`)
	rawText = regexp.MustCompile("`[^`]*`?")
)

// Mask returns the texts of files, by path, without secrets. hide hides the secrets that
// are in the files in other texts, such as messages about them.
func (m Masker) Mask(files map[string]string) (masked map[string]string, hide func(string) string) {
	s := &masking{Masker: m, values: map[string]bool{}}
	for _, v := range m.Secrets {
		s.add(v)
	}
	names := slices.Sorted(maps.Keys(files))
	for _, name := range names { // what is a secret in one file may be written in another
		s.text(files[name])
	}
	s.order()
	masked = map[string]string{}
	for _, name := range names {
		masked[name] = s.text(files[name])
	}
	return masked, s.hide
}

// masking is a call of Mask.
type masking struct {
	Masker
	values  map[string]bool
	ordered []string // the longest first
}

func (s *masking) add(secret string) {
	if len(secret) >= minSecret {
		s.values[secret] = true
	}
}

func (s *masking) order() {
	s.ordered = slices.SortedFunc(maps.Keys(s.values), func(a, b string) int {
		return cmp.Or(len(b)-len(a), strings.Compare(a, b))
	})
}

// hide hides the known secrets in a text that is no config.
func (s *masking) hide(text string) string {
	for _, v := range s.ordered {
		text = strings.ReplaceAll(text, v, redacted)
	}
	return component.HideURLs(text)
}

// piece is a part of a text, and what to write instead.
type piece struct {
	start, end int
	instead    string
}

// text masks a file, and notes the secrets in it.
func (s *masking) text(text string) string {
	if notText("", text) != nil {
		return "(this is not UTF-8 text)"
	}
	marks := marks{s: s, at: map[int]mark{}}
	var broken []statement
	stmts, ds := scan("", text)
	if len(ds) > 0 { // it is nested too deeply
		broken, stmts = []statement{{end: len(text)}}, nil
	}
	for _, stmt := range stmts {
		file, err := parser.ParseFile("", []byte(text[stmt.start:stmt.end]))
		if err != nil {
			broken = append(broken, stmt)
			continue
		}
		marks.base = stmt.start
		marks.blocks(file.Body)
	}
	return replace(text, append(s.lexemes(text, marks.at, broken), s.broken(text, broken)...))
}

// replace writes pieces, which do not overlap, into a text.
func replace(text string, pieces []piece) string {
	slices.SortFunc(pieces, func(a, b piece) int { return a.start - b.start })
	var out strings.Builder
	at := 0
	for _, p := range pieces {
		out.WriteString(text[at:p.start])
		out.WriteString(p.instead)
		at = p.end
	}
	out.WriteString(text[at:])
	return out.String()
}

// lexemes returns what to write instead of literals and comments outside of broken
// statements.
func (s *masking) lexemes(text string, marked map[int]mark, broken []statement) (pieces []piece) {
	f := token.NewFile("")
	sc := scanner.New(f, []byte(text), nil, scanner.IncludeComments)
	for {
		pos, tok, lit := sc.Scan()
		if tok == token.EOF {
			return pieces
		}
		if tok == token.TERMINATOR {
			continue
		}
		p := piece{start: pos.Offset()}
		if slices.ContainsFunc(broken, func(b statement) bool { return b.start <= p.start && p.start < b.end }) {
			continue
		}
		p.end = min(p.start+len(lit), len(text))
		is := marked[p.start]
		switch {
		case tok == token.COMMENT:
			p.end = endOfComment(text, p.start)
			p.instead = s.hide(secretLine.ReplaceAllString(text[p.start:p.end], "${1}"+redacted))
			if strings.HasPrefix(text[p.start:], "/*") && !strings.HasSuffix(p.instead, "*/") {
				p.instead += " */"
			}
		case tok == token.STRING:
			p.instead = s.literal(lit, is)
		case is == markSecret && (tok == token.NUMBER || tok == token.FLOAT || tok == token.IDENT):
			s.add(lit)
			p.instead = strconv.Quote(redacted)
		default:
			continue
		}
		pieces = append(pieces, p)
	}
}

func endOfComment(text string, start int) int {
	end, more := "\n", 0
	if strings.HasPrefix(text[start:], "/*") {
		end, more = "*/", 2
	}
	if n := strings.Index(text[start:], end); n >= 0 {
		return start + n + more
	}
	return len(text)
}

// literal returns what to write instead of a string.
func (s *masking) literal(lit string, is mark) string {
	raw := strings.HasPrefix(lit, "`")
	value, err := strconv.Unquote(lit)
	if err != nil {
		value = strings.Trim(lit, "\"`")
	}
	shown := value
	switch {
	case value == "":
	case is == markConfig:
		shown = s.text(value)
	case is == markSecret, is == markHidden, s.isSecret(value, is):
		if is == markSecret {
			s.add(value)
		}
		shown = redacted
		if raw {
			shown += strings.Repeat("\n", strings.Count(value, "\n"))
		}
	default:
		shown = component.HideURLs(value)
	}
	switch {
	case shown == value:
		return lit
	case raw && !strings.Contains(shown, "`"):
		return "`" + shown + "`"
	}
	return strconv.Quote(shown)
}

// isSecret reports whether a string contains a secret, or is a part of one that is put
// together.
func (s *masking) isSecret(value string, is mark) bool {
	return slices.ContainsFunc(s.ordered, func(v string) bool {
		return strings.Contains(value, v) || is == markPart && len(value) >= minSecret && strings.Contains(v, value)
	})
}

// broken masks statements with syntax errors: all strings but labels, and what is
// assigned to a name that is one of a secret.
func (s *masking) broken(text string, broken []statement) (pieces []piece) {
	for _, b := range broken {
		part := text[b.start:b.end]
		if strings.Count(part, "`")%2 == 1 { // it is not known which strings are open
			first := strings.IndexByte(part, '`')
			part = part[:first] + "`" + redacted + strings.Repeat("\n", strings.Count(part[first:], "\n"))
		}
		part = rawText.ReplaceAllStringFunc(part, func(raw string) string {
			return "`" + redacted + strings.Repeat("\n", strings.Count(raw, "\n")) + "`"
		})
		var strs []piece
		for _, at := range quoted.FindAllStringIndex(part, -1) {
			if rest := strings.TrimLeft(part[at[1]:], " \t"); !strings.HasPrefix(rest, "{") && part[at[0]:at[1]] != `""` {
				strs = append(strs, piece{at[0], at[1], strconv.Quote(redacted)})
			}
		}
		part = s.hide(secretLine.ReplaceAllString(replace(part, strs), "${1}"+redacted))
		pieces = append(pieces, piece{b.start, b.end, part})
	}
	return pieces
}

// mark says what a literal is.
type mark uint8

const (
	markNone   mark = iota
	markSecret      // a secret, which is hidden wherever it is written
	markHidden      // not to be shown here: a header or a query
	markPart        // an operand
	markConfig      // the text of a module
)

// marks are those of the literals of statements, by offset in the text.
type marks struct {
	s    *masking
	base int // of the statement
	at   map[int]mark
}

// blocks marks the literals of a body that contains components.
func (m *marks) blocks(body ast.Body) {
	for _, stmt := range body {
		switch stmt := stmt.(type) {
		case *ast.AttributeStmt:
			m.attribute(stmt, nil)
		case *ast.BlockStmt:
			name := stmt.GetBlockName()
			switch {
			case name == "declare":
				m.blocks(stmt.Body)
			case name == "foreach" || name == "argument" && !secretName.MatchString(stmt.Label) || name == "export":
				m.body(stmt.Body, nil)
			case name == "argument":
				m.all(stmt, markSecret)
			case name == "import.string":
				m.all(stmt, markConfig)
			default:
				if t := argsType(m.s.Args, name); t != nil {
					m.body(stmt.Body, tagged(t))
				} else {
					m.body(stmt.Body, nil)
				}
			}
		}
	}
}

// argsType returns the type of the struct of a block's arguments, or nil.
func argsType(args func(string) any, name string) reflect.Type {
	if args == nil {
		return nil
	}
	a := args(name)
	if a == nil {
		return nil
	}
	if t := deref(reflect.TypeOf(a)); t.Kind() == reflect.Struct {
		return t
	}
	return nil
}

// body marks the literals of a body with these fields; nil if they are not known.
func (m *marks) body(body ast.Body, fs []field) {
	for _, stmt := range body {
		switch stmt := stmt.(type) {
		case *ast.AttributeStmt:
			m.attribute(stmt, fs)
		case *ast.BlockStmt:
			name := stmt.GetBlockName()
			t := blockType(fs, name)
			switch {
			case hidden[name]:
				m.all(stmt, markHidden)
			case t == nil && name == "template":
				m.blocks(stmt.Body)
			case t == nil && fs != nil: // a mistake
				m.all(stmt, markHidden)
			case t == nil:
				m.body(stmt.Body, nil)
			case t.Kind() == reflect.Struct:
				m.body(stmt.Body, tagged(t))
			case holdsSecret(t, 0):
				m.all(stmt, markSecret)
			default:
				m.body(stmt.Body, nil)
			}
		}
	}
}

// blockType returns the type of a nested block, or nil if it is not known.
func blockType(fs []field, name string) reflect.Type {
	for _, f := range fs {
		t := deref(f.typ)
		for f.kind == blockField && f.name == name {
			if t.Kind() != reflect.Slice && t.Kind() != reflect.Array {
				return t
			}
			t = deref(t.Elem())
		}
		if f.kind == enumField && strings.HasPrefix(name, f.name+".") {
			return blockType(tagged(deref(f.typ.Elem())), strings.TrimPrefix(name, f.name+"."))
		}
	}
	return nil
}

func (m *marks) attribute(stmt *ast.AttributeStmt, fs []field) {
	name := stmt.Name.Name
	i := slices.IndexFunc(fs, func(f field) bool { return f.kind == attrField && f.name == name })
	switch {
	case i >= 0 && holdsSecret(fs[i].typ, 0), i < 0 && secretName.MatchString(name):
		m.all(stmt.Value, markSecret)
	case i < 0 && slices.ContainsFunc(fs, func(f field) bool { return f.kind == attrField && holdsSecret(f.typ, 0) }):
		m.all(stmt.Value, markSecret) // the name of a secret may be misspelt
	case hidden[name]:
		m.all(stmt.Value, markHidden)
	default:
		m.expression(stmt.Value)
	}
}

// all marks all literals in a node except the names of environment variables and of
// fields that are read.
func (m *marks) all(n ast.Node, is mark) {
	if id, ok := n.(*ast.IdentifierExpr); ok { // a value without quotes
		m.at[m.base+ast.StartPos(id).Offset()] = is
	}
	ast.Walk(visitor(func(n ast.Node) {
		switch n := n.(type) {
		case *ast.LiteralExpr:
			if at := m.base + n.ValuePos.Offset(); m.at[at] == markNone {
				m.at[at] = is
			}
		case *ast.CallExpr:
			if f, ok := n.Value.(*ast.AccessExpr); ok && f.Name.Name == "env" && len(n.Args) == 1 {
				m.name(n.Args[0])
			}
		case *ast.IndexExpr:
			m.name(n.Index)
		}
	}), n)
}

// name marks a literal that is the name of something.
func (m *marks) name(n ast.Expr) {
	if l, ok := n.(*ast.LiteralExpr); ok {
		m.at[m.base+l.ValuePos.Offset()] = markPart
	}
}

// expression marks what the keys of objects say to be secrets, and operands.
func (m *marks) expression(n ast.Expr) {
	ast.Walk(visitor(func(n ast.Node) {
		switch n := n.(type) {
		case *ast.ObjectExpr:
			for _, f := range n.Fields {
				if secretName.MatchString(f.Name.Name) {
					m.all(f.Value, markSecret)
				}
			}
		case *ast.BinaryExpr:
			m.name(n.Left)
			m.name(n.Right)
		}
	}), n)
}

// holdsSecret reports whether values of a type are or contain secrets.
func holdsSecret(t reflect.Type, depth int) bool {
	if t = deref(t); t == reflect.TypeFor[component.Secret]() {
		return true
	}
	if t.Kind() == reflect.Struct {
		if p, ok := asPlain(reflect.New(t).Elem()); ok {
			t = deref(reflect.TypeOf(p))
		}
	}
	if depth > 8 { // types may contain themselves
		return false
	}
	switch t.Kind() {
	case reflect.Slice, reflect.Array, reflect.Map:
		return holdsSecret(t.Elem(), depth+1)
	case reflect.Struct:
		return slices.ContainsFunc(tagged(t), func(f field) bool { return holdsSecret(f.typ, depth+1) })
	}
	return false
}

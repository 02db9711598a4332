package api

import (
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/weir-run/weir/scripting"
)

// Lang is the language of a manual.
type Lang string

// The languages. TypeScript is the same as JavaScript.
const (
	Both Lang = "" // examples and names in both languages, and Lua's spelling elsewhere
	Lua  Lang = "lua"
	JS   Lang = "js"
)

// Has reports whether a language has the subject of an entry.
func (e *Entry) Has(l Lang) bool {
	return l == Both || l == Lua && e.Head != "" || l == JS && e.JS != ""
}

// view returns the language for the text of an entry: the requested one, or the
// one that has it.
func (e *Entry) view(l Lang) Lang {
	switch {
	case e.Head == "":
		return JS
	case l == JS && e.JS != "":
		return JS
	}
	return Lua
}

// heads returns the calls of an entry.
func (e *Entry) heads(l Lang) []string {
	if e.view(l) == JS {
		return []string{e.JS}
	}
	if l == Both && e.JS != "" && e.JS != e.Head && !e.Area {
		return []string{e.Head, e.JS}
	}
	return []string{e.Head}
}

// Text returns an entry for a terminal. paint emphasizes headings; it may be
// nil.
func (e *Entry) Text(l Lang, paint func(string) string) string {
	if paint == nil {
		paint = func(s string) string { return s }
	}
	v := words(e.view(l))
	var b strings.Builder
	for _, h := range e.heads(l) {
		b.WriteString(paint(h) + "\n")
	}
	fmt.Fprintf(&b, "\n%s\n", scripting.WrapManual(v.doc(e.Doc), 0, 0))
	section := func(title string, ps []scripting.Param) {
		if len(ps) == 0 {
			return
		}
		fmt.Fprintf(&b, "\n%s\n", paint(title))
		v.params(&b, ps, 1)
	}
	section("Parameters", e.Params)
	if e.Area {
		section("Fields", e.Fields)
	} else {
		section("Keys", e.Fields)
	}
	if r := e.returns(v); r != "" {
		fmt.Fprintf(&b, "\n%s\n  %s\n", paint("Returns"), scripting.WrapManual(r, 2, 2))
	}
	for _, part := range e.examples(l) {
		fmt.Fprintf(&b, "\n%s\n", paint(part.title))
		for i, c := range part.code {
			if i > 0 && (strings.Contains(c, "\n") || strings.Contains(part.code[i-1], "\n")) {
				b.WriteByte('\n')
			}
			b.WriteString(indent(c, "  ") + "\n")
		}
	}
	if len(e.Members) > 0 {
		fmt.Fprintf(&b, "\n%s\n  %s\n", paint("More"), scripting.WrapManual(strings.Join(e.Members, " "), 2, 2))
	}
	return b.String()
}

// words writes a manual in the spelling of a language.
type words Lang

func (v words) js() bool { return Lang(v) == JS }

func (v words) doc(s string) string {
	if v.js() {
		return InJS(s)
	}
	return s
}

func (v words) name(s string) string {
	if v.js() {
		return scripting.CamelCase(s)
	}
	return s
}

// params writes parameters or fields. Nested ones follow below.
func (v words) params(b *strings.Builder, ps []scripting.Param, depth int) {
	by := strings.Repeat("  ", depth)
	for _, p := range ps {
		name := v.name(p.Name)
		if p.Optional && p.Kind != scripting.KindAny {
			name += "?"
		}
		head := name + " " + v.doc(typeText(p))
		if p.Set {
			head += ", can be set"
		}
		fmt.Fprintf(b, "%s%s\n", by, head)
		if p.Doc != "" {
			n := len(by) + 4
			fmt.Fprintf(b, "%s    %s\n", by, scripting.WrapManual(v.doc(p.Doc), n, n))
		}
		v.params(b, p.Fields, depth+2)
	}
}

// Markdown returns an entry as part of a book.
func (e *Entry) Markdown(l Lang) string {
	v := words(e.view(l))
	var b strings.Builder
	level := "###"
	if e.Area {
		level = "##"
	}
	heads := e.heads(l)
	for i := range heads {
		heads[i] = code(heads[i])
	}
	fmt.Fprintf(&b, "%s %s\n\n%s\n", level, strings.Join(heads, " · "), escape(v.doc(e.Doc)))
	params := func(title string, ps []scripting.Param) {
		if len(ps) == 0 {
			return
		}
		fmt.Fprintf(&b, "\n%s:\n\n", title)
		v.markdown(&b, ps, "")
	}
	params("Parameters", e.Params)
	if e.Area {
		params("Fields", e.Fields)
	} else {
		params("Keys", e.Fields)
	}
	if r := e.returns(v); r != "" {
		fmt.Fprintf(&b, "\nReturns %s\n", escape(r))
	}
	for _, part := range e.examples(l) {
		for _, c := range part.code {
			fmt.Fprintf(&b, "\n```%s\n%s\n```\n", part.lang, c)
		}
	}
	return b.String()
}

func (v words) markdown(b *strings.Builder, ps []scripting.Param, by string) {
	for _, p := range ps {
		set := ""
		if p.Set {
			set = ", can be set"
		}
		if p.Optional && p.Kind != scripting.KindAny {
			set += ", optional"
		}
		fmt.Fprintf(b, "%s- %s (%s%s): %s\n", by, code(v.name(p.Name)), escape(v.doc(typeText(p))), set, escape(v.doc(p.Doc)))
		v.markdown(b, p.Fields, by+"  ")
	}
}

func code(s string) string { return "`" + strings.ReplaceAll(s, "`", "'") + "`" }

// escape escapes a doc for Markdown.
func escape(s string) string {
	return strings.NewReplacer("*", `\*`, "_", `\_`, "<", `\<`, "[", `\[`, "|", `\|`).Replace(s)
}

// returns returns the description of a call's results.
func (e *Entry) returns(v words) string {
	r := e.Result
	if r.Doc == "" && r.Kind == scripting.KindAny && !r.Fails {
		return ""
	}
	kind := resultType(r)
	switch {
	case r.Doc == "Nothing." || r.Kind == scripting.KindAny && r.Doc != "":
		kind = r.Doc
	case r.Doc != "":
		kind += ". " + r.Doc
	default:
		kind += "."
	}
	kind = v.doc(kind)
	switch {
	case r.Fails && v.js():
		kind += " Throws an error on failure."
	case r.Fails:
		kind += " On an error, it returns nil and the message."
	}
	return strings.TrimSpace(kind)
}

// typeText returns the type of a parameter for docs.
func typeText(p scripting.Param) string {
	s := p.Kind.String()
	switch {
	case p.Type != nil:
		s = p.Type.Name
	case p.Of != nil && p.Kind == scripting.KindList:
		s = "list of " + typeText(*p.Of)
	case p.Of != nil && p.Kind == scripting.KindMap:
		s = "map of " + typeText(*p.Of)
	case p.Fields != nil:
		s = "table"
	case p.Call != nil:
		var names []string
		for _, a := range p.Call.Params {
			names = append(names, a.Name)
		}
		s = "function(" + strings.Join(names, ", ") + ")"
	}
	for _, o := range p.Or {
		s += " or " + typeText(o)
	}
	return s
}

func resultType(r scripting.Result) string {
	if r.Kind == scripting.KindSequence {
		var names []string
		for _, y := range r.Yields {
			names = append(names, y.Name)
		}
		return "an iterator: " + strings.Join(names, ", ")
	}
	s := typeText(scripting.Param{Kind: r.Kind, Type: r.Type, Of: r.Of, Fields: r.Fields})
	if r.Optional {
		s += " or nil"
	}
	return s
}

// exampleText contains the examples of an entry in one language.
type exampleText struct {
	title string
	lang  Lang
	code  []string
}

// examples returns an entry's examples in the requested languages.
func (e *Entry) examples(l Lang) (out []exampleText) {
	add := func(title string, lang Lang, calls []string, mark string, code func(u scripting.Use) (use, test string)) {
		for _, u := range e.Uses {
			use, test := code(u)
			if use == "" {
				continue
			}
			var b strings.Builder
			if u.Doc != "" {
				b.WriteString(mark + u.Doc + "\n")
			}
			b.WriteString(use)
			if test != "" {
				b.WriteString("\n" + mark + "in a test:\n" + test)
			}
			if u.Input != "" {
				b.WriteString("\n" + mark + "input:\n" + indent(strings.TrimSpace(u.Input), mark+"  "))
				b.WriteString("\n" + mark + "output:\n" + indent(strings.TrimSpace(u.Output), mark+"  "))
			}
			calls = append(calls, b.String())
		}
		if len(calls) > 0 {
			out = append(out, exampleText{title, lang, calls})
		}
	}
	view := e.view(l)
	if l == Both && e.Head != "" || view == Lua {
		add("Examples", Lua, e.CallsInLua(), "-- ", func(u scripting.Use) (string, string) { return u.Lua, u.Test })
	}
	if l == Both && e.JS != "" || view == JS {
		title := "Examples"
		if len(out) > 0 {
			title = "In JavaScript"
		}
		add(title, JS, e.CallsInJS(), "// ", func(u scripting.Use) (string, string) { return u.JS, u.TestJS })
	}
	return out
}

// call returns an example of a call in Lua, with its result.
func (e *Entry) call(c scripting.FunctionExample) string {
	name, _, _ := strings.Cut(e.Head, "(")
	args := luaValues(c.Args)
	if i := strings.LastIndexByte(name, ':'); i >= 0 && e.maker != "" {
		name = fmt.Sprintf("%s(%s)%s", e.maker, luaValues(c.Self), name[i:])
	}
	if c.Err != "" {
		return fmt.Sprintf("%s(%s)  --> nil, an error with %q", name, args, c.Err)
	}
	return fmt.Sprintf("%s(%s)  --> %s", name, args, luaValue(c.Want))
}

func luaValues(vs []scripting.Value) string {
	parts := make([]string, len(vs))
	for i, v := range vs {
		parts[i] = luaValue(v)
	}
	return strings.Join(parts, ", ")
}

// luaValue returns a value in Lua syntax.
func luaValue(v scripting.Value) string {
	switch v := v.(type) {
	case nil:
		return "nil"
	case string:
		if strings.ContainsAny(v, `\"`) && !strings.ContainsAny(v, "\n\r]") {
			return "[[" + v + "]]"
		}
		return luaQuote(v)
	case *scripting.List:
		if len(v.Items) == 0 {
			return "json.array()" // {} is a map
		}
		return "{" + luaValues(v.Items) + "}"
	case *scripting.Map:
		var parts []string
		for _, k := range v.Keys() {
			x, _ := v.Get(k)
			if !luaWord.MatchString(k) || luaKeywords[k] {
				k = fmt.Sprintf("[%q]", k)
			}
			parts = append(parts, k+" = "+luaValue(x))
		}
		return "{" + strings.Join(parts, ", ") + "}"
	}
	if v == scripting.Null {
		return "json.null"
	}
	return fmt.Sprint(v)
}

// luaQuote returns a text as a Lua 5.1 literal, whose escapes differ from Go's.
func luaQuote(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for i, r := range s {
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\t':
			b.WriteString(`\t`)
		case r == utf8.RuneError || r < ' ' || r == 0x7f:
			_, n := utf8.DecodeRuneInString(s[i:])
			for _, c := range []byte(s[i : i+n]) {
				fmt.Fprintf(&b, `\%03d`, c)
			}
		default:
			b.WriteRune(r)
		}
	}
	return b.String() + `"`
}

var luaWord = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

func indent(s, by string) string {
	lines := strings.Split(s, "\n")
	for i, l := range lines {
		if l != "" {
			lines[i] = by + l
		}
	}
	return strings.Join(lines, "\n")
}

// CallsInJS returns the calls among an entry's examples, each with its result
// after an arrow. Calls with invalid UTF-8 are omitted, because JavaScript
// strings cannot contain it.
func (e *Entry) CallsInJS() []string {
	var out []string
	name, _, _ := strings.Cut(e.JS, "(")
	for _, c := range e.Calls {
		if !utf8.ValidString(texts(c.Args) + texts(c.Self) + texts([]scripting.Value{c.Want})) {
			continue
		}
		call := name
		if e.maker != "" {
			call = fmt.Sprintf("%s(%s).%s", scripting.CamelCase(e.maker), jsValues(c.Self), last(name))
		}
		call += "(" + jsValues(c.Args) + ")"
		if c.Err != "" {
			out = append(out, fmt.Sprintf("%s  // throws an error with %s", call, jsQuote(c.Err)))
		} else {
			out = append(out, fmt.Sprintf("%s  // → %s", call, jsValue(c.Want)))
		}
	}
	return out
}

// texts returns the concatenated texts in values.
func texts(vs []scripting.Value) string {
	var b strings.Builder
	for _, v := range vs {
		switch v := v.(type) {
		case string:
			b.WriteString(v)
		case *scripting.List:
			b.WriteString(texts(v.Items))
		case *scripting.Map:
			for _, k := range v.Keys() {
				x, _ := v.Get(k)
				b.WriteString(k + texts([]scripting.Value{x}))
			}
		}
	}
	return b.String()
}

// CallsInLua returns the calls among an entry's examples, each with its result
// after an arrow.
func (e *Entry) CallsInLua() []string {
	out := make([]string, len(e.Calls))
	for i, c := range e.Calls {
		out[i] = e.call(c)
	}
	return out
}

// Summary returns the members of a module or type, each with its doc, for a
// guide.
func (b *Book) Summary(area string) string {
	var out strings.Builder
	for _, e := range b.entries {
		if e.Name != area {
			continue
		}
		for _, f := range e.Fields {
			scripting.WriteManual(&out, area+"."+f.Name, f.Doc)
		}
		for _, m := range e.Members {
			for _, in := range b.entries {
				if in.Name == m && !in.Area {
					scripting.WriteManual(&out, in.Head, in.Doc)
				}
			}
		}
	}
	return out.String()
}

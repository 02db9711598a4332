package api_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/yuin/gopher-lua/parse"

	"github.com/weir-run/weir/scripting"
	"github.com/weir-run/weir/scripting/api"
	"github.com/weir-run/weir/scripting/lua"
	"github.com/weir-run/weir/scripting/registry"
	"github.com/weir-run/weir/scripting/scripttest"
	"github.com/weir-run/weir/stdlib"
)

const typed = `local weir = require "weir"
return weir.transform {
  args = {
    region = weir.arg.string { default = "eu", doc = "Where it is." },
    keep   = weir.arg.list { of = weir.arg.string {}, default = {} },
    every  = weir.arg.duration { optional = true },
    level  = weir.arg.enum { values = { "low", "high" } },
    shards = weir.arg.map { of = weir.arg.int {}, default = {} },
    match  = weir.arg.regexp { default = "x" },
    from   = weir.arg.targets { default = {} },
    token  = weir.arg.secret {},
    rule   = weir.arg.block { fields = { name = weir.arg.string {}, n = weir.arg.int { optional = true } }, repeated = true },
  },
  state = { seen = weir.state.set { doc = "What was seen." } },
  series = function(s, ctx) end,
}`

const other = `return require("weir").transform { args = { region = require("weir").arg.int {} }, series = function(s, ctx) end }`

// luaTypes are the types of a folder with two scripts.
func luaTypes(t *testing.T) map[string]string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "scripts")
	for name, text := range map[string]string{"a/typed.lua": typed, "b/other.lua": other} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c, err := registry.NewCatalog(registry.Options{Languages: []scripting.Language{lua.New()}, Modules: stdlib.Modules(), UserDir: dir})
	if err != nil {
		t.Fatal(err)
	}
	var scripts []api.Script
	for _, s := range registry.Scripts(c) {
		if s.Err != nil {
			t.Fatal(s.Err)
		}
		scripts = append(scripts, api.Script{Name: s.Name, Def: s.Def})
	}
	return api.LuaTypes(stdlib.Modules(), scripttest.API(scripting.Busted), scripts)
}

// TestLuaTypes reads the types as an editor does: each annotation is of the
// grammar, each type that is named is there, and the rest is Lua.
func TestLuaTypes(t *testing.T) {
	files := luaTypes(t)
	c := &cats{classes: map[string]map[string]string{}, parents: map[string]string{}}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if _, err := parse.Parse(strings.NewReader(files[name]), name); err != nil {
			t.Errorf("%s is not Lua: %v", name, err)
		}
		c.read(name, files[name])
	}
	for _, problem := range c.check() {
		t.Error(problem)
	}
	f := func(class, field, want string) {
		t.Helper()
		if got := c.field(class, field); got != want {
			t.Errorf("%s.%s is %q, want %q", class, field, got, want)
		}
	}
	// The arguments of a script, of all, and what hooks are called with.
	f("weir.ctx.a.typed", "args", "weir.args.a.typed")
	f("weir.ctx.a.typed", "log", "weir.Log")
	f("weir.ctx.a.typed", "state", "weir.state.a.typed")
	f("weir.state.a.typed", "seen", "state.set")
	f("state.set", "add", "function")
	f("weir.ctx.b.other", "state", "weir.Context.State")
	f("weir.args.a.typed", "region", "string")
	f("weir.args.a.typed", "keep", "string[]")
	f("weir.args.a.typed", "every?", "number")
	f("weir.args.a.typed", "level", `("low"|"high")`)
	f("weir.args.a.typed", "shards", "table<string, integer>")
	f("weir.args.a.typed", "match", "re.Pattern")
	f("weir.args.a.typed", "from", "table<string, string>[]")
	f("weir.args.a.typed", "token", "userdata")
	f("weir.args.a.typed", "rule", "{ n?: integer, name: string }[]")
	f("weir.args.b.other", "region", "integer")
	f("weir.Args", "region", "string|integer")
	f("weir.Args", "every", "number|nil")
	f("weir.Context", "args", "weir.Args")
	f("weir.Transform", "metrics?", "(fun(batch: weir.Batch, ctx: weir.Context))")
	f("weir.Transform", "series?", "(fun(s: weir.Series, ctx: weir.SeriesContext))")
	f("weir.Batch", "drop_where", "function")
	f("re.Pattern", "match", "function")
	f("weir.test.Component", "metrics", "function")
	f("weir.Batch", "drop_wher", "")
	f("weir.args.a.typed", "regoin", "")
	// Everything in the table is there.
	table := api.Get()
	for class, typ := range map[string]*scripting.ObjectType{"weir.Batch": table.Batch, "weir.Record": table.Record, "weir.Series": table.Series, "weir.Context": table.Context} {
		for _, m := range api.Members(typ) {
			if c.field(class, m) == "" {
				t.Errorf("%s lacks %s", class, m)
			}
		}
	}
}

// TestLuaTypesReader holds that the reader of this test finds mistakes.
func TestLuaTypesReader(t *testing.T) {
	f := func(text, want string) {
		t.Helper()
		c := &cats{classes: map[string]map[string]string{}, parents: map[string]string{}}
		c.read("x.lua", text)
		got := strings.Join(c.check(), "\n")
		if want == "" && got != "" || !strings.Contains(got, want) {
			t.Errorf("%s: got %q, want %q", text, got, want)
		}
	}
	f("---@class A\n---@field x string?", "")
	f("---@class A : B", "x.lua:1: there is no type B")
	f("---@class A\n---@field x strin", "x.lua:2: there is no type strin")
	f("---@param f fun(x: A): integer, string", "x.lua:1: there is no type A")
	f("---@param f fun(x: ", "x.lua:1: cannot read the type")
	f("---@return { a: string, b?: table<string, C> } x", "x.lua:1: there is no type C")
	f("---@retrun string", "x.lua:1: there is no annotation @retrun")
	f("---@field x string", "x.lua:1: a field without a class")
	f("---@class A\n---@class A", "x.lua:2: there are two classes A")
	f("---@param x (string|D)[] doc", "x.lua:1: there is no type D")
}

// cats reads LuaCATS annotations.
//
// Grammar: https://luals.github.io/wiki/annotations/
type cats struct {
	classes  map[string]map[string]string
	parents  map[string]string
	used     []named
	problems []string
}

type named struct{ at, name string }

var (
	annotation = regexp.MustCompile(`^---@(\w+)\s*(.*)$`)
	nameOf     = regexp.MustCompile(`^(\.\.\.|[\w.]+\??|\[\w+\])\s+(.*)$`)
	method     = regexp.MustCompile(`^function (\w+)[.:](\w+)\(`)
	local      = regexp.MustCompile(`^(?:local )?([\w.]+) = \{\}$`)
)

func (c *cats) read(file, text string) {
	class := ""
	locals := map[string]string{}
	n := 0
	for line := range strings.Lines(text) {
		n++
		line = strings.TrimRight(line, "\n")
		at := fmt.Sprintf("%s:%d", file, n)
		if m := local.FindStringSubmatch(line); m != nil {
			locals[m[1]] = class
		}
		if m := method.FindStringSubmatch(line); m != nil && locals[m[1]] != "" {
			c.classes[locals[m[1]]][m[2]] = "function"
		}
		m := annotation.FindStringSubmatch(line)
		if m == nil {
			if !strings.HasPrefix(line, "---") {
				class = ""
			}
			continue
		}
		rest := m[2]
		switch m[1] {
		case "meta":
		case "class":
			name, parent, _ := strings.Cut(rest, " : ")
			if c.classes[name] != nil {
				c.problem(at, "there are two classes %s", name)
			}
			class = name
			c.classes[name] = map[string]string{}
			if parent != "" {
				c.parents[name] = parent
				c.used = append(c.used, named{at, parent})
			}
		case "field", "param":
			parts := nameOf.FindStringSubmatch(rest)
			if parts == nil {
				c.problem(at, "cannot read the name in %q", rest)
				continue
			}
			typ := c.typ(at, parts[2])
			if m[1] == "param" {
				continue
			}
			if class == "" {
				c.problem(at, "a field without a class")
				continue
			}
			c.classes[class][parts[1]] = typ
		case "return", "overload", "type":
			c.typ(at, rest)
		case "operator":
			_, typ, _ := strings.Cut(rest, ": ")
			c.typ(at, typ)
		default:
			c.problem(at, "there is no annotation @%s", m[1])
		}
	}
}

func (c *cats) problem(at, format string, args ...any) {
	c.problems = append(c.problems, at+": "+fmt.Sprintf(format, args...))
}

// check returns what is wrong, once all files are read.
func (c *cats) check() []string {
	builtin := []string{"any", "nil", "boolean", "string", "number", "integer", "function", "table", "thread", "userdata", "unknown"}
	for _, u := range c.used {
		if c.classes[u.name] == nil && !slices.Contains(builtin, u.name) {
			c.problem(u.at, "there is no type %s", u.name)
		}
	}
	return c.problems
}

// field is the type of a field or method, of the class or of one above it.
func (c *cats) field(class, field string) string {
	for class != "" {
		if t := c.classes[class][field]; t != "" {
			return t
		}
		class = c.parents[class]
	}
	return ""
}

// typ reads the type that text begins with, and returns it.
func (c *cats) typ(at, text string) string {
	p := &typeParser{rest: text, use: func(name string) { c.used = append(c.used, named{at, name}) }}
	if err := p.union(); err != nil {
		c.problem(at, "cannot read the type %q: %v", text, err)
	}
	return text[:len(text)-len(p.rest)]
}

// typeParser is a parser by descent; blanks are taken where the grammar has
// them.
type typeParser struct {
	rest string
	use  func(name string)
}

func (p *typeParser) eat(s string) bool {
	if rest, ok := strings.CutPrefix(p.rest, s); ok {
		p.rest = rest
		return true
	}
	return false
}

func (p *typeParser) need(s string) error {
	if !p.eat(s) {
		return fmt.Errorf("%q is missing before %q", s, p.rest)
	}
	return nil
}

func (p *typeParser) union() error {
	for {
		if err := p.postfix(); err != nil {
			return err
		}
		if !p.eat("|") {
			return nil
		}
	}
}

func (p *typeParser) postfix() error {
	if err := p.single(); err != nil {
		return err
	}
	for p.eat("[]") || p.eat("?") {
	}
	return nil
}

var word = regexp.MustCompile(`^[A-Za-z_][\w.]*`)

func (p *typeParser) single() error {
	switch {
	case p.eat("("):
		if err := p.union(); err != nil {
			return err
		}
		return p.need(")")
	case p.eat(`"`):
		_, rest, ok := strings.Cut(p.rest, `"`)
		p.rest = rest
		if !ok {
			return fmt.Errorf("a text does not end")
		}
		return nil
	case p.eat("fun("):
		return p.function()
	case p.eat("{ "):
		return p.pairs(" }")
	case p.eat("table<"):
		for {
			if err := p.union(); err != nil {
				return err
			}
			if !p.eat(", ") {
				return p.need(">")
			}
		}
	}
	name := word.FindString(p.rest)
	if name == "" {
		return fmt.Errorf("no type at %q", p.rest)
	}
	p.rest = p.rest[len(name):]
	p.use(name)
	return nil
}

func (p *typeParser) function() error {
	if !p.eat(")") {
		if err := p.pairs(")"); err != nil {
			return err
		}
	}
	if !p.eat(": ") {
		return nil
	}
	for {
		if err := p.union(); err != nil {
			return err
		}
		if !p.eat(", ") {
			return nil
		}
	}
}

// pairs reads name: type, …, up to end.
func (p *typeParser) pairs(end string) error {
	for {
		name := word.FindString(p.rest)
		if p.eat("...") {
			name = "..."
		}
		p.rest = strings.TrimPrefix(p.rest, strings.TrimPrefix(name, "..."))
		if name == "" {
			return fmt.Errorf("no name at %q", p.rest)
		}
		p.eat("?")
		if err := p.need(": "); err != nil {
			return err
		}
		if err := p.union(); err != nil {
			return err
		}
		if !p.eat(", ") {
			return p.need(end)
		}
	}
}

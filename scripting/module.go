package scripting

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/weir-run/weir/engine/config"
	"github.com/weir-run/weir/engine/expr"
	"github.com/weir-run/weir/engine/regex"
	"github.com/weir-run/weir/scripting/operation"
)

// Value is a value that is passed between a script and a host function, in Go:
//
//	nil        absent: nil in Lua, undefined in JS
//	Null       a null that is data
//	bool
//	int64      an exact integer
//	float64
//	string     bytes; mostly UTF-8
//	*List      a list, which may be empty
//	*Map       a map with string keys in an order
//	*Object    a Go value with methods, such as a compiled pattern
//	Callback   a function of the script
//	Sequence   an iterator
//	Row        a record of the current batch
//
// A language converts each to and from its own values. Values without an
// equivalent in the language (Null, an empty list, an int64 that its numbers
// cannot represent) are passed through unchanged.
type Value = any

// Null is the null of JSON and YAML.
var Null Value = null{}

type null struct{}

// String returns "null".
func (null) String() string { return "null" }

// List is a list of values.
type List struct{ Items []Value }

// Map is a map with string keys that keeps their order. Create it with NewMap.
// It is not safe for concurrent use.
type Map struct {
	keys   []string
	values map[string]Value
}

// NewMap returns an empty map.
func NewMap() *Map { return &Map{values: map[string]Value{}} }

// Set sets the value of a key. A new key is added at the end.
func (m *Map) Set(key string, v Value) {
	if _, ok := m.values[key]; !ok {
		m.keys = append(m.keys, key)
	}
	m.values[key] = v
}

// Get returns a key's value.
func (m *Map) Get(key string) (Value, bool) {
	v, ok := m.values[key]
	return v, ok
}

// Keys returns the keys in order. The slice must not be modified.
func (m *Map) Keys() []string { return m.keys }

// Len returns the number of keys.
func (m *Map) Len() int { return len(m.keys) }

// Callback is a function of the script. It is valid during the call that
// received it. In a test file, it is valid as long as its VM.
type Callback func(args ...Value) (Value, error)

// Row is the row of a record in the batch of the running hook. A language
// passes a record that is still valid as its Row.
type Row int

// Pattern is the data of an Object that re.compile created.
type Pattern = *regex.Regexp

// CompilePattern compiles a regular expression with the function compile of the
// module re. It returns an Object that contains a Pattern.
func CompilePattern(modules map[string]*Module, src string) (*Object, error) {
	none := errors.New("cannot compile a pattern: there is no module re")
	m, ok := modules["re"]
	if !ok {
		return nil, none
	}
	f, ok := m.Func("compile")
	if !ok {
		return nil, none
	}
	x, err := f.Call(nil, []Value{src})
	if err != nil {
		return nil, err
	}
	if o, ok := x.(*Object); ok {
		if _, ok := o.Data.(Pattern); ok {
			return o, nil
		}
	}
	return nil, none
}

// Patterns caches the compiled patterns that a VM passed as text. The zero
// value is empty. It is not safe for concurrent use.
type Patterns struct {
	by   map[string]Pattern
	used int // bytes
}

// maxPatternBytes is the limit of the memory for the patterns of a VM.
const maxPatternBytes = 4 << 20

// Compile is like CompilePattern, with a cache.
func (p *Patterns) Compile(modules map[string]*Module, src string) (Pattern, error) {
	if re, ok := p.by[src]; ok {
		return re, nil
	}
	o, err := CompilePattern(modules, src)
	if err != nil {
		return nil, err
	}
	re := o.Data.(Pattern)
	n := re.Bytes() + len(src)
	if p.used += n; p.by == nil || p.used > maxPatternBytes {
		p.by, p.used = map[string]Pattern{}, n
	}
	p.by[src] = re
	return re, nil
}

// Object is a Go value that scripts use. It must be immutable or safe for
// concurrent use.
type Object struct {
	Type *ObjectType
	Data any
}

// ObjectType is a type of Object with its methods.
type ObjectType struct {
	// Name is the name in errors and docs, such as "re.Pattern".
	Name string
	Doc  string
	// New is the name of the module's function that creates one.
	New string
	// Methods have the object as first argument, which their Params omit.
	Methods []Function
	// Fields are read without a call. Fields with Set can be assigned.
	Fields []Param
	// Read returns a field of an Object. It is nil if there are no fields.
	Read func(data any, field string) Value
	// String returns the text form, for logs and tostring.
	String func(data any) string
	// Len and Index make it behave like a list in scripts. index starts at 0 and
	// is always valid. Set both or neither.
	Len     func(data any) int
	Index   func(data any, index int) Value
	Element *ObjectType // the type of Index results, for docs and types; nil: any
}

// Method returns a method by name.
func (t *ObjectType) Method(name string) (*Function, bool) { return find(t.Methods, name) }

// Module is a set of pure functions that `require` returns. It is declared once
// and bound by every language.
type Module struct {
	Name   string
	Doc    string
	Consts []Const
	Funcs  []Function
	Types  []*ObjectType
	// Absent returns a hint for an unknown name, or "". It may be nil.
	Absent func(name string) string
	// Tables are sub-tables of ctx, such as metrics in ctx.metrics. Their
	// functions may also be called with a colon.
	Tables []*Module
}

// Const is a constant of a module.
type Const struct {
	Name  string
	Doc   string
	Value Value
}

// Func returns a function by name.
func (m *Module) Func(name string) (*Function, bool) { return find(m.Funcs, name) }

// Function is a function that a script may call. Names are in snake_case; a
// language may change the case.
type Function struct {
	Name     string
	Doc      string // sentences
	Params   []Param
	Result   Result
	Examples []FunctionExample
	Uses     []Use // examples in a script of what a single call does not show
	// Waits means that it waits for external events. The script's time limit is
	// suspended meanwhile. The function itself ensures that it ends.
	Waits bool
	// Fn gets one argument per Param, in the form of its Kind, or nil for an
	// omitted optional one. A method gets its object's Data as first argument. An
	// error is a result: `value, err` in Lua, an exception in JS. Fn is nil if the
	// method has an Op, or if the language binds the function itself, such as
	// ctx.emit.
	Fn func(args []Value) (Value, error)
	// Checked is used instead of Fn if small input can take long: it calls check
	// about every 10 ms and returns its error.
	Checked func(check func() error, args []Value) (Value, error)
	// Op is the operation of a method of a batch, a record, a series or a group,
	// instead of Fn.
	Op *operation.Operation
}

// Kind is the type of a parameter or a result.
type Kind uint8

// The kinds. Their Go types are those of Value; KindNumber is a float64.
const (
	KindAny Kind = iota
	KindBool
	KindInt
	KindNumber
	KindString
	KindList
	KindMap
	KindObject
	KindFunction
	KindSequence
)

// String returns the name of the kind in docs.
func (k Kind) String() string {
	return [...]string{"any", "bool", "int", "number", "string", "list", "map", "object", "function", "iterator"}[k]
}

// Param is a parameter, a field of an object, or a key of a table.
type Param struct {
	Name     string
	Kind     Kind
	Doc      string
	Type     *ObjectType // of a KindObject
	Optional bool

	// Optional details:
	Of     *Param    // of a KindList or KindMap: an element
	Fields []Param   // of a KindMap: its keys; other keys are refused
	Call   *Function // of a KindFunction: how it is called
	Or     []Param   // alternative types
	Rest   bool      // the last parameter: it takes all remaining arguments as a *List
	Set    bool      // a field that scripts may set
	// Check checks a constant argument, such as a pattern or an expression, before
	// the script runs.
	Check func(text string) error
	// Expression means that a text is an expression over records with this result
	// type. A constant one is compiled when the script is loaded.
	Expression *expr.Kind
}

// Result is the result of a function.
type Result struct {
	Kind Kind
	Doc  string
	Type *ObjectType // of a KindObject
	// Optional means that the result may be nil without an error.
	Optional bool
	// Fails means that the function may return an error.
	Fails bool

	// Optional details, as in Param.
	Of     *Param
	Fields []Param
	Yields []Param // of a KindSequence: the values of each step
}

// Use is an example of an entry in a script. A test runs it on the production
// runtime.
type Use struct {
	Doc string // what it shows; may be empty
	// Lua is the body of the hook metrics(batch, ctx), or of Hook if it is set. If
	// it contains return weir, it is a whole file.
	Lua string
	// JS is the same example in JavaScript: the body of the hook, or a whole file
	// if it contains export default. Every example has both.
	JS   string
	Hook string
	Args string // attributes of the block
	// Input and Output are batches in text form.
	Input, Output string
	// Test is the body of a test in Lua with the component as t. It replaces Input
	// and Output.
	Test string
	// TestJS is Test in JavaScript.
	TestJS string
}

// FunctionExample is a call, independent of the language: bindings render and
// execute it.
type FunctionExample struct {
	// Self are the arguments of Type.New that create the object of a method.
	Self []Value
	Args []Value
	// Want is the result, compared as JSON; unused if Err is set. For an object,
	// it is the text form.
	Want Value
	// Err is a substring of the error.
	Err string
}

// MaxString is the maximum length of a string argument of a host function, in
// bytes.
const MaxString = 8 << 20

// ArgError is a call with wrong arguments: an error in the script, raised at
// the call, unlike an error that the function returns.
type ArgError struct {
	Func  string
	Param string // "" if there are too many arguments
	Msg   string
}

func (e *ArgError) Error() string {
	if e.Param == "" {
		return fmt.Sprintf("cannot call %s: %s", e.Func, e.Msg)
	}
	return fmt.Sprintf("cannot call %s: argument %s %s", e.Func, e.Param, e.Msg)
}

// Call checks and converts the arguments and calls the function. self is the
// object of a method, nil for a function. A wrong argument is an *ArgError. It
// may modify args.
func (f *Function) Call(self *Object, args []Value) (Value, error) {
	return f.CallChecked(func() error { return nil }, self, args)
}

// CallChecked is like Call, with a check that can stop it: a function that can
// take long calls check regularly and returns its error.
func (f *Function) CallChecked(check func() error, self *Object, args []Value) (Value, error) {
	rest := len(f.Params) > 0 && f.Params[len(f.Params)-1].Rest
	if len(args) > len(f.Params) && !rest {
		return nil, &ArgError{Func: f.Name, Msg: fmt.Sprintf("it takes %d arguments, not %d", len(f.Params), len(args))}
	}
	in := make([]Value, 0, len(f.Params)+1)
	if self != nil {
		in = append(in, self.Data)
	}
	for i := range f.Params {
		p := &f.Params[i]
		if p.Rest {
			left := &List{}
			for _, v := range args[min(i, len(args)):] {
				v, msg := p.Convert(v)
				if msg != "" {
					return nil, &ArgError{Func: f.Name, Param: p.Name, Msg: msg}
				}
				left.Items = append(left.Items, v)
			}
			in = append(in, left)
			break
		}
		var v Value
		if i < len(args) {
			v = args[i]
		}
		v, msg := p.Convert(v)
		if msg != "" {
			return nil, &ArgError{Func: f.Name, Param: p.Name, Msg: msg}
		}
		in = append(in, v)
	}
	long := longest(in) // a method may modify in
	v, err := f.run(check, in)
	if err == nil && len(long) > longText {
		v = ownParts(v, long)
	}
	return v, err
}

func (f *Function) run(check func() error, in []Value) (Value, error) {
	if f.Checked != nil {
		return f.Checked(check, in)
	}
	return f.Fn(in)
}

// longest returns the longest text among the arguments.
func longest(args []Value) (long string) {
	for _, v := range args {
		if s, ok := v.(string); ok && len(s) > len(long) {
			long = s
		}
	}
	return long
}

// Convert returns v in the form that a function with the parameter gets. msg
// describes the error in v; it is "" if there is none.
func (p *Param) Convert(v Value) (_ Value, msg string) {
	if v == nil {
		if p.Optional || p.Kind == KindAny {
			return nil, ""
		}
		return nil, "is missing; it is a " + p.want()
	}
	if s, ok := v.(string); ok && len(s) > MaxString {
		return nil, fmt.Sprintf("is longer than %d bytes", MaxString)
	}
	ok := true
	switch p.Kind {
	case KindBool:
		_, ok = v.(bool)
	case KindInt:
		switch n := v.(type) {
		case int64:
		case float64:
			if n < -1<<63 || n >= 1<<63 || n != float64(int64(n)) {
				return nil, "must be a whole number"
			}
			v = int64(n)
		default:
			ok = false
		}
	case KindNumber:
		switch n := v.(type) {
		case float64:
		case int64:
			v = float64(n)
		default:
			ok = false
		}
	case KindString:
		_, ok = v.(string)
	case KindList:
		if m, is := v.(*Map); is && m.Len() == 0 {
			v = &List{} // languages in which both are written {}
			break
		}
		var l *List
		if l, ok = v.(*List); ok && p.Of != nil {
			return p.Of.elements(l)
		}
	case KindMap:
		if l, is := v.(*List); is && len(l.Items) == 0 {
			v = NewMap()
		}
		var m *Map
		if m, ok = v.(*Map); ok && (p.Fields != nil || p.Of != nil) {
			return p.entries(m)
		}
	case KindObject:
		o, is := v.(*Object)
		if ok = is && o.Type == p.Type; ok {
			v = o.Data
		}
	case KindFunction:
		_, ok = v.(Callback)
	}
	if !ok {
		for i := range p.Or {
			if v, msg := p.Or[i].Convert(v); msg == "" {
				return v, ""
			}
		}
		return nil, fmt.Sprintf("must be a %s, not a %s", p.want(), TypeName(v))
	}
	return v, ""
}

// elements converts the elements of a list. Each is a p.
func (p *Param) elements(l *List) (Value, string) {
	out := &List{Items: make([]Value, len(l.Items))}
	for i, e := range l.Items {
		v, msg := p.Convert(e)
		if msg != "" {
			return nil, fmt.Sprintf("is wrong at %d: it %s", i+1, msg)
		}
		out.Items[i] = v
	}
	return out, ""
}

// entries converts a map's values by Fields or Of. An undeclared key is an
// error, because it would be ignored.
func (p *Param) entries(m *Map) (Value, string) {
	out := NewMap()
	for _, k := range m.Keys() {
		e := p.Of
		if i := slices.IndexFunc(p.Fields, func(f Param) bool { return f.Name == k }); i >= 0 {
			e = &p.Fields[i]
		}
		if e == nil {
			return nil, fmt.Sprintf("has no key %q%s", k, suggestAlternatives(k, Names(p.Fields)))
		}
		x, _ := m.Get(k)
		v, msg := e.Convert(x)
		if msg != "" {
			return nil, fmt.Sprintf("is wrong at %q: it %s", k, msg)
		}
		out.Set(k, v)
	}
	for i := range p.Fields {
		f := &p.Fields[i]
		if _, ok := out.Get(f.Name); !ok && !f.Optional && f.Kind != KindAny {
			return nil, fmt.Sprintf("lacks the key %s, a %s", f.Name, f.want())
		}
	}
	return out, ""
}

// Names returns the names of parameters or fields.
func Names(ps []Param) []string {
	names := make([]string, len(ps))
	for i, p := range ps {
		names[i] = p.Name
	}
	return names
}

// suggestAlternatives returns the end of a message about an unknown name:
// similar names, or all names.
func suggestAlternatives(name string, all []string) string {
	if hint := config.DidYouMean(name, all); hint != "" {
		return ": " + hint
	}
	return ": there is " + strings.Join(all, ", ")
}

func (p *Param) want() string {
	want := p.Kind.String()
	if p.Type != nil {
		want = p.Type.Name
	}
	for i := range p.Or {
		want += " or " + p.Or[i].want()
	}
	return want
}

// TypeName returns the name of v's type in scripts.
func TypeName(v Value) string {
	switch v := v.(type) {
	case null:
		return "null"
	case bool:
		return "bool"
	case int64, float64:
		return "number"
	case string:
		return "string"
	case *List:
		return "list"
	case *Map:
		return "map"
	case *Object:
		return v.Type.Name
	case Callback:
		return "function"
	case Secret:
		return "secret"
	case Row:
		return "record"
	}
	return fmt.Sprintf("%T", v)
}

func find(fs []Function, name string) (*Function, bool) {
	i := slices.IndexFunc(fs, func(f Function) bool { return f.Name == name })
	if i < 0 {
		return nil, false
	}
	return &fs[i], true
}

package js

import (
	"strings"

	"github.com/dop251/goja"

	"github.com/weir-run/weir/scripting"
)

// maxSearch limits the length of a text times the length of the searched text:
// goja compares all characters with each other, unless both texts are ASCII.
const maxSearch = 1 << 28

// text converts v to a string.
func (s *sandbox) text(v goja.Value) goja.String {
	switch v := v.(type) {
	case goja.String:
		return v
	case *goja.Object:
		return s.text(v.ToString())
	case *goja.Symbol:
		panic(s.rt.NewTypeError("Cannot convert a Symbol value to a string"))
	}
	return s.rt.ToValue(v.String()).(goja.String)
}

// room checks that a string of n characters may be created.
func (s *sandbox) room(n int64) {
	if n > scripting.MaxString {
		s.tooLarge(n)
	}
	s.chargeString(n)
}

// chargeString counts a string of n characters.
func (s *sandbox) chargeString(n int64) {
	if err := s.budget.chargeString(n); err != nil {
		s.budget.check()
		s.tooLarge(n)
	}
}

func (s *sandbox) tooLarge(n int64) {
	s.rangeError("cannot make a string of %d characters: the limit is %d", n, scripting.MaxString)
}

// onText converts this and the arguments to texts before it calls functions
// that would convert them themselves, because a script's toString may return
// different texts each time. If this is undefined or null, the function itself
// refuses it.
func (s *sandbox) onText(call *goja.FunctionCall, args int) (this goja.String, ok bool) {
	if isUndefined(call.This) || goja.IsNull(call.This) {
		return nil, false
	}
	this = s.text(call.This)
	call.This = this
	call.Arguments = append([]goja.Value(nil), call.Arguments...)
	for i := range min(args, len(call.Arguments)) {
		call.Arguments[i] = s.text(call.Arguments[i])
	}
	return this, true
}

func (s *sandbox) repeat(f nativeFunc) nativeFunc {
	return func(call goja.FunctionCall) goja.Value {
		this, ok := s.onText(&call, 0)
		if !ok {
			return f(call)
		}
		n := call.Argument(0).ToNumber()
		call.Arguments = []goja.Value{n}
		if n := n.ToInteger(); n > 0 && n < 1<<53 {
			s.room(product(n, int64(this.Length())))
		}
		return f(call)
	}
}

// product returns a × b, limited to more than the maximum length of a string.
func product(a, b int64) int64 {
	if b > 0 && a > scripting.MaxString {
		a = scripting.MaxString + 1
	}
	return a * b
}

func (s *sandbox) pad(f nativeFunc) nativeFunc {
	return func(call goja.FunctionCall) goja.Value {
		this, ok := s.onText(&call, 0)
		if !ok {
			return f(call)
		}
		n := call.Argument(0).ToNumber()
		args := []goja.Value{n}
		if v := call.Argument(1); !isUndefined(v) {
			args = append(args, s.text(v))
		}
		call.Arguments = args
		if n := n.ToInteger(); n > int64(this.Length()) && (len(args) == 1 || args[1].(goja.String).Length() > 0) {
			s.room(n)
		}
		return f(call)
	}
}

func (s *sandbox) concatStrings(f nativeFunc) nativeFunc {
	return func(call goja.FunctionCall) goja.Value {
		this, ok := s.onText(&call, len(call.Arguments))
		if !ok {
			return f(call)
		}
		n := int64(this.Length())
		for _, a := range call.Arguments {
			n += int64(a.(goja.String).Length())
		}
		s.room(n)
		return f(call)
	}
}

func (s *sandbox) normalize(f nativeFunc) nativeFunc {
	return func(call goja.FunctionCall) goja.Value {
		if this, ok := s.onText(&call, 0); ok {
			s.room(3 * int64(this.Length()))
		}
		return f(call)
	}
}

// search limits the search for a long text.
func (s *sandbox) search(f nativeFunc) nativeFunc {
	return func(call goja.FunctionCall) goja.Value {
		for _, v := range []goja.Value{call.This, call.Argument(0)} {
			if object(v) != nil {
				return f(call) // its text is refused below if it is too long
			}
		}
		s.searchable(call.This, call.Argument(0))
		return f(call)
	}
}

// searchable checks that a search for a text in another one is not too long.
func (s *sandbox) searchable(in, what goja.Value) {
	a, ok := in.(goja.String)
	b, ok2 := what.(goja.String)
	if ok && ok2 && b.Length() > shortList && product(int64(a.Length()), int64(b.Length())) > maxSearch {
		s.rangeError("cannot search for a text of %d characters in one of %d", b.Length(), a.Length())
	}
}

// split limits the number of parts.
func (s *sandbox) split(f nativeFunc) nativeFunc {
	return func(call goja.FunctionCall) goja.Value {
		if object(call.Argument(0)) != nil {
			return f(call) // a function of patterns
		}
		this, ok := s.onText(&call, 0)
		if ok && this.Length() > maxItems {
			if sep := call.Argument(0); !isUndefined(sep) {
				if n := occurrences(this, s.text(sep)); n > maxItems {
					s.tooLong(int64(n))
				}
			}
		}
		got := f(call)
		if ok {
			s.ownParts(got, this)
		}
		return got
	}
}

// occurrences counts the occurrences of a text in another one.
func occurrences(in, what goja.String) int {
	if what.Length() == 0 {
		return in.Length() + 1
	}
	return strings.Count(in.String(), what.String())
}

// replaceText limits the result of replacing a text. Patterns have their own
// function.
func (s *sandbox) replaceText(f nativeFunc) nativeFunc {
	return func(call goja.FunctionCall) goja.Value {
		if object(call.Argument(0)) != nil {
			return f(call)
		}
		this, ok := s.onText(&call, 1)
		if !ok {
			return f(call)
		}
		what := s.text(call.Argument(0))
		s.searchable(this, what)
		call.Arguments = []goja.Value{what, s.replacement(call.Argument(1), this, func() int64 { return int64(occurrences(this, what)) })}
		return f(call)
	}
}

// replaceAllText is like replaceText, for replaceAll. For an empty text in a
// non-ASCII one, goja does not terminate; an equivalent empty pattern does.
func (s *sandbox) replaceAllText(f nativeFunc) nativeFunc {
	replace := s.replaceText(f)
	return func(call goja.FunctionCall) goja.Value {
		if t, ok := call.Argument(0).(goja.String); ok && t.Length() == 0 {
			empty, err := s.rt.New(s.pattern, s.rt.ToValue("(?:)"), s.rt.ToValue("g"))
			if err != nil {
				panic(err)
			}
			call.Arguments = []goja.Value{empty, call.Argument(1)}
		}
		return replace(call)
	}
}

// replacement returns the replacement for matches in a text: with itself, if
// the result is not too long. matches counts the matches.
func (s *sandbox) replacement(with goja.Value, in goja.String, matches func() int64) goja.Value {
	if fn, ok := goja.AssertFunction(with); ok {
		return s.rt.ToValue(s.answers(fn, in))
	}
	t := s.text(with)
	n := int64(in.Length())
	size := int64(t.Length())
	if size > 0 {
		if dollars := strings.Count(t.String(), "$"); dollars > 0 {
			size += product(int64(dollars), n) // a $ stands for at most the whole text
		}
	}
	if all := product(n+1, size); n+all > shortReplace {
		s.room(n + product(matches(), size))
	}
	return t
}

// shortReplace is the length up to which the result may grow without counting
// the matches.
const shortReplace = 1 << 20

// answers wraps a function that a script passes for the replacement of each
// match, and limits the total length of its results.
func (s *sandbox) answers(fn goja.Callable, in goja.String) func(goja.FunctionCall) goja.Value {
	all := int64(0)
	return func(call goja.FunctionCall) goja.Value {
		s.ownMatch(call.Arguments, in)
		v, err := fn(call.This, call.Arguments...)
		if err != nil {
			panic(err)
		}
		t := s.text(v)
		if all += int64(t.Length()); all > scripting.MaxString {
			s.tooLarge(all)
		}
		return t
	}
}

// raw limits String.raw for values that are not template literals of the
// script.
func (s *sandbox) raw(f nativeFunc) nativeFunc {
	return func(call goja.FunctionCall) goja.Value {
		if o := object(call.Argument(0)); o != nil {
			raw := o.Get("raw")
			if r := object(raw); r != nil {
				lent := s.lent(r)
				if n := s.lengthOf(lent); n > maxItems {
					s.tooLong(n)
				}
				size := int64(0)
				for i, v := range call.Arguments {
					if i > 0 {
						size += int64(s.text(v).Length())
					}
				}
				s.room(size)
				tmpl := s.rt.NewObject()
				if err := tmpl.Set("raw", lent); err != nil {
					panic(err)
				}
				call.Arguments = append([]goja.Value{tmpl}, call.Arguments[1:]...)
			}
		}
		return f(call)
	}
}

package js

import (
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf16"

	"github.com/dlclark/regexp2/v2"
	"github.com/dop251/goja"
	"github.com/dop251/goja/parser"

	"github.com/weir-run/weir/engine/regex"
)

// goja runs a pattern on RE2, Go's regexp, if it knows all of it, and on regexp2
// otherwise, which goes back and tries again; so it does for matches that do not
// begin at the start of a text, and for all matches in one that is not ASCII.
//
// What RE2 does takes a bounded time for each match, so the size of its input is
// bounded. All matches of a text may take that for each: where they may take long
// they are tried out before, asking the budget in between. What regexp2 does has
// a limit of time, which goja takes for no match: a call that took as long throws.
// goja is made to search for all matches on regexp2 one by one, by calls of exec,
// which look at the budget.

const (
	// maxPattern is how long a pattern may be, in characters.
	maxPattern = 8 << 10
	// maxLiterals is what the patterns of a file may take of memory.
	maxLiterals = 16 << 20
	// matchTime is what regexp2 may take for one match.
	matchTime = time.Second
	// regexp2Bytes is about what a character of a pattern takes on regexp2.
	regexp2Bytes = 200
	// maxMatches is how many matches goja may find in one go, of which each takes
	// some 100 bytes.
	maxMatches = 100_000
	// sizesBytes is what the patterns take whose sizes are remembered.
	sizesBytes = 4 << 20
	// easyText is how long a text may be that no pattern takes long for.
	easyText = 48
)

// limitPatterns bounds the patterns that goja runs on regexp2, in the whole
// process: they carry the limit from when they are compiled, which may be before
// there is a VM.
var limitPatterns = sync.OnceFunc(func() {
	regexp2.DefaultMatchTimeout = matchTime
	regexp2.SetTimeoutCheckPeriod(10 * time.Millisecond)
})

// patternClock is set when regexp2 may have started the goroutine that it takes
// the time by, which would run for seconds after the last match.
var patternClock atomic.Bool

func stopPatternClock() {
	if patternClock.Swap(false) {
		regexp2.StopTimeoutClock()
	}
}

// re2 returns what a pattern is on RE2; nil: it is none of goja's, or it is on
// regexp2.
func (s *sandbox) re2(o *goja.Object) (re *regexp.Regexp, ok bool) {
	if s.layout.kindOf(o).name != "regexpObject" {
		return nil, false
	}
	return s.layout.pattern(o).re2(), true
}

// parts are what decides how goja runs a pattern.
type parts struct {
	re       *regexp.Regexp // nil: it is on regexp2
	standard *bool          // goja searches for matches itself, without exec
}

func (s *sandbox) partsOf(o *goja.Object) (p parts, ok bool) {
	if p.re, ok = s.re2(o); ok {
		p.standard = s.layout.pattern(o).standard()
	}
	return p, ok
}

// match bounds what exec, test and search do: one match.
func (s *sandbox) match(f nativeFunc) nativeFunc {
	return func(call goja.FunctionCall) goja.Value {
		o, t := s.onPattern(&call)
		if o == nil {
			return f(call)
		}
		p, _ := s.partsOf(o)
		if p.re != nil && t.Length() > easyText {
			s.fits(s.sized(p.re), t)
		}
		if p.re != nil && !s.repeated(o) {
			return s.ownParts(f(call), t)
		}
		patternClock.Store(true)
		began := time.Now()
		got := f(call)
		if time.Since(began) >= matchTime-20*time.Millisecond {
			s.rangeError("the pattern took longer than %s for a text of %d characters: it goes back and tries again too often", matchTime, t.Length())
		}
		return s.ownParts(got, t)
	}
}

// matchAll bounds what goes over the matches of a text, of a pattern with a flag
// for that.
func (s *sandbox) matchAll(f nativeFunc) nativeFunc {
	return func(call goja.FunctionCall) goja.Value {
		o, t := s.onPattern(&call)
		if o == nil {
			return f(call)
		}
		p, _ := s.partsOf(o)
		if p.re != nil && !s.repeated(o) {
			if t.Length() > easyText {
				s.fits(s.sized(p.re), t)
			}
			return s.ownParts(f(call), t)
		}
		if s.try(p, t) || !*p.standard {
			return s.ownParts(f(call), t)
		}
		*p.standard = false
		defer func() { *p.standard = true }()
		return s.ownParts(f(call), t)
	}
}

// onPattern passes a text to a function of a pattern; nil: this is none.
func (s *sandbox) onPattern(call *goja.FunctionCall) (o *goja.Object, t goja.String) {
	o = object(call.This)
	if o == nil || s.layout.kindOf(o).name != "regexpObject" {
		return nil, nil
	}
	t = s.text(call.Argument(0))
	call.Arguments = append([]goja.Value{t}, call.Arguments[min(1, len(call.Arguments)):]...)
	return o, t
}

// repeated reports whether a pattern goes on from its lastIndex.
func (s *sandbox) repeated(o *goja.Object) bool {
	p := s.layout.pattern(o)
	return p.global() || p.sticky()
}

// isASCII reports whether goja searches a text as bytes.
func isASCII(t goja.String) bool { return t.Length() == len(t.String()) }

// try makes sure that goja can search for all matches in one go. It does not
// return when that exceeds the budget, and returns false when exec is to be called
// for each.
func (s *sandbox) try(p parts, t goja.String) bool {
	if p.re == nil || !isASCII(t) {
		return false
	}
	if t.Length() <= easyText {
		return true
	}
	re := s.sized(p.re)
	if re.Easy(t.Length()) {
		return true
	}
	s.fits(re, t)
	n := 0
	err := re.Each(t.String(), maxMatches+1, regex.Guard{Check: s.budget.stopped}, func([]int) error { n++; return nil })
	s.ended(err)
	return n <= maxMatches
}

// ended ends a call whose matching ended.
func (s *sandbox) ended(err error) {
	if err == nil {
		return
	}
	s.budget.check()
	s.rangeError("%v", err)
}

// fits refuses a text that RE2 may take too long for.
func (s *sandbox) fits(re *regex.Regexp, t goja.String) {
	if n := t.Length(); re.Steps(n) > regex.MaxSteps {
		s.rangeError("cannot match a text of %d characters by the pattern %q: at most %d characters", n, regex.Shorten(re.String()), regex.MaxSteps/re.Steps(1))
	}
}

// sized is what knows the size of a pattern.
func (s *sandbox) sized(re *regexp.Regexp) *regex.Regexp {
	if r := s.sizes[re]; r != nil {
		return r
	}
	r, err := regex.Of(re)
	if err != nil {
		s.rangeError("cannot use the pattern %q: %v", regex.Shorten(re.String()), err)
	}
	if s.sizesUsed += r.Bytes() + 200; s.sizesUsed > sizesBytes {
		clear(s.sizes)
		s.sizesUsed = r.Bytes()
	}
	s.sizes[re] = r
	return r
}

// plain is a pattern as the language makes one. Of another one, which a script
// changed, goja asks for a constructor, a pattern and its exec, and looks at none
// of them.
func (s *sandbox) plain(o *goja.Object) *goja.Object {
	if p, ok := s.partsOf(o); !ok || *p.standard && o.Prototype() == s.patternProto {
		return o
	}
	made, err := s.rt.New(s.pattern, s.rt.ToValue(o.Get("source")), s.rt.ToValue(o.Get("flags").String()))
	if err != nil {
		panic(err)
	}
	s.put(made, "lastIndex", o.Get("lastIndex"))
	return made
}

func (s *sandbox) put(o *goja.Object, name string, v goja.Value) {
	if err := o.Set(name, v); err != nil {
		panic(err)
	}
}

// matchIterator bounds Symbol.matchAll, which makes a pattern of its own.
func (s *sandbox) matchIterator(f nativeFunc) nativeFunc {
	return func(call goja.FunctionCall) goja.Value {
		if o := object(call.This); o != nil {
			call.This = s.plain(o)
		}
		return f(call)
	}
}

// splitMatches bounds Symbol.split, which makes a pattern of its own and searches
// for all its matches.
func (s *sandbox) splitMatches(f nativeFunc) nativeFunc {
	return func(call goja.FunctionCall) goja.Value {
		o := object(call.This)
		if o == nil {
			return f(call)
		}
		call.This = s.plain(o)
		o, t := s.onPattern(&call)
		if o == nil {
			return f(call)
		}
		if p, _ := s.partsOf(o); s.try(p, t) {
			return s.ownParts(f(call), t)
		}
		return s.ownParts(s.splitStepwise(o, t, call.Argument(1)), t)
	}
}

// splitStepwise is what goja does in Symbol.split, by a call of exec for each
// match.
func (s *sandbox) splitStepwise(o *goja.Object, t goja.String, limit goja.Value) goja.Value {
	most := int64(1<<32 - 1)
	if !isUndefined(limit) {
		most = int64(uint32(limit.ToInteger()))
	}
	var parts []any
	add := func(v goja.Value) bool {
		if parts = append(parts, v); len(parts) > maxItems {
			s.tooLong(int64(len(parts)))
		}
		return int64(len(parts)) < most
	}
	done := func() goja.Value { return s.rt.NewArray(parts...) }
	if most == 0 {
		return done()
	}
	text := o.Get("flags").String()
	if !strings.Contains(text, "g") {
		text += "g"
	}
	each, err := s.rt.New(s.pattern, o.Get("source"), s.rt.ToValue(strings.ReplaceAll(text, "y", "")))
	if err != nil {
		panic(err)
	}
	exec, _ := goja.AssertFunction(s.patternProto.Get("exec"))
	last, n, wide := 0, t.Length(), strings.Contains(text, "u")
	for at := 0; at <= n; {
		s.budget.check()
		s.put(each, "lastIndex", s.rt.ToValue(at))
		v, err := exec(each, t)
		if err != nil {
			panic(err)
		}
		m := object(v)
		if m == nil {
			break
		}
		from, to := int(m.Get("index").ToInteger()), int(each.Get("lastIndex").ToInteger())
		if at = to; from == to {
			if at++; wide && at < n && utf16.IsSurrogate(rune(t.CharAt(to))) && utf16.IsSurrogate(rune(t.CharAt(at))) {
				at++
			}
			if from == 0 && n > 0 || from == n && n > 0 {
				continue
			}
		}
		if n == 0 {
			return done() // it matches the empty text
		}
		if !add(t.Substring(last, from)) {
			return done()
		}
		last = to
		for i := range int(m.Get("length").ToInteger()) - 1 {
			if !add(m.Get(strconv.Itoa(i + 1))) {
				return done()
			}
		}
	}
	add(t.Substring(last, n))
	return done()
}

// replaceMatches bounds what replacing the matches of a pattern makes.
func (s *sandbox) replaceMatches(f nativeFunc) nativeFunc {
	match := s.matchAll(f)
	return func(call goja.FunctionCall) goja.Value {
		if o, t := s.onPattern(&call); o != nil {
			call.Arguments = []goja.Value{t, s.replacement(call.Argument(1), t, func() int64 { return s.matches(o, t) })}
		}
		return match(call)
	}
}

// matches is how often a pattern matches, at most.
func (s *sandbox) matches(o *goja.Object, t goja.String) int64 {
	p, ok := s.partsOf(o)
	if !ok || p.re == nil || !isASCII(t) {
		return int64(t.Length()) + 1
	}
	re, n := s.sized(p.re), int64(0)
	s.fits(re, t)
	if !s.repeated(o) {
		return 1
	}
	s.ended(re.Each(t.String(), -1, regex.Guard{Check: s.budget.stopped}, func([]int) error { n++; return nil }))
	return n
}

// shortPattern bounds patterns.
func (s *sandbox) shortPattern(f nativeFunc) nativeFunc {
	return func(call goja.FunctionCall) goja.Value {
		call.Arguments = s.patternArgs(call.Arguments)
		return f(call)
	}
}

func (s *sandbox) newPattern(build constructFunc) constructFunc {
	return func(args []goja.Value, newTarget *goja.Object) *goja.Object {
		return build(s.patternArgs(args), newTarget)
	}
}

func (s *sandbox) patternArgs(args []goja.Value) []goja.Value {
	s.budget.check()
	v := arg(args, 0)
	if isUndefined(v) {
		return args
	}
	text := func(v goja.Value) goja.Value {
		if isUndefined(v) {
			return v
		}
		return s.text(v)
	}
	source, flags := v, arg(args, 1)
	if o := object(v); o != nil {
		like := o.GetSymbol(goja.SymMatch) // asked once: a getter may answer otherwise
		switch {
		case s.layout.kindOf(o).name == "regexpObject":
			if isUndefined(flags) {
				return args // a copy
			}
			source = s.rt.ToValue(o.Get("source"))
		case !isUndefined(like) && like.ToBoolean():
			if source = o.Get("source"); isUndefined(flags) {
				flags = o.Get("flags")
			}
		}
	}
	t := text(source)
	flags = text(flags)
	if !isUndefined(t) {
		s.compilable(t.(goja.String), flags)
	}
	return append([]goja.Value{t, flags}, args[min(2, len(args)):]...)
}

// compilable refuses a pattern that is too long, or takes too much memory.
func (s *sandbox) compilable(t goja.String, flags goja.Value) {
	if t.Length() > maxPattern {
		s.throw(s.errors.syntaxError, "cannot compile a pattern of %d characters: the limit is %d", t.Length(), maxPattern)
	}
	f := ""
	if !isUndefined(flags) {
		f = flags.String()
	}
	if err := patternSize(t.String(), f).Fits(regex.MaxBytes); err != nil {
		s.throw(s.errors.syntaxError, "cannot compile pattern %q: %v", regex.Shorten(t.String()), err)
	}
}

// patternSize is what goja makes of a pattern, at most.
func patternSize(text, flags string) regex.Size {
	size := regex.Size{Bytes: regexp2Bytes * len(text)}
	re2, err := parser.TransformRegExp(text, strings.Contains(flags, "s"), strings.Contains(flags, "u"))
	if err != nil {
		return size // it is wrong, or is on regexp2
	}
	on := ""
	for _, f := range "msi" {
		if strings.ContainsRune(flags, f) {
			on += string(f)
		}
	}
	if on != "" {
		re2 = "(?" + on + ":" + re2 + ")"
	}
	if more, err := regex.Measure(re2); err == nil {
		more.Bytes += size.Bytes
		return more
	}
	return size
}

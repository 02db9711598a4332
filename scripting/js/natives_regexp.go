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

// goja runs a pattern on RE2, Go's regexp, if RE2 supports all of it, and
// otherwise on regexp2, which backtracks. It also uses regexp2 for matches that
// do not begin at the start of a text, and for all matches in a non-ASCII text.
//
// RE2 takes limited time for each match, so the size of its input is limited.
// Searching for all matches of a text may take that time for each match: if
// this may take long, the matches are searched before, with budget checks in
// between. regexp2 has a time limit; goja ignores its error and reports no
// match, so a call that exceeded the limit throws. For all matches on regexp2,
// goja is made to search one by one, with calls of exec, which check the
// budget.

const (
	// maxPattern is the maximum length of a pattern, in characters.
	maxPattern = 8 << 10
	// maxLiterals is the memory limit for the patterns of a file.
	maxLiterals = 16 << 20
	// matchTime is the time limit of regexp2 for one match.
	matchTime = time.Second
	// regexp2Bytes is the approximate memory per character of a pattern on
	// regexp2.
	regexp2Bytes = 200
	// maxMatches is the maximum number of matches that goja may find in one call.
	// Each takes about 100 bytes.
	maxMatches = 100_000
	// sizesBytes is the memory limit for patterns whose sizes are cached.
	sizesBytes = 4 << 20
	// easyText is the length of a text up to which no pattern takes long.
	easyText = 48
)

// limitPatterns sets the time limit of regexp2 patterns for the whole process.
// A pattern gets the limit when it is compiled, which may be before there is a
// VM.
var limitPatterns = sync.OnceFunc(func() {
	regexp2.DefaultMatchTimeout = matchTime
	regexp2.SetTimeoutCheckPeriod(10 * time.Millisecond)
})

// patternClock is set if regexp2 may have started its clock goroutine, which
// would run for seconds after the last match.
var patternClock atomic.Bool

func stopPatternClock() {
	if patternClock.Swap(false) {
		regexp2.StopTimeoutClock()
	}
}

// re2 returns the RE2 form of a pattern. It returns nil if o is not a pattern
// of goja, or if it is on regexp2.
func (s *sandbox) re2(o *goja.Object) (re *regexp.Regexp, ok bool) {
	if s.layout.kindOf(o).name != "regexpObject" {
		return nil, false
	}
	return s.layout.pattern(o).re2(), true
}

// parts contains the properties that determine how goja runs a pattern.
type parts struct {
	re       *regexp.Regexp // nil if it is on regexp2
	standard *bool          // goja searches for matches itself, without exec
}

func (s *sandbox) partsOf(o *goja.Object) (p parts, ok bool) {
	if p.re, ok = s.re2(o); ok {
		p.standard = s.layout.pattern(o).standard()
	}
	return p, ok
}

// match limits exec, test and search, which search for one match.
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

// matchAll limits functions that iterate over the matches of a text, for a
// pattern with a flag for that.
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

// onPattern converts the arguments of a pattern's method. It returns nil if
// this is not a pattern.
func (s *sandbox) onPattern(call *goja.FunctionCall) (o *goja.Object, t goja.String) {
	o = object(call.This)
	if o == nil || s.layout.kindOf(o).name != "regexpObject" {
		return nil, nil
	}
	t = s.text(call.Argument(0))
	call.Arguments = append([]goja.Value{t}, call.Arguments[min(1, len(call.Arguments)):]...)
	return o, t
}

// repeated reports whether a pattern continues from its lastIndex.
func (s *sandbox) repeated(o *goja.Object) bool {
	p := s.layout.pattern(o)
	return p.global() || p.sticky()
}

// isASCII reports whether goja searches a text as bytes.
func isASCII(t goja.String) bool { return t.Length() == len(t.String()) }

// try checks that goja can search for all matches in one call. It does not
// return if that exceeds the budget. It returns false if exec must be called
// for each match.
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

// ended ends a call whose matching was stopped.
func (s *sandbox) ended(err error) {
	if err == nil {
		return
	}
	s.budget.check()
	s.rangeError("%v", err)
}

// fits refuses a text that may take RE2 too long.
func (s *sandbox) fits(re *regex.Regexp, t goja.String) {
	if n := t.Length(); re.Steps(n) > regex.MaxSteps {
		s.rangeError("cannot match a text of %d characters by the pattern %q: at most %d characters", n, regex.Shorten(re.String()), regex.MaxSteps/re.Steps(1))
	}
}

// sized returns a pattern with its size.
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

// plain returns a pattern without a script's changes. For a changed pattern,
// goja would read a constructor, a pattern and its exec, without checks.
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

// matchIterator limits Symbol.matchAll, which creates its own pattern.
func (s *sandbox) matchIterator(f nativeFunc) nativeFunc {
	return func(call goja.FunctionCall) goja.Value {
		if o := object(call.This); o != nil {
			call.This = s.plain(o)
		}
		return f(call)
	}
}

// splitMatches limits Symbol.split, which creates its own pattern and searches
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

// splitStepwise implements Symbol.split like goja, with a call of exec for each
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

// replaceMatches limits the result of replacing the matches of a pattern.
func (s *sandbox) replaceMatches(f nativeFunc) nativeFunc {
	match := s.matchAll(f)
	return func(call goja.FunctionCall) goja.Value {
		if o, t := s.onPattern(&call); o != nil {
			call.Arguments = []goja.Value{t, s.replacement(call.Argument(1), t, func() int64 { return s.matches(o, t) })}
		}
		return match(call)
	}
}

// matches returns the maximum number of matches of a pattern.
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

// shortPattern limits patterns.
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
		like := o.GetSymbol(goja.SymMatch) // read once, because a getter may return another value
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

// patternSize returns the maximum size of goja's compiled pattern.
func patternSize(text, flags string) regex.Size {
	size := regex.Size{Bytes: regexp2Bytes * len(text)}
	re2, err := parser.TransformRegExp(text, strings.Contains(flags, "s"), strings.Contains(flags, "u"))
	if err != nil {
		return size // it is invalid, or uses regexp2
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

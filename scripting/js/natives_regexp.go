package js

import (
	"fmt"
	"reflect"
	"regexp"
	"regexp/syntax"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/dlclark/regexp2/v2"
	"github.com/dop251/goja"
)

// goja runs a pattern on RE2, Go's regexp, if it knows all of it, and on regexp2
// otherwise, which goes back and tries again, and for matches that do not begin
// at the start of a text. What RE2 does takes a bounded time for each match, so
// the size of its input is bounded, and the number of matches is tried out where
// there may be many. What regexp2 does has a limit of time, which goja takes for
// no match: a call that took as long throws.

const (
	// maxPattern is how long a pattern may be, in characters.
	maxPattern = 8 << 10
	// matchTime is what regexp2 may take for one match.
	matchTime = time.Second
	// matchWork bounds the instructions of a pattern times the characters of a
	// text, for one match.
	matchWork = 1 << 26
	// regexp2Bytes is about what a character of a pattern takes on regexp2.
	regexp2Bytes = 200
	// easyText is how long a text may be that no pattern takes long for.
	easyText = 4 << 10
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

// patternLayout is where goja's regexpObject has its parts.
type patternLayout struct {
	pattern, standard uintptr // in regexpObject
	re2, source       uintptr // in regexpPattern
}

var thePatternLayout = sync.OnceValue(func() *patternLayout {
	l := theLayout()
	rt := goja.New()
	o, err := rt.New(rt.Get("RegExp"), rt.ToValue("x"))
	if err != nil {
		panic(fmt.Sprintf("BUG: cannot make a pattern: %v", err))
	}
	t := reflect.ValueOf(o).Elem().FieldByName("self").Elem().Type().Elem()
	pattern := l.field(t, "pattern").Type.Elem()
	if re2 := l.field(pattern, "regexpWrapper"); !re2.Type.Elem().ConvertibleTo(reflect.TypeFor[regexp.Regexp]()) {
		l.gone(pattern, "regexp.Regexp")
	}
	return &patternLayout{
		pattern: l.offset(t, "pattern"), standard: l.offset(t, "standard"),
		re2: l.offset(pattern, "regexpWrapper"), source: l.offset(pattern, "src"),
	}
})

// re2 returns what a pattern is on RE2; nil: it is none of goja's, or it is on
// regexp2.
func (s *sandbox) re2(o *goja.Object) (re *regexp.Regexp, ok bool) {
	if s.layout.kindOf(o).name != "regexpObject" {
		return nil, false
	}
	l := thePatternLayout()
	p := *(*unsafe.Pointer)(unsafe.Add(s.layout.data(o), l.pattern))
	return *(**regexp.Regexp)(unsafe.Add(p, l.re2)), true
}

// stepwise makes goja search for each match by a call of exec.
func (s *sandbox) stepwise(o *goja.Object) {
	*(*bool)(unsafe.Add(s.layout.data(o), thePatternLayout().standard)) = false
}

// match bounds what a pattern does with a text.
func (s *sandbox) match(f nativeFunc) nativeFunc {
	return func(call goja.FunctionCall) goja.Value {
		o := object(call.This)
		if o == nil {
			return f(call)
		}
		re, ok := s.re2(o)
		if !ok {
			return f(call)
		}
		t := s.text(call.Argument(0))
		args := append([]goja.Value{t}, call.Arguments[min(1, len(call.Arguments)):]...)
		call.Arguments = args
		if re == nil {
			s.stepwise(o)
		} else if t.Length() > easyText {
			s.fits(re, t)
		}
		slow := s.onRegexp2(o, re)
		if slow {
			patternClock.Store(true)
		}
		began := time.Now()
		got := f(call)
		if time.Since(began) >= matchTime-20*time.Millisecond && slow {
			s.rangeError("the pattern took longer than %s for a text of %d characters: it goes back and tries again too often", matchTime, t.Length())
		}
		return got
	}
}

// onRegexp2 reports whether a call may have run on regexp2.
func (s *sandbox) onRegexp2(o *goja.Object, re *regexp.Regexp) bool {
	return re == nil || o.Get("global").ToBoolean() || o.Get("sticky").ToBoolean()
}

// fits refuses a text that RE2 may take too long for, and tries out how long all
// matches take where there may be many: each may look at all of the text.
func (s *sandbox) fits(re *regexp.Regexp, t goja.String) {
	size := s.size(re)
	if product(int64(size), int64(t.Length())) > matchWork {
		s.rangeError("cannot match a text of %d characters with a pattern of %d instructions: at most %d characters", t.Length(), size, matchWork/size)
	}
	in := t.String()
	for n := 1; ; n *= 2 {
		s.budget.check()
		if len(re.FindAllStringIndex(in, n)) < n {
			return
		}
	}
}

// size is how many instructions a pattern has.
func (s *sandbox) size(re *regexp.Regexp) int {
	if n, ok := s.sizes[re]; ok {
		return n
	}
	n := 1
	if tree, err := syntax.Parse(re.String(), syntax.Perl); err == nil {
		if prog, err := syntax.Compile(tree.Simplify()); err == nil {
			n = len(prog.Inst)
		}
	}
	if len(s.sizes) > 100 {
		clear(s.sizes)
	}
	s.sizes[re] = n
	return n
}

// replaceMatches bounds what replacing the matches of a pattern makes.
func (s *sandbox) replaceMatches(f nativeFunc) nativeFunc {
	match := s.match(f)
	return func(call goja.FunctionCall) goja.Value {
		if o := object(call.This); o != nil {
			t := s.text(call.Argument(0))
			with := call.Argument(1)
			if t.Length() > easyText/4 {
				with = s.bounded(with, t, s.matches(o, t))
			}
			call.Arguments = []goja.Value{t, with}
		}
		return match(call)
	}
}

// matches is how often a pattern matches, at most.
func (s *sandbox) matches(o *goja.Object, t goja.String) int64 {
	re, ok := s.re2(o)
	if !ok || re == nil {
		return int64(t.Length()) + 1
	}
	if t.Length() > easyText {
		s.fits(re, t)
	}
	return int64(len(re.FindAllStringIndex(t.String(), -1)))
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
	if o := object(v); o != nil && (s.layout.kindOf(o).name == "regexpObject" || !isUndefined(o.GetSymbol(goja.SymMatch))) {
		return args
	}
	t := s.text(v)
	if t.Length() > maxPattern {
		s.throw(s.errors.syntaxError, "cannot compile a pattern of %d characters: the limit is %d", t.Length(), maxPattern)
	}
	return append([]goja.Value{t}, args[1:]...)
}

package js

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/dop251/goja"

	"github.com/weir-run/weir/scripting"
)

const (
	// maxShownDepth is the maximum depth of shown values, maxShownItems the
	// maximum number of shown list items.
	maxShownDepth = 10
	maxShownItems = 1000
	// maxFlat is the maximum length of a value that is shown in one line.
	maxFlat = 70
)

var plainKey = regexp.MustCompile(`^[A-Za-z_$][A-Za-z0-9_$]*$`)

// show formats a value for people. Short values are on one line; keys are
// sorted. The format cannot be parsed.
func (t *test) show(x goja.Value) string {
	if s := t.showFlat(x); len(s) <= maxFlat && !strings.Contains(s, "\n") {
		return s
	}
	return t.showDeep(x)
}

func (t *test) showFlat(x goja.Value) string { return (&shower{t: t, flat: true}).value(x) }

func (t *test) showDeep(x goja.Value) string { return (&shower{t: t}).value(x) }

// showAll formats a value without leaving anything out.
func (t *test) showAll(x goja.Value) string {
	if s := (&shower{t: t, flat: true, all: true}).value(x); len(s) <= maxFlat {
		return s
	}
	return (&shower{t: t, all: true}).value(x)
}

// shower writes one value.
type shower struct {
	t     *test
	flat  bool
	all   bool                 // nothing is left out
	to    *scripting.Statement // whose value it is, at a prompt
	above []*goja.Object
}

func (s *shower) value(x goja.Value) string {
	x = orUndefined(x)
	o := objectOf(x)
	switch {
	case o != nil:
		return s.object(o)
	case goja.IsString(x):
		text := x.String()
		if s.to == nil && len(s.above) == 0 && strings.Contains(text, "\n") {
			return text // unchanged, for a difference by lines
		}
		return strconv.Quote(text)
	case goja.IsBigInt(x):
		return x.String() + "n"
	}
	if n, ok := primitive(x).(float64); ok && n == 0 && math.Signbit(n) {
		return "-0"
	}
	if sym, ok := x.(*goja.Symbol); ok {
		return "Symbol(" + sym.String() + ")"
	}
	return x.String()
}

func (s *shower) object(o *goja.Object) string {
	if m := s.t.likes[o]; m != nil {
		return m.String()
	}
	if sp := s.t.spies[o]; sp != nil {
		return "[Function " + sp.label() + "]"
	}
	if x := boxed(o); x != nil {
		if h, ok := x.(*scripting.Object); ok {
			return boxText(h)
		}
		return boxText(x)
	}
	if s.to != nil && (hostOf(o) != nil || arrayOf(o) != nil || o == s.t.v.batch || o == s.t.v.logBatch) {
		return s.hostedText(o)
	}
	if slices.Contains(s.above, o) {
		return "[Circular]"
	}
	class := o.ClassName()
	if isFunction(o) {
		name := o.Get("name")
		if name == nil || name.String() == "" {
			return "[Function]"
		}
		return "[Function " + name.String() + "]"
	}
	switch class {
	case "Date":
		if t := s.t.call(o, "getTime"); t.ToFloat() != t.ToFloat() {
			return "Invalid Date"
		}
		return s.t.call(o, "toISOString").String()
	case "RegExp":
		return o.String()
	case "Error":
		return "[" + messageOf(o) + "]"
	case "Number", "String", "Boolean":
		return class + " {" + s.value(s.t.v.unboxed(o)) + "}"
	}
	if len(s.above) == maxValueDepth {
		s.t.v.raise(fmt.Errorf("cannot show a value that nests deeper than %d", maxValueDepth))
	}
	if len(s.above) == maxShownDepth && !s.all || s.to != nil && len(s.above) == scripting.MaxShownDepth {
		return "[" + class + "]"
	}
	s.above = append(s.above, o)
	defer func() { s.above = s.above[:len(s.above)-1] }()
	switch collection(o) {
	case "Map":
		return s.entries("Map", o, func(e *goja.Object) string { return s.value(e.Get("0")) + " => " + s.value(e.Get("1")) })
	case "Set":
		return s.entries("Set", o, func(e *goja.Object) string { return s.value(e.Get("0")) })
	}
	if class == "Array" {
		n := int(s.t.v.sandbox.lengthOf(o))
		return s.list("[", "]", "", s.shown(n), n, func(i int) string { return s.value(o.Get(strconv.Itoa(i))) })
	}
	return s.properties(o)
}

func (s *shower) properties(o *goja.Object) string {
	keys := s.t.v.keys(o)
	slices.Sort(keys)
	before := ""
	if name := s.className(o); name != "Object" {
		before = name + " "
	}
	return s.list(before+"{", "}", " ", s.shown(len(keys)), len(keys), func(i int) string {
		k := keys[i]
		shown := k
		if !plainKey.MatchString(k) {
			shown = strconv.Quote(k)
		}
		return shown + ": " + s.value(o.Get(k))
	})
}

// className returns the name of an object's class.
func (s *shower) className(o *goja.Object) string {
	if c := objectOf(orUndefined(o.Get("constructor"))); c != nil && isFunction(c) {
		if name := c.Get("name"); name != nil && name.String() != "" {
			return name.String()
		}
	}
	if class := o.ClassName(); class != "Object" {
		return class
	}
	return "Object"
}

func (s *shower) entries(name string, o *goja.Object, one func(*goja.Object) string) string {
	all := s.t.entries(o)
	return s.list(name+" {", "}", " ", s.shown(len(all)), len(all), func(i int) string { return one(all[i]) })
}

// list writes the first n of all items. pad is written inside the brackets if
// they are on one line.
func (s *shower) list(open, end, pad string, n, all int, item func(i int) string) string {
	parts := make([]string, 0, n+1)
	for i := range n {
		s.t.v.must(s.t.v.budget.charge(2))
		parts = append(parts, item(i))
	}
	if n < all {
		parts = append(parts, "… and "+strconv.Itoa(all-n)+" more")
	}
	switch {
	case len(parts) == 0:
		return open + end
	case s.flat:
		return open + pad + strings.Join(parts, ", ") + pad + end
	}
	indent := strings.Repeat("  ", len(s.above))
	return open + "\n" + indent + strings.Join(parts, ",\n"+indent) + ",\n" + strings.Repeat("  ", len(s.above)-1) + end
}

// shown is how many of n items are shown.
func (s *shower) shown(n int) int {
	if s.all {
		return n
	}
	if s.to != nil {
		return min(n, scripting.MaxShownItems)
	}
	return min(n, maxShownItems)
}

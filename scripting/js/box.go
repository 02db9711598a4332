package js

import (
	"encoding/binary"
	"math"
	"math/big"
	"strings"
	"unsafe"

	"github.com/dop251/goja"

	"github.com/weir-run/weir/engine/golayout"
	"github.com/weir-run/weir/engine/view"
)

// A number or a string that Go hands to a script becomes an interface, which
// costs an allocation each. These make interfaces that point at memory which
// is there already and is never written again. A goja whose values are not what
// they were makes them itself.

// engine is asked what goja's values are like. No script runs in it.
var engine = goja.New()

var trueValue, falseValue, emptyText = engine.ToValue(true), engine.ToValue(false), engine.ToValue("")

// point makes a value of what is at p, which must never be written to again.
func point(tab, p unsafe.Pointer) (x goja.Value) {
	*(*golayout.Interface)(unsafe.Pointer(&x)) = golayout.Interface{Type: tab, Data: p}
	return x
}

// numbers makes number values, many to an allocation.
type numbers struct {
	floats []float64
	ints   []int64
}

const numberBlock = 128

// small are the whole numbers that come most: of rows, of states.
var small = func() (out [1024]goja.Value) {
	for i := range out {
		out[i] = engine.ToValue(i)
	}
	return out
}()

// value is a number of a script. A whole number is one to goja as well, which
// tells them from others by their type.
func (n *numbers) value(f float64) goja.Value {
	if i := int64(f); float64(i) == f && i <= maxSafe && i >= -maxSafe && (i != 0 || !math.Signbit(f)) {
		return n.int(i)
	}
	if floatTab == nil {
		return engine.ToValue(f)
	}
	if len(n.floats) == cap(n.floats) {
		n.floats = make([]float64, 0, numberBlock)
	}
	n.floats = append(n.floats, f)
	return point(floatTab, unsafe.Pointer(&n.floats[len(n.floats)-1]))
}

// int is a whole number of a script, a BigInt beyond 2^53.
func (n *numbers) int(i int64) goja.Value {
	switch {
	case i >= 0 && i < int64(len(small)):
		return small[i]
	case i > maxSafe || i < -maxSafe:
		return engine.ToValue(big.NewInt(i))
	case intTab == nil:
		return engine.ToValue(i)
	}
	if len(n.ints) == cap(n.ints) {
		n.ints = make([]int64, 0, numberBlock)
	}
	n.ints = append(n.ints, i)
	return point(intTab, unsafe.Pointer(&n.ints[len(n.ints)-1]))
}

// number reads a number, which a BigInt and a text of digits are not.
func number(x goja.Value) (f float64, ok bool) {
	switch i := (*golayout.Interface)(unsafe.Pointer(&x)); {
	case floatTab == nil:
		return exportedNumber(x)
	case i.Type == floatTab:
		return *(*float64)(i.Data), true
	case i.Type == intTab:
		return float64(*(*int64)(i.Data)), true
	}
	return 0, false
}

// exportedNumber is number as goja reads it.
func exportedNumber(x goja.Value) (f float64, ok bool) {
	switch n := primitive(x).(type) {
	case int64:
		return float64(n), true
	case float64:
		return n, true
	}
	return 0, false
}

// boolean reads true or false.
func boolean(x goja.Value) (b, ok bool) {
	switch i := (*golayout.Interface)(unsafe.Pointer(&x)); {
	case boolTab == nil:
		b, ok = primitive(x).(bool)
		return b, ok
	case i.Type == boolTab:
		return *(*bool)(i.Data), true
	}
	return false, false
}

func isBoolean(x goja.Value) bool {
	_, ok := boolean(x)
	return ok
}

// stringOf reads a string.
func stringOf(x goja.Value) (s string, ok bool) {
	if i := (*golayout.Interface)(unsafe.Pointer(&x)); i.Type == asciiTab && asciiTab != nil {
		return *(*string)(i.Data), true
	}
	if s, ok := x.(goja.String); ok {
		return s.String(), true
	}
	return "", false
}

// ascii reports whether all bytes of s are: goja has a string as it is then,
// and as UTF-16 otherwise.
func ascii(s string) bool {
	if asciiTab == nil {
		return false // goja is to find out
	}
	b := unsafe.Slice(unsafe.StringData(s), len(s))
	for ; len(b) >= 8; b = b[8:] {
		if binary.LittleEndian.Uint64(b)&0x8080808080808080 != 0 {
			return false
		}
	}
	for _, c := range b {
		if c >= 0x80 {
			return false
		}
	}
	return true
}

// texts makes string values.
type texts struct {
	view.Texts
	wide map[string]goja.Value // short ones that goja has as UTF-16
	// given counts the bytes of texts that the script got and may keep, since the last
	// look at the memory of the VM.
	given int64
}

const (
	shortText = 64 // bytes that one may have to be taken for one that comes again
	maxWide   = 1024
)

// value is a string of a script. s may be a part of something larger.
func (t *texts) value(s string) goja.Value {
	switch {
	case s == "":
		return emptyText
	case !ascii(s):
		return t.wideText(s)
	case len(s) > shortText:
		t.given += int64(len(s))
		return point(asciiTab, unsafe.Pointer(t.Long(s)))
	}
	return point(asciiTab, unsafe.Pointer(t.Short(s)))
}

func (t *texts) wideText(s string) goja.Value {
	if len(s) > shortText {
		t.given += int64(len(s))
		return engine.ToValue(s)
	}
	x, ok := t.wide[s]
	if !ok {
		if len(t.wide) >= maxWide || t.wide == nil {
			t.wide = map[string]goja.Value{}
		}
		s = strings.Clone(s)
		x = engine.ToValue(s)
		t.wide[s] = x
	}
	return x
}

// fixed is the string at p, which must never be written to again.
func (t *texts) fixed(p *string) goja.Value {
	if ascii(*p) {
		t.given += int64(len(*p))
		return point(asciiTab, unsafe.Pointer(p))
	}
	return t.value(*p)
}

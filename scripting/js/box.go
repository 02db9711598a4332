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

// A number or a string that Go passes to a script becomes an interface, which
// costs one allocation each. The functions below create interfaces that point
// to existing immutable memory. If goja's values have another layout, goja
// creates them itself.

// engine is used to inspect goja's values. It runs no scripts.
var engine = goja.New()

var trueValue, falseValue, emptyText = engine.ToValue(true), engine.ToValue(false), engine.ToValue("")

// point returns a value that points to p, which must be immutable.
func point(tab, p unsafe.Pointer) (x goja.Value) {
	*(*golayout.Interface)(unsafe.Pointer(&x)) = golayout.Interface{Type: tab, Data: p}
	return x
}

// numbers creates number values, many per allocation.
type numbers struct {
	floats []float64
	ints   []int64
}

const numberBlock = 128

// small are the most common integers, such as row numbers.
var small = func() (out [1024]goja.Value) {
	for i := range out {
		out[i] = engine.ToValue(i)
	}
	return out
}()

// value converts a number to a script's value. goja has a separate type for
// integers.
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

// int converts an integer to a script's value. Beyond 2^53, it is a BigInt.
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

// number returns the value of a number. ok is false for a BigInt or a string of
// digits.
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

// exportedNumber is like number, but uses goja to read the value.
func exportedNumber(x goja.Value) (f float64, ok bool) {
	switch n := primitive(x).(type) {
	case int64:
		return float64(n), true
	case float64:
		return n, true
	}
	return 0, false
}

// boolean returns the value of a boolean.
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

// stringOf returns the value of a string.
func stringOf(x goja.Value) (s string, ok bool) {
	if i := (*golayout.Interface)(unsafe.Pointer(&x)); i.Type == asciiTab && asciiTab != nil {
		return *(*string)(i.Data), true
	}
	if s, ok := x.(goja.String); ok {
		return s.String(), true
	}
	return "", false
}

// ascii reports whether all bytes of s are ASCII. goja stores such a string as
// it is, and all other strings as UTF-16.
func ascii(s string) bool {
	if asciiTab == nil {
		return false // let goja decide
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

// texts creates string values.
type texts struct {
	view.Texts
	wide map[string]goja.Value // short strings that goja stores as UTF-16
	// given counts the bytes of texts that the script received and may keep, since
	// the VM's memory was last measured.
	given int64
}

const (
	shortText = 64 // maximum length in bytes of texts that are cached because they may repeat
	maxWide   = 1024
)

// value converts a string to a script's value. s may be a substring of a larger
// one.
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

// fixed converts the string at p, which must be immutable.
func (t *texts) fixed(p *string) goja.Value {
	if ascii(*p) {
		t.given += int64(len(*p))
		return point(asciiTab, unsafe.Pointer(p))
	}
	return t.value(*p)
}

package lua

import (
	"strings"
	"unsafe"

	lua "github.com/yuin/gopher-lua"
)

// A number or a string that Go hands to a script becomes an interface, which
// costs an allocation each. These make interfaces that point at memory which
// is there already and is never written again.

type iface struct{ tab, data unsafe.Pointer }

var numTab, strTab = tabOf(lua.LNumber(1.5)), tabOf(lua.LString("x"))

func tabOf(v lua.LValue) unsafe.Pointer { return (*iface)(unsafe.Pointer(&v)).tab }

// boxNumber returns the number at p, which must never be written to again.
func boxNumber(p *float64) (v lua.LValue) {
	*(*iface)(unsafe.Pointer(&v)) = iface{numTab, unsafe.Pointer(p)}
	return v
}

// boxString returns the string at p, which must never be written to again.
func boxString(p *string) (v lua.LValue) {
	*(*iface)(unsafe.Pointer(&v)) = iface{strTab, unsafe.Pointer(p)}
	return v
}

// numbers makes number values, many to an allocation.
type numbers struct{ block []float64 }

const numberBlock = 128

func (n *numbers) value(f float64) lua.LValue {
	if len(n.block) == cap(n.block) {
		n.block = make([]float64, 0, numberBlock)
	}
	n.block = append(n.block, f)
	return boxNumber(&n.block[len(n.block)-1])
}

// interned holds string values that come again and again: label names and
// values. It is cleared when it is full.
type interned map[string]lua.LValue

const (
	maxInterned     = 8192
	maxInternedSize = 256
)

func (in *interned) value(s string) lua.LValue {
	if v, ok := (*in)[s]; ok {
		return v
	}
	if len(s) > maxInternedSize {
		return lua.LString(s)
	}
	if len(*in) >= maxInterned || *in == nil {
		*in = make(interned, 64)
	}
	// s is a part of a series' labels and must not keep them all alive.
	s = strings.Clone(s)
	v := lua.LValue(lua.LString(s))
	(*in)[s] = v
	return v
}

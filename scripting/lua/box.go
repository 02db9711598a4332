package lua

import (
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

// maxShort is how long labels and what is like them may be to be taken for
// texts that come again.
const maxShort = 256

// label is a name or a value of a label in a script.
func (v *vm) label(s string) lua.LValue {
	if len(s) > maxShort {
		return lua.LString(s)
	}
	return boxString(v.texts.Short(s))
}

package lua

import (
	"unsafe"

	lua "github.com/yuin/gopher-lua"

	"github.com/weir-run/weir/engine/golayout"
)

// A number or a string that Go hands to a script becomes an interface, which
// costs an allocation each. These make interfaces that point at memory which
// is there already and is never written again. With a Go whose interfaces are laid
// out differently, they allocate.

// The words that interfaces begin with; nil: they are not known. They are read for
// every value, hence variables and no function.
var numTab, strTab = tabs(golayout.CheckInterfaces())

func tabs(err error) (num, str unsafe.Pointer) {
	if err != nil {
		return nil, nil
	}
	return tabOf(lua.LNumber(1.5)), tabOf(lua.LString("x"))
}

func tabOf(v lua.LValue) unsafe.Pointer { return (*golayout.Interface)(unsafe.Pointer(&v)).Type }

// boxNumber returns the number at p, which must never be written to again.
func boxNumber(p *float64) (v lua.LValue) {
	if numTab == nil {
		return lua.LNumber(*p)
	}
	*(*golayout.Interface)(unsafe.Pointer(&v)) = golayout.Interface{Type: numTab, Data: unsafe.Pointer(p)}
	return v
}

// boxString returns the string at p, which must never be written to again.
func boxString(p *string) (v lua.LValue) {
	if strTab == nil {
		return lua.LString(*p)
	}
	*(*golayout.Interface)(unsafe.Pointer(&v)) = golayout.Interface{Type: strTab, Data: unsafe.Pointer(p)}
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
func (vs *values) label(s string) lua.LValue {
	if len(s) > maxShort {
		return lua.LString(s)
	}
	return boxString(vs.texts.Short(s))
}

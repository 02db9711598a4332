package lua

import (
	"reflect"
	"unsafe"

	lua "github.com/yuin/gopher-lua"
)

// try is PCall. gopher-lua's, without a handler, closes the upvalues of every
// live frame on an error, which cuts the caller's closures off from its locals,
// and formats a stack trace; with one, it closes none, and a closure that
// escaped from a function that failed reads what comes after in the stack. So
// there is always a handler here, and it first closes what is left behind.
func (v *vm) try(L *lua.LState, nargs, results int, handler *lua.LFunction) error {
	if handler == nil {
		handler = v.identity
	}
	handled := (*bool)(unsafe.Add(unsafe.Pointer(L), stateFields.hasErrorFunc))
	before, n := *handled, len(v.bases)
	v.bases = append(v.bases, registryTop(L)-nargs-1)
	err := L.PCall(nargs, results, handler)
	v.bases = v.bases[:n]
	*handled = before // PCall unsays it, although the one around it still has its own
	return err
}

// catchOnly is a handler that keeps the error as it is.
func (v *vm) catchOnly(L *lua.LState) int {
	v.closeUpvalues(L)
	L.SetTop(1)
	return 1
}

// closeUpvalues gives functions a copy of the locals they hold on to that are
// about to be given up: those above the innermost try. A handler calls it.
func (v *vm) closeUpvalues(L *lua.LState) {
	base := v.bases[len(v.bases)-1]
	link := (**upvalue)(unsafe.Add(unsafe.Pointer(L), stateFields.uvcache)) // in order of index
	for *link != nil && (*link).index < base {
		link = &(*link).next
	}
	uv := *link
	*link = nil
	for ; uv != nil; uv = uv.next {
		(*lua.Upvalue)(unsafe.Pointer(uv)).Close()
	}
}

// upvalue is the beginning of lua.Upvalue.
type upvalue struct {
	next  *upvalue
	reg   unsafe.Pointer
	index int
}

// registry is the beginning of gopher-lua's: the stack of values.
type registry struct {
	array []lua.LValue
	top   int
}

func registryOf(L *lua.LState) *registry {
	return *(**registry)(unsafe.Add(unsafe.Pointer(L), stateFields.reg))
}

func registryTop(L *lua.LState) int { return registryOf(L).top }

// stateFields are where an LState has what it does not show.
var stateFields = func() (at struct{ hasErrorFunc, uvcache, reg uintptr }) {
	t := reflect.TypeFor[lua.LState]()
	find := func(in reflect.Type, name, kind string) reflect.StructField {
		f, ok := in.FieldByName(name)
		if !ok || f.Type.String() != kind {
			panic("BUG: " + in.String() + " has no " + name + " " + kind + " any more: look at its PCall again")
		}
		return f
	}
	at.hasErrorFunc = find(t, "hasErrorFunc", "bool").Offset
	at.uvcache = find(t, "uvcache", "*lua.Upvalue").Offset
	reg := find(t, "reg", "*lua.registry")
	at.reg = reg.Offset
	own, ours := reflect.TypeFor[lua.Upvalue](), reflect.TypeFor[upvalue]()
	for _, f := range []struct{ name, kind string }{{"next", "*lua.Upvalue"}, {"reg", "*lua.registry"}, {"index", "int"}} {
		mine, _ := ours.FieldByName(f.name)
		if find(own, f.name, f.kind).Offset != mine.Offset {
			panic("BUG: lua.Upvalue has changed: look at closeUpvalues again")
		}
	}
	if find(reg.Type.Elem(), "array", "[]lua.LValue").Offset != 0 || find(reg.Type.Elem(), "top", "int").Offset != unsafe.Offsetof(registry{}.top) {
		panic("BUG: lua.registry has changed: look at try again")
	}
	return at
}()

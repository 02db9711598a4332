package lua

import lua "github.com/yuin/gopher-lua"

// try is PCall. gopher-lua's, without a handler, closes the upvalues of every
// live frame on an error, which cuts the caller's closures off from its locals,
// and formats a stack trace; with one, it closes none, and a closure that
// escaped from a function that failed reads what comes after in the stack. So
// there is always a handler here, and it first closes what is left behind.
func (v *vm) try(L *lua.LState, nargs, results int, handler *lua.LFunction) error {
	if handler == nil {
		handler = v.identity
	}
	handled := hasHandler(L)
	before, n := *handled, len(v.bases)
	v.bases = append(v.bases, registryOf(L).top-nargs-1)
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
	link := openUpvalues(L)
	for *link != nil && (*link).index < base {
		link = &(*link).next
	}
	uv := *link
	*link = nil
	for ; uv != nil; uv = uv.next {
		uv.close()
	}
}

package lua

import (
	"fmt"
	"log/slog"
	"reflect"
	"sync"
	"unsafe"

	lua "github.com/yuin/gopher-lua"

	"github.com/weir-run/weir/engine/golayout"
)

// This file has every copy of what gopher-lua keeps private. Errors could not be
// caught right and memory could not be bounded without them, so that no script is
// compiled for a gopher-lua that is laid out differently (see supported).

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

// layout has the offsets of fields.
type layout struct {
	hasErrorFunc, uvcache, reg uintptr // of an LState
	keys, array                uintptr // of an LTable: lists of values
}

// theLayout is used only after supported has returned nil.
var theLayout = sync.OnceValues(func() (layout, error) {
	return layoutOf(reflect.TypeFor[lua.LState](), reflect.TypeFor[lua.Upvalue](), reflect.TypeFor[lua.LTable]())
})

func layoutOf(state, up, table reflect.Type) (at layout, err error) {
	err = golayout.Guard(func() error {
		var gone error
		find := func(in reflect.Type, name, kind string) (f reflect.StructField) {
			f, ok := in.FieldByName(name)
			if gone == nil && (!ok || f.Type.String() != kind) {
				gone = fmt.Errorf("%s has no field %s of type %s", in, name, kind)
			}
			return f
		}
		same := func(in reflect.Type, name, kind string, offset uintptr) {
			if find(in, name, kind).Offset != offset && gone == nil {
				gone = fmt.Errorf("%s has its field %s elsewhere", in, name)
			}
		}
		at.hasErrorFunc = find(state, "hasErrorFunc", "bool").Offset
		at.uvcache = find(state, "uvcache", "*lua.Upvalue").Offset
		reg := find(state, "reg", "*lua.registry")
		at.reg = reg.Offset
		at.keys = find(table, "keys", "[]lua.LValue").Offset
		at.array = find(table, "array", "[]lua.LValue").Offset
		same(up, "next", "*lua.Upvalue", unsafe.Offsetof(upvalue{}.next))
		same(up, "reg", "*lua.registry", unsafe.Offsetof(upvalue{}.reg))
		same(up, "index", "int", unsafe.Offsetof(upvalue{}.index))
		if gone == nil { // there is a reg then
			same(reg.Type.Elem(), "array", "[]lua.LValue", unsafe.Offsetof(registry{}.array))
			same(reg.Type.Elem(), "top", "int", unsafe.Offsetof(registry{}.top))
		}
		return gone
	})
	return at, err
}

// supported returns why this build of weir cannot run Lua, nil if it can.
var supported = sync.OnceValue(func() error {
	_, err := theLayout()
	return refusal(err, golayout.CheckInterfaces())
})

// refusal makes an error of what differs in gopher-lua. Without a copy of Go's
// interfaces scripts run, but more slowly.
func refusal(library, interfaces error) error {
	if library != nil {
		err := fmt.Errorf("cannot run Lua: this build of weir has a version of gopher-lua that it does not support: %w; install a released build", library)
		slog.Error(err.Error())
		return err
	}
	if interfaces != nil {
		slog.Warn("Lua runs more slowly: this build of weir has a version of Go that it does not support", "err", interfaces)
	}
	return nil
}

func field[T any](base unsafe.Pointer, offset uintptr) *T { return (*T)(unsafe.Add(base, offset)) }

// hasHandler is whether an error goes to a handler.
func hasHandler(L *lua.LState) *bool {
	at, _ := theLayout()
	return field[bool](unsafe.Pointer(L), at.hasErrorFunc)
}

// openUpvalues is the list of upvalues that are not closed, in order of index.
func openUpvalues(L *lua.LState) **upvalue {
	at, _ := theLayout()
	return field[*upvalue](unsafe.Pointer(L), at.uvcache)
}

func (uv *upvalue) close() { (*lua.Upvalue)(unsafe.Pointer(uv)).Close() }

func registryOf(L *lua.LState) *registry {
	at, _ := theLayout()
	return *field[*registry](unsafe.Pointer(L), at.reg)
}

// nextInstruction returns the index of the instruction after the next one of a
// frame, or 0 if gopher-lua is laid out differently.
func nextInstruction(d *lua.Debug) int {
	frame := reflect.ValueOf(d).Elem().FieldByName("frame")
	if frame.Kind() != reflect.Pointer || frame.IsNil() {
		return 0
	}
	if pc := frame.Elem().FieldByName("Pc"); pc.IsValid() && pc.CanInt() {
		return int(pc.Int())
	}
	return 0
}

// room returns how many keys and how many array slots a table has room for.
func room(t *lua.LTable) (keys, slots int) {
	at, _ := theLayout()
	return len(*field[[]lua.LValue](unsafe.Pointer(t), at.keys)), cap(*field[[]lua.LValue](unsafe.Pointer(t), at.array))
}

package lua

import (
	"bytes"
	"errors"
	"log/slog"
	"reflect"
	"strings"
	"testing"
	"unsafe"

	lua "github.com/yuin/gopher-lua"
)

// TestLayout: the copies hold for the gopher-lua that weir is built with.
func TestLayout(t *testing.T) {
	if err := supported(); err != nil {
		t.Error(err)
	}
}

func TestWrongLayout(t *testing.T) {
	state, up, table := reflect.TypeFor[lua.LState](), reflect.TypeFor[lua.Upvalue](), reflect.TypeFor[lua.LTable]()
	f := func(want string, state, up, table reflect.Type) {
		t.Helper()
		if _, err := layoutOf(state, up, table); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
	f("has no field hasErrorFunc of type bool", reflect.TypeFor[struct{}](), up, table)
	f("has no field hasErrorFunc of type bool", reflect.TypeFor[struct{ hasErrorFunc int }](), up, table)
	f("has no field uvcache", reflect.TypeFor[struct{ hasErrorFunc bool }](), up, table)
	f("has no field reg of type *lua.registry", reflect.TypeFor[struct {
		hasErrorFunc bool
		uvcache      *lua.Upvalue
		reg          *registryElsewhere
	}](), up, table)
	f("has no field next", state, reflect.TypeFor[struct{ index int }](), table)
	f("has its field next elsewhere", state, reflect.TypeFor[struct {
		index int
		next  *lua.Upvalue
	}](), table)
	f("has no field array", state, up, reflect.TypeFor[struct{ keys []lua.LValue }]())
	f("cannot check a memory layout", reflect.TypeFor[int](), up, table)
}

type registryElsewhere struct{ _ unsafe.Pointer }

// TestRefusal: a gopher-lua that differs refuses Lua, a Go that differs slows it
// down; both are in the log, in one line.
func TestRefusal(t *testing.T) {
	var log bytes.Buffer
	defer slog.SetDefault(slog.Default())
	slog.SetDefault(slog.New(slog.NewTextHandler(&log, nil)))
	f := func(library, interfaces error, want, wantLog string) {
		t.Helper()
		log.Reset()
		err := refusal(library, interfaces)
		if err == nil && want != "" || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
		if got := log.String(); !strings.Contains(got, wantLog) || strings.Count(got, "\n") > 1 || wantLog == "" && got != "" {
			t.Errorf("log %q, want one line with %q", got, wantLog)
		}
	}
	differs := errors.New("differs")
	f(nil, nil, "", "")
	f(differs, nil, "cannot run Lua", "level=ERROR")
	f(differs, differs, "cannot run Lua", "level=ERROR")
	f(nil, differs, "", "level=WARN msg=\"Lua runs more slowly")
}

// TestBoxesWithoutLayout: numbers and texts are what they were without a copy of
// Go's interfaces.
func TestBoxesWithoutLayout(t *testing.T) {
	num, str := tabs(errors.New("differs"))
	if num != nil || str != nil {
		t.Fatal("there are words of types that nobody knows")
	}
	defer func(num, str unsafe.Pointer) { numTab, strTab = num, str }(numTab, strTab)
	n, s := 1.5, "text"
	for _, slow := range []bool{false, true} {
		if slow {
			numTab, strTab = nil, nil
		}
		if got := boxNumber(&n); got != lua.LNumber(1.5) {
			t.Errorf("number %v", got)
		}
		if got := boxString(&s); got != lua.LString("text") {
			t.Errorf("text %v", got)
		}
	}
}

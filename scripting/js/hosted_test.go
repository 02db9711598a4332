package js

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/dop251/goja"
)

// row is a host of two fields.
type row struct {
	hosted
	sealed
	n int
}

func (r *row) Get(name string) goja.Value {
	if name == "n" {
		return engine.ToValue(r.n)
	}
	return nil
}

// list is a host of elements.
type list struct{ hosted }

func (*list) Len() int                 { return 2 }
func (*list) Get(i int) goja.Value     { return engine.ToValue(10 * i) }
func (*list) Set(int, goja.Value) bool { return false }
func (*list) SetLen(int) bool          { return false }

// TestHosted holds objects in our memory to what goja makes itself, also when
// there is nothing but a part of them that leads to their memory.
func TestHosted(t *testing.T) {
	if objectTab == nil || arrayTab == nil || intTab == nil {
		t.Error("goja's values are not what hosted.go and box.go mirror: look at what has changed")
	}
	f := func(t *testing.T) {
		t.Helper()
		rt := goja.New()
		proto := rt.NewObject()
		_ = proto.Set("twice", func(call goja.FunctionCall) goja.Value {
			r, ok := hostOf(call.This).(*row)
			if !ok {
				return goja.Undefined()
			}
			return engine.ToValue(2 * r.n)
		})
		block := make([]row, 64)
		if block[0].value() != nil {
			t.Error("there is a value before open")
		}
		kept := rt.NewArray()
		for i := range block {
			block[i].n = i
			_ = kept.Set(fmt.Sprint(i), block[i].open(rt, proto, &block[i]))
		}
		l := new(list)
		_ = rt.Set("kept", kept)
		_ = rt.Set("list", l.openArray(rt, rt.Get("Array").(*goja.Object).Get("prototype").(*goja.Object), l))
		if arrayOf(rt.Get("list")) != goja.DynamicArray(l) || arrayOf(kept) != nil || hostOf(kept) != nil || hostOf(rt.ToValue(1)) != nil {
			t.Error("hosts are not told apart")
		}
		block = nil
		for range 3 {
			runtime.GC()
			got, err := rt.RunString(`
				var weak = new WeakMap(), set = new WeakSet(), map = new Map();
				kept.forEach((r, i) => { weak.set(r, i); set.add(r); map.set(r, -i) });
				var bad = kept.filter((r, i) => r.n !== i || r.twice() !== 2 * i || weak.get(r) !== i || !set.has(r) || map.get(r) !== -i || r.none !== undefined || Object.getPrototypeOf(r).twice === undefined);
				kept = kept.filter((r, i) => i > 60).concat(kept.filter((r, i) => i <= 60)).sort((a, b) => a.n - b.n);
				[bad.length, Array.isArray(list), list.length, [...list].join(), list.indexOf(10)].join()`)
			if err != nil {
				t.Fatal(err)
			}
			if got, want := got.String(), "0,true,2,0,10,1"; got != want {
				t.Errorf("got %s, want %s", got, want)
			}
			_, _ = rt.RunString("var garbage = []; for (var i = 0; i < 1e4; i++) garbage.push({ i: [i] })")
		}
	}
	t.Run("ours", f)
	t.Run("goja's", func(t *testing.T) {
		withoutMirrors(t)
		f(t)
	})
}

// TestBoxes reads and makes the values that a script and Go hand to each other.
func TestBoxes(t *testing.T) {
	f := func(t *testing.T) {
		t.Helper()
		rt := goja.New()
		var n numbers
		var s texts
		_ = rt.Set("got", []goja.Value{
			n.value(1), n.value(5000), n.value(-0.5), n.value(1e300), n.int(1 << 60), s.value("a"), s.value("\u00e4"), s.value(fmt.Sprintf("%100s", "x")),
			s.fixed(new(string)), boolOf(true),
		})
		got, err := rt.RunString("got.map(x => typeof x + ' ' + x).join()")
		if err != nil {
			t.Fatal(err)
		}
		want := "number 1,number 5000,number -0.5,number 1e+300,bigint 1152921504606846976,string a,string \u00e4,string " + fmt.Sprintf("%100s", "x") + ",string ,boolean true"
		if got.String() != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
		for text, want := range map[string]string{
			"1": "1 true", "5000.5": "5000.5 true", "-0": "-0 true", "'1'": "0 false", "true": "0 false", "null": "0 false", "({})": "0 false", "10n": "0 false", "new Number(1)": "0 false",
		} {
			x, err := rt.RunString(text)
			if err != nil {
				t.Fatal(err)
			}
			f, ok := number(x)
			if got := fmt.Sprint(f, ok); got != want {
				t.Errorf("%s: got %s, want %s", text, got, want)
			}
		}
		for text, want := range map[string]string{"true": "true true", "false": "false true", "1": "false false", "'true'": "false false", "new Boolean(true)": "false false"} {
			x, err := rt.RunString(text)
			if err != nil {
				t.Fatal(err)
			}
			b, ok := boolean(x)
			if got := fmt.Sprint(b, ok); got != want {
				t.Errorf("%s: got %s, want %s", text, got, want)
			}
		}
		for _, nothing := range []goja.Value{nil, goja.Undefined()} {
			_, isNumber := number(nothing)
			_, isString := stringOf(nothing)
			if isNumber || isString || isBoolean(nothing) {
				t.Errorf("%v is something", nothing)
			}
		}
	}
	t.Run("ours", f)
	t.Run("goja's", func(t *testing.T) {
		withoutMirrors(t)
		f(t)
	})
}

// withoutMirrors is what a goja is met with that has other structs.
func withoutMirrors(t *testing.T) {
	o, a, i, f, s, b := objectTab, arrayTab, intTab, floatTab, asciiTab, boolTab
	objectTab, arrayTab, intTab, floatTab, asciiTab, boolTab = nil, nil, nil, nil, nil, nil
	t.Cleanup(func() { objectTab, arrayTab, intTab, floatTab, asciiTab, boolTab = o, a, i, f, s, b })
}

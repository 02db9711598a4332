package host_test

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/weir-run/weir/scripting"
	"github.com/weir-run/weir/scripting/host"
	"github.com/weir-run/weir/scripting/state"
)

// slots is a piece of state of each kind, called like the kind.
func slots() (out []*host.StateSlot) {
	for _, kind := range state.Kinds {
		d := state.Decl{Name: string(kind), Kind: kind, Max: 3}
		out = append(out, &host.StateSlot{Decl: &scripting.State{Decl: d}, Collection: collection(d)})
	}
	return out
}

// piece is ctx.state.<name>.
func (s *script) piece(t *testing.T, name string) scripting.Value {
	t.Helper()
	for _, c := range s.ctx.Tables[0].Consts {
		if c.Name == name {
			return c.Value
		}
	}
	t.Fatalf("ctx.state has no %s", name)
	return nil
}

// shown is a value as JSON, which the view of a state writes.
func shown(t *testing.T, v scripting.Value) string {
	t.Helper()
	if v == nil {
		return "nothing"
	}
	x, err := open(t, transform(), host.AccessOptions{}).access.JSON("encode").Call(nil, []scripting.Value{v})
	if err != nil {
		return err.Error()
	}
	return x.(string)
}

// TestStateMethods calls the methods of all kinds of state.
func TestStateMethods(t *testing.T) {
	s := open(t, transform(), host.AccessOptions{}, slots()...)
	f := func(kind, name, want string, args ...scripting.Value) {
		t.Helper()
		got, err := method(t, s.piece(t, kind), name, args...)
		text := ""
		if err != nil {
			text = err.Error()
		} else {
			text = shown(t, got)
		}
		if text != want {
			t.Errorf("%s.%s: got %s, want %s", kind, name, text, want)
		}
	}
	update := func(out scripting.Value, err error) scripting.Callback {
		return func(...scripting.Value) (scripting.Value, error) { return out, err }
	}
	f("counter", "get", "0", "a")
	f("counter", "add", "1", "a")
	f("counter", "add", "-1.5", "a", -2.5)
	f("counter", "update", "7", "a", update(int64(7), nil))
	f("counter", "update", "cannot call update: argument fn must return a number, not a string", "a", update("x", nil))
	f("counter", "update", "cannot call update: argument fn failed: no", "a", update(nil, errors.New("no")))
	f("counter", "update", "cannot call update: argument fn returned a value that state cannot store: cannot keep a function in state: it must be text, a number, a bool, or a list or map of these", "a", update(update(nil, nil), nil))
	f("counter", "update", "nothing", "a", update(nil, nil))
	f("counter", "has", "false", "a")
	f("counter", "get", "cannot call get: argument key must be a string, not a bool", true)

	f("map", "get", "nothing", "a")
	f("map", "set", "true", "a", list(int64(1), scripting.Null, nil, true, 1.5, table("k", list())))
	f("map", "get", `[1,null,null,true,1.5,{"k":[]}]`, "a")
	f("map", "set", "true", "b", scripting.Null)
	f("map", "get", "null", "b")
	f("map", "set", "true", "b", false)
	f("map", "update", `{"n":1}`, "b", update(table("n", int64(1)), nil))
	f("map", "set", "cannot call set: argument value cannot keep a function in state: it must be text, a number, a bool, or a list or map of these", "c", list(update(nil, nil)))
	f("map", "full", "false")
	f("map", "set", "true", "c", "x")
	f("map", "full", "true")
	f("map", "set", `cannot add to state map: it has all of its 3 entries (max); make it larger, or let go of old entries with ttl or on_full = "evict"`, "d", "x")
	f("map", "delete", "true", "c")
	f("map", "delete", "false", "c")
	f("map", "set", "true", "c", nil) // which deletes it
	f("map", "entries", `{"a":[1,null,null,true,1.5,{"k":[]}],"b":{"n":1}}`)
	f("map", "entries", `{"a":[1,null,null,true,1.5,{"k":[]}]}`, int64(1))
	f("map", "entries", "cannot call entries: argument limit must not be negative", int64(-1))
	f("map", "clear", "nothing")
	f("map", "size", "0")

	f("set", "add", "true", "a")
	f("set", "add", "false", "a")
	f("set", "entries", `["a"]`)
	f("lru", "set", "true", "a", "x")
	f("lru", "get", `"x"`, "a")

	f("queue", "peek", "nothing")
	f("queue", "push", "true", "one")
	f("queue", "push", "true", 2.5)
	f("queue", "push", "cannot call push: argument value is missing", nil)
	f("queue", "peek", `"one"`)
	f("queue", "entries", `["one",2.5]`)
	f("queue", "pop", `"one"`)
	f("queue", "push", "true", int64(3))
	f("queue", "push", "true", int64(4))
	f("queue", "push", `cannot add to state queue: it has all of its 3 entries (max); make it larger, or let go of old entries with ttl or on_full = "evict"`, int64(5))
}

// TestStateOutsideOfHooks holds where state cannot be used, and what a name is told
// that is not declared.
func TestStateOutsideOfHooks(t *testing.T) {
	s := open(t, transform(), host.AccessOptions{}, slots()...)
	s.call.Remembering = true
	_, err := method(t, s.piece(t, "map"), "get", "a")
	fails(t, "in series", err, "cannot use ctx.state in series or stream: the result of these hooks is cached")
	s.outside = true
	_, err = method(t, s.piece(t, "map"), "get", "a")
	fails(t, "in no hook", err, "cannot call map: state can be used in hooks only")

	absent := s.ctx.Tables[0].Absent
	if got, want := absent("mpa"), `there is no state "mpa": did you mean map?`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got, want := absent("seen"), `there is no state "seen": declare it in state`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	o := s.piece(t, "lru").(*scripting.Object)
	if got := o.Type.String(o.Data); got != "lru lru" {
		t.Errorf("got %s", got)
	}
}

// TestOldStateIsRead holds that migrate gets what another version kept, and that it
// cannot write to it.
func TestOldStateIsRead(t *testing.T) {
	s := open(t, transform(), host.AccessOptions{})
	col := collection(state.Decl{Name: "hits", Kind: state.Counter})
	if _, err := col.Add("a", 2, 0); err != nil {
		t.Fatal(err)
	}
	old, _ := host.OldState(&host.Binding{Call: func() *host.Call { return &s.call }}, []*state.Collection{col}).Get("hits")
	if n, err := method(t, old, "get", "a"); n != 2.0 || err != nil {
		t.Errorf("got %v, %v", n, err)
	}
	for _, name := range []string{"add", "set", "update", "delete", "clear"} {
		if _, ok := old.(*scripting.Object).Type.Method(name); ok {
			t.Errorf("old state has %s", name)
		}
	}
}

// TestStateViewJSON writes state as JSON and reads values that its user gives.
func TestStateViewJSON(t *testing.T) {
	v := &host.StateView{Node: "a.b", Now: epoch.UnixMilli()}
	for _, s := range slots() {
		v.Cols = append(v.Cols, s.Collection)
	}
	text := func(s string) *string { return &s }
	get := func(name string, key *string) string {
		t.Helper()
		var b strings.Builder
		if err := v.Get(&b, name, key); err != nil {
			return err.Error()
		}
		return strings.TrimSuffix(b.String(), "\n")
	}
	f := func(value, want string) {
		t.Helper()
		if err := v.Set("map", text("k"), &value); err != nil {
			if err.Error() != want {
				t.Errorf("%s: got %v, want %s", value, err, want)
			}
			return
		}
		if got := get("map", text("k")); got != want {
			t.Errorf("%s: got %s, want %s", value, got, want)
		}
	}
	f(`{"b":1,"a":{"x":[true,null]}}`, `{"b":1,"a":{"x":[true,null]}}`)
	f(`-9223372036854775808`, `-9223372036854775808`)
	f(`9223372036854775808`, `9.223372036854776e+18`)
	f(`1.0`, `1`)
	f(`1e20`, `1e+20`)
	f(`"<\u00e9>\n"`, `"<é>\n"`)
	f(` [ ] `, `[]`)
	const hint = "; text is written in quotes"
	f(`1 2`, `cannot read "1 2" as JSON: something follows the value`+hint)
	f(``, `cannot read "" as JSON: EOF`+hint)
	f(`[1,`, `cannot read "[1," as JSON: EOF`+hint)
	f(`{"a":}`, `cannot read "{\"a\":}" as JSON: invalid character '}' looking for beginning of value`+hint)
	f(`{"a"`, `cannot read "{\"a\"" as JSON: EOF`+hint)
	f(`1e999`, `cannot read "1e999" as JSON: strconv.ParseFloat: parsing "1e999": value out of range`+hint)
	f(strings.Repeat("[", 30)+strings.Repeat("]", 30), "cannot call set: argument value cannot keep a value that nests deeper than 20")

	// Numbers that JSON does not have are texts.
	for n, want := range map[float64]string{math.Inf(-1): `"-Inf"`, math.NaN(): `"NaN"`, 0.1: "0.1"} {
		if err := v.Cols[1].Set("k", state.FloatValue(n), v.Now); err != nil {
			t.Fatal(err)
		}
		if got := get("map", text("k")); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}

	fails(t, "a key of a queue", errors.New(get("queue", text("k"))), "cannot get a key of queue: a queue has none")
	fails(t, "no key", v.Set("map", nil, nil), "cannot set state map without a key")
	fails(t, "no value", v.Set("map", text("k"), nil), `cannot set key "k" of map without a value`)
	fails(t, "another name", v.Set("mpa", text("k"), text("1")), `cannot find state "mpa" of a.b: did you mean map?`)
	fails(t, "another name", v.Delete("seen", nil), `cannot find state "seen" of a.b: there is counter, map, set, lru, queue`)
	err := (&host.StateView{Node: "a.b"}).Delete("seen", nil)
	if _, ok := errors.AsType[*host.NoStateError](err); !ok {
		t.Errorf("got %v, want a NoStateError", err)
	}
	fails(t, "no state", err, `cannot find state "seen" of a.b: it has none`)
	if _, err := v.All("seen"); err == nil {
		t.Error("there is no state seen")
	}
}

// TestStateViewExports writes the entries of one piece of state, and summaries.
func TestStateViewExports(t *testing.T) {
	d := state.Decl{Name: "seen", Kind: state.Set, Persistent: true, TTL: time.Hour}
	set, queue := collection(d), collection(state.Decl{Name: "todo", Kind: state.Queue})
	now := epoch.UnixMilli()
	for _, key := range []string{"b", "a"} {
		if _, err := set.Insert(key, now); err != nil {
			t.Fatal(err)
		}
	}
	if err := queue.Push(state.IntValue(1), now); err != nil {
		t.Fatal(err)
	}
	v := &host.StateView{Node: "a.b", Cols: []*state.Collection{set, queue}, Now: now}
	f := func(name, want string) {
		t.Helper()
		var b strings.Builder
		if err := v.Export(&b, name); err != nil {
			b.WriteString(err.Error())
		}
		if b.String() != want {
			t.Errorf("%s: got %s, want %s", name, b.String(), want)
		}
	}
	f("todo", `{"state":"todo","kind":"queue","value":1,"written":"2025-01-01T00:00:00.000Z"}`+"\n")
	f("seen", `{"state":"seen","kind":"set","key":"b","written":"2025-01-01T00:00:00.000Z"}`+"\n"+`{"state":"seen","kind":"set","key":"a","written":"2025-01-01T00:00:00.000Z"}`+"\n")
	f("tod", `cannot find state "tod" of a.b: did you mean todo?`)
	if all, err := v.All("seen"); err != nil || shown(t, all) != `["a","b"]` {
		t.Errorf("got %v, %v", all, err)
	}
	if got := v.Summaries()[0]; got.Scope != "persistent" || got.TTL != "1h0m0s" || got.Entries != 2 || got.Bytes == 0 {
		t.Errorf("got %+v", got)
	}
	v.Now += time.Hour.Milliseconds()
	if got := v.Summaries()[0]; got.Entries != 0 {
		t.Errorf("got %+v after its ttl", got)
	}
}

// TestDamagedValues holds that a value on disk that is damaged is an error.
func TestDamagedValues(t *testing.T) {
	col := collection(state.Decl{Name: "m", Kind: state.Map})
	v := &host.StateView{Cols: []*state.Collection{col}}
	key, value := "k", `[1,2.5,"text",{"key":[true,null]}]`
	if err := v.Set("m", &key, &value); err != nil {
		t.Fatal(err)
	}
	whole := col.Get("k", 0)
	if got, err := host.StateValue(whole); err != nil || shown(t, got) != value {
		t.Fatalf("got %v, %v", got, err)
	}
	const damaged = "cannot read a value in state: it is damaged"
	for n := range len(whole.Data) {
		_, err := host.StateValue(state.Value{Kind: state.Composite, Data: whole.Data[:n]})
		fails(t, "a part of it", err, damaged)
	}
	for _, data := range []string{whole.Data + "\x00", "z", "l\xff\xff\xff\xff\x0f", "m\x01\xff\xff", "l\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", strings.Repeat("l\x01", 100)} {
		_, err := host.StateValue(state.Value{Kind: state.Composite, Data: data})
		fails(t, "other bytes", err, damaged)
	}
}

package scripting

import (
	"errors"
	"fmt"

	"github.com/weir-run/weir/engine/config"
	"github.com/weir-run/weir/scripting/state"
)

// stateSlot is a piece of state of one instance.
type stateSlot struct {
	decl *State
	col  *state.Collection // set before the first call
}

// stateRef is a piece of state in a VM.
type stateRef struct {
	*stateSlot
	h *hookHost // its call at hand says what time it is
}

var errStateRemembered = errors.New("cannot use ctx.state in series or stream: the hook is asked once and its answer remembered, so it may only depend on labels and ctx.args; use metrics or logs")

// collection returns the collection and the time, or why it cannot be used here.
func (r *stateRef) collection() (*state.Collection, int64, error) {
	k := r.h.call()
	switch {
	case k == nil:
		return nil, 0, &ArgError{Func: r.decl.Name, Msg: "state can be used in hooks only"}
	case k.remembering:
		return nil, 0, &ArgError{Func: r.decl.Name, Msg: errStateRemembered.Error()}
	}
	return r.col, k.now.UnixMilli(), nil
}

// stateModule makes ctx.state of a component.
func stateModule(h *hookHost, slots []*stateSlot) *Module {
	m := &Module{
		Name:  "state",
		Doc:   "What the definition declares in state: shared by all VMs of the node, kept over reloads. Operations are atomic one by one. What they did stays when a hook fails later.",
		Types: stateTypes,
		Absent: func(name string) string {
			all := make([]string, len(slots))
			for i, s := range slots {
				all[i] = s.decl.Name
			}
			if hint := config.DidYouMean(name, all); hint != "" {
				return fmt.Sprintf("there is no state %q: %s", name, hint)
			}
			return fmt.Sprintf("there is no state %q: declare it in state", name)
		},
	}
	for _, s := range slots {
		m.Consts = append(m.Consts, Const{Name: s.decl.Name, Doc: s.decl.Doc, Value: &Object{Type: StateType(s.decl.Kind), Data: &stateRef{s, h}}})
	}
	return m
}

// stateTypes are the types of pieces of state, oldStateTypes those that migrate
// reads; each by the index of its kind in StateKinds.
var stateTypes, oldStateTypes = func() (now, old []*ObjectType) {
	for _, k := range StateKinds {
		ms := stateMethods(k)
		now = append(now, &ObjectType{Name: "state." + string(k), Doc: stateDocs[k], Methods: ms, String: stateText})
		var reading []Function
		for _, m := range ms {
			if readsState[m.Name] {
				reading = append(reading, m)
			}
		}
		old = append(old, &ObjectType{Name: "old state." + string(k), Doc: "What the version before kept: it can only be read.", Methods: reading, String: stateText})
	}
	return now, old
}()

// StateType is what a piece of state of a kind is in ctx.state.
func StateType(k state.Kind) *ObjectType { return ofKind(stateTypes, k) }

func ofKind(types []*ObjectType, k state.Kind) *ObjectType {
	for i := range StateKinds {
		if StateKinds[i] == k {
			return types[i]
		}
	}
	panic("BUG: unknown kind of state " + string(k))
}

// oldState is what migrate gets of the collections of another version, by name.
func oldState(h *hookHost, cols []*state.Collection) *Map {
	old := NewMap()
	for _, col := range cols {
		d := col.Decl()
		ref := &stateRef{&stateSlot{decl: &State{Decl: d}, col: col}, h}
		old.Set(d.Name, &Object{Type: ofKind(oldStateTypes, d.Kind), Data: ref})
	}
	return old
}

func stateText(data any) string {
	d := data.(*stateRef).decl
	return fmt.Sprintf("%s %s", d.Kind, d.Name)
}

var readsState = map[string]bool{"get": true, "has": true, "size": true, "full": true, "peek": true, "entries": true}

var stateDocs = map[state.Kind]string{
	state.Counter: "Numbers by key. A key that is not there counts 0.",
	state.Map:     "Values by key.",
	state.Set:     "Keys that are there or not.",
	state.LRU:     "Values by key; when it is full, the one that was not used for longest goes.",
	state.Queue:   "Values in the order they came.",
}

// stateMethods are the methods of a kind of state.
func stateMethods(kind state.Kind) []Function {
	key := Param{Name: "key", Kind: KindString, Doc: "The key."}
	value := Param{Name: "value", Kind: KindAny, Doc: "Text, a number, a bool, or a list or map of these: what is kept is a copy."}
	f := stateFunc
	common := []Function{
		f(kind, "size", "How many entries there are.", nil, Result{Kind: KindInt, Doc: "The number."}, sizeOfState),
		f(kind, "full", "Whether there is room for no new entry.", nil, Result{Kind: KindBool, Doc: "Whether it is full."}, fullState),
		f(kind, "clear", "Removes all entries.", nil, Result{}, clearState),
		f(kind, "entries", "A copy of the entries as they are now, those that were written longest ago first.",
			[]Param{{Name: "limit", Kind: KindInt, Optional: true, Doc: "How many at most; 10,000 by default."}}, entriesResult(kind), entriesOfState),
	}
	byKey := []Function{
		f(kind, "has", "Whether a key is there. It is no use, for an lru.", []Param{key}, Result{Kind: KindBool, Doc: "Whether it is there."}, hasState),
		f(kind, "delete", "Removes a key.", []Param{key}, Result{Kind: KindBool, Doc: "Whether it was there."}, deleteState),
	}
	fails := func(k Kind, doc string) Result { return Result{Kind: k, Doc: doc, Fails: true} }
	number := Param{Name: "number", Kind: KindNumber, Doc: "The number."}
	old := Param{Name: "old", Kind: KindAny, Doc: "What is there; nil when nothing is."}
	change := Param{Name: "fn", Kind: KindFunction, Doc: "It gets what is there, nil when nothing is, and returns what is to be there, nil for nothing. It may run again when another VM was faster, so it should do nothing else.",
		Call: &Function{Params: []Param{old}, Result: Result{Kind: KindAny, Optional: true}}}
	update := f(kind, "update", "Changes a key to what fn makes of it, in one step.", []Param{key, change}, fails(KindAny, "What is there now."), updateState)
	switch kind {
	case state.Counter:
		n := number
		n.Name, n.Optional, n.Doc = "by", true, "How much; 1 by default, and it may be negative."
		return append(append([]Function{
			f(kind, "add", "Adds to a key.", []Param{key, n}, fails(KindNumber, "The sum."), addState),
			f(kind, "get", "The number of a key.", []Param{key}, Result{Kind: KindNumber, Doc: "The number; 0 for a key that is not there."}, getState),
			f(kind, "set", "Sets a key.", []Param{key, number}, fails(KindBool, "true."), setState),
			update,
		}, byKey...), common...)
	case state.Set:
		return append(append([]Function{
			f(kind, "add", "Adds a key. One that is there gets its ttl anew.", []Param{key}, fails(KindBool, "Whether it is new."), insertState),
		}, byKey...), common...)
	case state.Queue:
		return append([]Function{
			f(kind, "push", "Adds a value to the end.", []Param{value}, fails(KindBool, "true."), pushState),
			f(kind, "pop", "Takes the first value.", nil, Result{Kind: KindAny, Optional: true, Doc: "The value; nil when it is empty."}, popState),
			f(kind, "peek", "The first value, which stays.", nil, Result{Kind: KindAny, Optional: true, Doc: "The value; nil when it is empty."}, peekState),
		}, common...)
	}
	return append(append([]Function{
		f(kind, "get", "The value of a key.", []Param{key}, Result{Kind: KindAny, Optional: true, Doc: "A copy of the value; nil for a key that is not there."}, getState),
		f(kind, "set", "Sets a key; nil deletes it.", []Param{key, value}, fails(KindBool, "true."), setState),
		update,
	}, byKey...), common...)
}

func entriesResult(kind state.Kind) Result {
	switch kind {
	case state.Set:
		return Result{Kind: KindList, Of: &Param{Kind: KindString}, Doc: "The keys."}
	case state.Queue:
		return Result{Kind: KindList, Doc: "The values."}
	case state.Counter:
		return Result{Kind: KindMap, Of: &Param{Kind: KindNumber}, Doc: "Numbers by key."}
	}
	return Result{Kind: KindMap, Doc: "Values by key."}
}

// stateFunc makes a method of a kind of state.
func stateFunc(kind state.Kind, name, doc string, params []Param, result Result, fn func(c *state.Collection, now int64, args []Value) (Value, error)) Function {
	return Function{Name: name, Doc: doc, Params: params, Result: result, Uses: stateUses(kind, name),
		Fn: func(args []Value) (Value, error) {
			c, now, err := args[0].(*stateRef).collection()
			if err != nil {
				return nil, err
			}
			return fn(c, now, args[1:])
		}}
}

func addState(c *state.Collection, now int64, args []Value) (Value, error) {
	by, ok := args[1].(float64)
	if !ok {
		by = 1
	}
	sum, err := c.Add(args[0].(string), by, now)
	if err != nil {
		return nil, err
	}
	return sum, nil
}

func insertState(c *state.Collection, now int64, args []Value) (Value, error) {
	added, err := c.Insert(args[0].(string), now)
	if err != nil {
		return nil, err
	}
	return added, nil
}

func getState(c *state.Collection, now int64, args []Value) (Value, error) {
	v := c.Get(args[0].(string), now)
	if v.Kind == state.None && c.Kind() == state.Counter {
		return 0.0, nil
	}
	return StateValue(v)
}

func setState(c *state.Collection, now int64, args []Value) (Value, error) {
	v, err := stateValue(args[1])
	if err != nil {
		return nil, &ArgError{Func: "set", Param: "value", Msg: err.Error()}
	}
	if err := c.Set(args[0].(string), v, now); err != nil {
		return nil, err
	}
	return true, nil
}

func hasState(c *state.Collection, now int64, args []Value) (Value, error) {
	return c.Has(args[0].(string), now), nil
}

func deleteState(c *state.Collection, now int64, args []Value) (Value, error) {
	return c.Delete(args[0].(string), now), nil
}

func updateState(c *state.Collection, now int64, args []Value) (Value, error) {
	key, fn := args[0].(string), args[1].(Callback)
	for { // whoever loses against another gets on: the other did
		old := c.Get(key, now)
		in, err := StateValue(old)
		if err != nil {
			return nil, err
		}
		out, err := fn(in)
		if err != nil {
			return nil, &ArgError{Func: "update", Param: "fn", Msg: "failed: " + err.Error()}
		}
		v, err := stateValue(out)
		if err != nil {
			return nil, &ArgError{Func: "update", Param: "fn", Msg: "returned what cannot be kept: " + err.Error()}
		}
		if c.Kind() == state.Counter {
			switch v.Kind {
			case state.Int:
				v = state.FloatValue(v.Float())
			case state.Float, state.None:
			default:
				return nil, &ArgError{Func: "update", Param: "fn", Msg: "must return a number, not a " + nameOf(out)}
			}
		}
		if done, err := c.Swap(key, old, v, now); done || err != nil {
			if err != nil {
				return nil, err
			}
			return out, nil
		}
	}
}

func pushState(c *state.Collection, now int64, args []Value) (Value, error) {
	v, err := stateValue(args[0])
	if err == nil && v.Kind == state.None {
		err = errors.New("is missing")
	}
	if err != nil {
		return nil, &ArgError{Func: "push", Param: "value", Msg: err.Error()}
	}
	if err := c.Push(v, now); err != nil {
		return nil, err
	}
	return true, nil
}

func popState(c *state.Collection, now int64, _ []Value) (Value, error) {
	return StateValue(c.Pop(now))
}

func peekState(c *state.Collection, now int64, _ []Value) (Value, error) {
	return StateValue(c.Peek(now))
}

func sizeOfState(c *state.Collection, now int64, _ []Value) (Value, error) {
	return int64(c.Len(now)), nil
}

func fullState(c *state.Collection, now int64, _ []Value) (Value, error) { return c.Full(now), nil }

func clearState(c *state.Collection, _ int64, _ []Value) (Value, error) {
	c.Clear()
	return nil, nil
}

// defaultEntries is how many entries a script gets if it does not say.
const defaultEntries = 10_000

func entriesOfState(c *state.Collection, now int64, args []Value) (Value, error) {
	limit, ok := args[0].(int64)
	if !ok {
		limit = defaultEntries
	}
	if limit < 0 {
		return nil, &ArgError{Func: "entries", Param: "limit", Msg: "must not be negative"}
	}
	es := c.Entries(int(min(limit, state.MostEntries)), now)
	list := &List{Items: make([]Value, 0, len(es))}
	if kind := c.Kind(); kind == state.Set {
		for _, e := range es {
			list.Items = append(list.Items, e.Key)
		}
		return list, nil
	} else if kind == state.Queue {
		for _, e := range es {
			v, err := StateValue(e.Value)
			if err != nil {
				return nil, err
			}
			list.Items = append(list.Items, v)
		}
		return list, nil
	}
	m := NewMap()
	for _, e := range es {
		v, err := StateValue(e.Value)
		if err != nil {
			return nil, err
		}
		m.Set(e.Key, v)
	}
	return m, nil
}

package host

import (
	"errors"
	"fmt"

	"github.com/weir-run/weir/engine/config"
	"github.com/weir-run/weir/scripting"
	"github.com/weir-run/weir/scripting/state"
)

// StateSlot is a piece of state of one instance.
type StateSlot struct {
	Decl       *scripting.State
	Collection *state.Collection // set before the first call
}

// stateRef is a piece of state in a VM.
type stateRef struct {
	*StateSlot
	h *Binding // provides the current time
}

var errStateRemembered = errors.New("cannot use ctx.state in series or stream: the result of these hooks is cached and may depend only on labels and ctx.args; use metrics or logs")

// collection returns the collection and the time, or an error if it cannot be
// used in this call.
func (r *stateRef) collection() (*state.Collection, int64, error) {
	k := r.h.Call()
	switch {
	case k == nil:
		return nil, 0, &scripting.ArgError{Func: r.Decl.Name, Msg: "state can be used in hooks only"}
	case k.Remembering:
		return nil, 0, &scripting.ArgError{Func: r.Decl.Name, Msg: errStateRemembered.Error()}
	}
	return r.Collection, k.Now.UnixMilli(), nil
}

// stateModule creates ctx.state of a component.
func stateModule(h *Binding, slots []*StateSlot) *scripting.Module {
	m := &scripting.Module{
		Name:  "state",
		Doc:   "The state that the definition declares in state. All VMs of the node share it, and it is kept across reloads. Each operation is atomic. Changes are not undone if a hook fails later.",
		Types: stateTypes,
		Absent: func(name string) string {
			all := make([]string, len(slots))
			for i, s := range slots {
				all[i] = s.Decl.Name
			}
			if hint := config.DidYouMean(name, all); hint != "" {
				return fmt.Sprintf("there is no state %q: %s", name, hint)
			}
			return fmt.Sprintf("there is no state %q: declare it in state", name)
		},
	}
	for _, s := range slots {
		m.Consts = append(m.Consts, scripting.Const{Name: s.Decl.Name, Doc: s.Decl.Doc, Value: &scripting.Object{Type: StateType(s.Decl.Kind), Data: &stateRef{s, h}}})
	}
	return m
}

// stateTypes are the types of pieces of state, and oldStateTypes those that
// migrate reads; both are indexed by the kind's index in StateKinds.
var stateTypes, oldStateTypes = func() (now, old []*scripting.ObjectType) {
	for _, k := range scripting.StateKinds {
		ms := stateMethods(k)
		now = append(now, &scripting.ObjectType{Name: "state." + string(k), Doc: stateDocs[k], Methods: ms, String: stateText})
		var reading []scripting.Function
		for _, m := range ms {
			if readsState[m.Name] {
				reading = append(reading, m)
			}
		}
		old = append(old, &scripting.ObjectType{Name: "old state." + string(k), Doc: "The state of the previous version; it is read-only.", Methods: reading, String: stateText})
	}
	return now, old
}()

// StateType returns the type of a piece of state in ctx.state.
func StateType(k state.Kind) *scripting.ObjectType { return ofKind(stateTypes, k) }

func ofKind(types []*scripting.ObjectType, k state.Kind) *scripting.ObjectType {
	for i := range scripting.StateKinds {
		if scripting.StateKinds[i] == k {
			return types[i]
		}
	}
	panic("BUG: unknown kind of state " + string(k))
}

// OldState returns the collections of another version for migrate, by name.
func OldState(h *Binding, cols []*state.Collection) *scripting.Map {
	old := scripting.NewMap()
	for _, col := range cols {
		d := col.Decl()
		ref := &stateRef{&StateSlot{Decl: &scripting.State{Decl: d}, Collection: col}, h}
		old.Set(d.Name, &scripting.Object{Type: ofKind(oldStateTypes, d.Kind), Data: ref})
	}
	return old
}

func stateText(data any) string {
	d := data.(*stateRef).Decl
	return fmt.Sprintf("%s %s", d.Kind, d.Name)
}

var readsState = map[string]bool{"get": true, "has": true, "size": true, "full": true, "peek": true, "entries": true}

var stateDocs = map[state.Kind]string{
	state.Counter: "Numbers by key. The value of a missing key is 0.",
	state.Map:     "Values by key.",
	state.Set:     "A set of keys.",
	state.LRU:     "Values by key; when it is full, the least recently used entry is removed.",
	state.Queue:   "Values in the order in which they were added.",
}

// stateMethods returns the methods of a kind of state.
func stateMethods(kind state.Kind) []scripting.Function {
	key := scripting.Param{Name: "key", Kind: scripting.KindString, Doc: "The key."}
	value := scripting.Param{Name: "value", Kind: scripting.KindAny, Doc: "A string, a number, a bool, or a list or map of these. A copy is stored."}
	f := stateFunc
	common := []scripting.Function{
		f(kind, "size", "Returns the number of entries.", nil, scripting.Result{Kind: scripting.KindInt, Doc: "The number."}, sizeOfState),
		f(kind, "full", "Reports whether there is no room for a new entry.", nil, scripting.Result{Kind: scripting.KindBool, Doc: "Whether it is full."}, fullState),
		f(kind, "clear", "Removes all entries.", nil, scripting.Result{}, clearState),
		f(kind, "entries", "Returns a copy of the current entries, least recently written first.",
			[]scripting.Param{{Name: "limit", Kind: scripting.KindInt, Optional: true, Doc: "The maximum number of entries; 10,000 by default."}}, entriesResult(kind), entriesOfState),
	}
	byKey := []scripting.Function{
		f(kind, "has", "Reports whether a key exists. For an lru, this does not count as a use.", []scripting.Param{key}, scripting.Result{Kind: scripting.KindBool, Doc: "Whether it exists."}, hasState),
		f(kind, "delete", "Removes a key.", []scripting.Param{key}, scripting.Result{Kind: scripting.KindBool, Doc: "Whether it existed."}, deleteState),
	}
	fails := func(k scripting.Kind, doc string) scripting.Result {
		return scripting.Result{Kind: k, Doc: doc, Fails: true}
	}
	number := scripting.Param{Name: "number", Kind: scripting.KindNumber, Doc: "The number."}
	old := scripting.Param{Name: "old", Kind: scripting.KindAny, Doc: "The current value; nil if there is none."}
	change := scripting.Param{Name: "fn", Kind: scripting.KindFunction, Doc: "A function that receives the current value, or nil, and returns the new value, or nil to delete the key. It can be called again if another VM changes the key at the same time, so it should have no side effects.",
		Call: &scripting.Function{Params: []scripting.Param{old}, Result: scripting.Result{Kind: scripting.KindAny, Optional: true}}}
	update := f(kind, "update", "Atomically replaces the value of a key with the result of fn.", []scripting.Param{key, change}, fails(scripting.KindAny, "The new value."), updateState)
	switch kind {
	case state.Counter:
		n := number
		n.Name, n.Optional, n.Doc = "by", true, "The number to add; 1 by default. It may be negative."
		return append(append([]scripting.Function{
			f(kind, "add", "Adds a number to a key.", []scripting.Param{key, n}, fails(scripting.KindNumber, "The sum."), addState),
			f(kind, "get", "Returns the number of a key.", []scripting.Param{key}, scripting.Result{Kind: scripting.KindNumber, Doc: "The number; 0 if the key does not exist."}, getState),
			f(kind, "set", "Sets a key.", []scripting.Param{key, number}, fails(scripting.KindBool, "true."), setState),
			update,
		}, byKey...), common...)
	case state.Set:
		return append(append([]scripting.Function{
			f(kind, "add", "Adds a key. If it exists already, its ttl starts again.", []scripting.Param{key}, fails(scripting.KindBool, "Whether it is new."), insertState),
		}, byKey...), common...)
	case state.Queue:
		return append([]scripting.Function{
			f(kind, "push", "Adds a value to the end.", []scripting.Param{value}, fails(scripting.KindBool, "true."), pushState),
			f(kind, "pop", "Removes and returns the first value.", nil, scripting.Result{Kind: scripting.KindAny, Optional: true, Doc: "The value; nil if the queue is empty."}, popState),
			f(kind, "peek", "Returns the first value without removing it.", nil, scripting.Result{Kind: scripting.KindAny, Optional: true, Doc: "The value; nil if the queue is empty."}, peekState),
		}, common...)
	}
	return append(append([]scripting.Function{
		f(kind, "get", "Returns the value of a key.", []scripting.Param{key}, scripting.Result{Kind: scripting.KindAny, Optional: true, Doc: "A copy of the value; nil if the key does not exist."}, getState),
		f(kind, "set", "Sets a key; nil deletes it.", []scripting.Param{key, value}, fails(scripting.KindBool, "true."), setState),
		update,
	}, byKey...), common...)
}

func entriesResult(kind state.Kind) scripting.Result {
	switch kind {
	case state.Set:
		return scripting.Result{Kind: scripting.KindList, Of: &scripting.Param{Kind: scripting.KindString}, Doc: "The keys."}
	case state.Queue:
		return scripting.Result{Kind: scripting.KindList, Doc: "The values."}
	case state.Counter:
		return scripting.Result{Kind: scripting.KindMap, Of: &scripting.Param{Kind: scripting.KindNumber}, Doc: "Numbers by key."}
	}
	return scripting.Result{Kind: scripting.KindMap, Doc: "Values by key."}
}

// stateFunc creates a method of a kind of state.
func stateFunc(kind state.Kind, name, doc string, params []scripting.Param, result scripting.Result, fn func(c *state.Collection, now int64, args []scripting.Value) (scripting.Value, error)) scripting.Function {
	return scripting.Function{Name: name, Doc: doc, Params: params, Result: result, Uses: stateUses(kind, name),
		Fn: func(args []scripting.Value) (scripting.Value, error) {
			c, now, err := args[0].(*stateRef).collection()
			if err != nil {
				return nil, err
			}
			return fn(c, now, args[1:])
		}}
}

func addState(c *state.Collection, now int64, args []scripting.Value) (scripting.Value, error) {
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

func insertState(c *state.Collection, now int64, args []scripting.Value) (scripting.Value, error) {
	added, err := c.Insert(args[0].(string), now)
	if err != nil {
		return nil, err
	}
	return added, nil
}

func getState(c *state.Collection, now int64, args []scripting.Value) (scripting.Value, error) {
	v := c.Get(args[0].(string), now)
	if v.Kind == state.None && c.Kind() == state.Counter {
		return 0.0, nil
	}
	return StateValue(v)
}

func setState(c *state.Collection, now int64, args []scripting.Value) (scripting.Value, error) {
	v, err := stateValue(args[1])
	if err != nil {
		return nil, &scripting.ArgError{Func: "set", Param: "value", Msg: err.Error()}
	}
	if err := c.Set(args[0].(string), v, now); err != nil {
		return nil, err
	}
	return true, nil
}

func hasState(c *state.Collection, now int64, args []scripting.Value) (scripting.Value, error) {
	return c.Has(args[0].(string), now), nil
}

func deleteState(c *state.Collection, now int64, args []scripting.Value) (scripting.Value, error) {
	return c.Delete(args[0].(string), now), nil
}

func updateState(c *state.Collection, now int64, args []scripting.Value) (scripting.Value, error) {
	key, fn := args[0].(string), args[1].(scripting.Callback)
	for { // if Swap fails, another call has made progress
		old := c.Get(key, now)
		in, err := StateValue(old)
		if err != nil {
			return nil, err
		}
		out, err := fn(in)
		if err != nil {
			return nil, &scripting.ArgError{Func: "update", Param: "fn", Msg: "failed: " + err.Error()}
		}
		v, err := stateValue(out)
		if err != nil {
			return nil, &scripting.ArgError{Func: "update", Param: "fn", Msg: "returned a value that state cannot store: " + err.Error()}
		}
		if c.Kind() == state.Counter {
			switch v.Kind {
			case state.Int:
				v = state.FloatValue(v.Float())
			case state.Float, state.None:
			default:
				return nil, &scripting.ArgError{Func: "update", Param: "fn", Msg: "must return a number, not a " + scripting.TypeName(out)}
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

func pushState(c *state.Collection, now int64, args []scripting.Value) (scripting.Value, error) {
	v, err := stateValue(args[0])
	if err == nil && v.Kind == state.None {
		err = errors.New("is missing")
	}
	if err != nil {
		return nil, &scripting.ArgError{Func: "push", Param: "value", Msg: err.Error()}
	}
	if err := c.Push(v, now); err != nil {
		return nil, err
	}
	return true, nil
}

func popState(c *state.Collection, now int64, _ []scripting.Value) (scripting.Value, error) {
	return StateValue(c.Pop(now))
}

func peekState(c *state.Collection, now int64, _ []scripting.Value) (scripting.Value, error) {
	return StateValue(c.Peek(now))
}

func sizeOfState(c *state.Collection, now int64, _ []scripting.Value) (scripting.Value, error) {
	return int64(c.Len(now)), nil
}

func fullState(c *state.Collection, now int64, _ []scripting.Value) (scripting.Value, error) {
	return c.Full(now), nil
}

func clearState(c *state.Collection, _ int64, _ []scripting.Value) (scripting.Value, error) {
	c.Clear()
	return nil, nil
}

// defaultEntries is the default number of returned entries.
const defaultEntries = 10_000

func entriesOfState(c *state.Collection, now int64, args []scripting.Value) (scripting.Value, error) {
	limit, ok := args[0].(int64)
	if !ok {
		limit = defaultEntries
	}
	if limit < 0 {
		return nil, &scripting.ArgError{Func: "entries", Param: "limit", Msg: "must not be negative"}
	}
	es := c.Entries(int(min(limit, state.MostEntries)), now)
	list := &scripting.List{Items: make([]scripting.Value, 0, len(es))}
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
	m := scripting.NewMap()
	for _, e := range es {
		v, err := StateValue(e.Value)
		if err != nil {
			return nil, err
		}
		m.Set(e.Key, v)
	}
	return m, nil
}

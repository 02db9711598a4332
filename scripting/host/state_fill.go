package host

import (
	"fmt"

	"github.com/weir-run/weir/scripting"
	"github.com/weir-run/weir/scripting/state"
)

// Fill replaces the entries of a piece of state by content, which is as All returns
// it.
func (v *StateView) Fill(name string, content scripting.Value) error {
	c, err := v.find(name)
	if err != nil {
		return err
	}
	list, isList := content.(*scripting.List)
	m, isMap := content.(*scripting.Map)
	lists := c.Kind() == state.Set || c.Kind() == state.Queue
	// An empty table of Lua is both.
	switch {
	case lists && !isList && (!isMap || m.Len() > 0):
		return fmt.Errorf("cannot fill the state %s of %s with a %s: a %s needs a list", name, v.Node, scripting.TypeName(content), c.Kind())
	case !lists && !isMap && (!isList || len(list.Items) > 0):
		return fmt.Errorf("cannot fill the state %s of %s with a %s: a %s needs values by key", name, v.Node, scripting.TypeName(content), c.Kind())
	}
	c.Clear()
	if isList {
		for i, x := range list.Items {
			if err := v.fillItem(c, x); err != nil {
				return fmt.Errorf("cannot add item %d to the state %s of %s: %w", i+1, name, v.Node, err)
			}
		}
		return nil
	}
	for _, key := range m.Keys() {
		x, _ := m.Get(key)
		if n, ok := x.(int64); ok && c.Kind() == state.Counter {
			x = float64(n)
		}
		if _, ok := x.(float64); !ok && c.Kind() == state.Counter {
			return fmt.Errorf("cannot set key %q of the state %s of %s to a %s: a counter has numbers", key, name, v.Node, scripting.TypeName(x))
		}
		if _, err := setState(c, v.Now, []scripting.Value{key, x}); err != nil {
			return fmt.Errorf("cannot set key %q of the state %s of %s: %w", key, name, v.Node, err)
		}
	}
	return nil
}

// fillItem adds an item to a set or a queue.
func (v *StateView) fillItem(c *state.Collection, x scripting.Value) error {
	if c.Kind() == state.Queue {
		_, err := pushState(c, v.Now, []scripting.Value{x})
		return err
	}
	key, ok := x.(string)
	if !ok {
		return fmt.Errorf("it is a %s, and a set has strings", scripting.TypeName(x))
	}
	_, err := insertState(c, v.Now, []scripting.Value{key})
	return err
}

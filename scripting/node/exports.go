package node

import (
	"fmt"
	"maps"
	"reflect"
	"sync"

	"github.com/weir-run/weir/engine/flow"
	"github.com/weir-run/weir/scripting"
)

// ExportsOf is the zero value of what a component of this definition exports:
// the receiver of one that takes data, or what a source declares; nil for
// nothing.
func ExportsOf(def *scripting.Definition) any {
	switch {
	case def.Accepts() != 0:
		return Exports{}
	case len(def.Exports) == 0:
		return nil
	}
	return reflect.Zero(scripting.ExportsType(def.Exports)).Interface()
}

// exported are the values that a node exports, which its instances hand down:
// what is declared as before stays until other values are given.
type exported struct {
	mu     sync.Mutex
	values map[string]reflect.Value // by name, of exportType
}

func newExported() *exported { return &exported{values: map[string]reflect.Value{}} }

// declare begins an instance. What is known of its exports is exported, when
// that is all.
func (x *exported) declare(exports []*scripting.Arg, export func(any)) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if all, ok := x.complete(exports); ok {
		export(all)
	}
}

// complete is called with mu held. It returns the exports when there is a value
// for each.
func (x *exported) complete(exports []*scripting.Arg) (any, bool) {
	out := reflect.New(scripting.ExportsType(exports)).Elem()
	for i, a := range exports {
		v, ok := x.values[a.Name]
		if !ok || v.Type() != a.ExportType() {
			return nil, false
		}
		out.Field(i).Set(v)
	}
	return out.Interface(), true
}

// owesExports reports whether nodes wait for exports that were not given yet.
func (c *Component) owesExports() bool {
	x := c.mem.exports
	x.mu.Lock()
	defer x.mu.Unlock()
	_, ok := x.complete(c.script.Definition.Exports)
	return !ok
}

// export gives values of exports by name, the others stay as they are. Nothing
// is given when one of them is wrong.
func (c *Component) export(given *scripting.Map) error {
	exports := c.script.Definition.Exports
	if limit := int(c.block.Limits.Output); !fits(given, &limit) {
		return fmt.Errorf("%w: it has more than %d MiB, the limit is script.limits.output", scripting.ErrLimit, c.block.Limits.Output>>20)
	}
	values, err := scripting.ExportValues(exports, given)
	if err != nil {
		return err
	}
	m := c.mem.exports
	m.mu.Lock()
	defer m.mu.Unlock()
	maps.Copy(m.values, values)
	if all, ok := m.complete(exports); ok {
		c.opts.Export(all) // under the lock, so that the last one is the last
	}
	return nil
}

// fits takes what a value has in bytes from room, and reports whether that was
// enough. A text counts as often as it is there: it is written as often.
func fits(v scripting.Value, room *int) bool {
	const each = 16
	switch v := v.(type) {
	case string:
		*room -= len(v)
	case *scripting.List:
		for _, x := range v.Items {
			if !fits(x, room) {
				return false
			}
		}
	case *scripting.Map:
		for _, k := range v.Keys() {
			*room -= len(k)
			if x, _ := v.Get(k); !fits(x, room) {
				return false
			}
		}
	}
	*room -= each
	return *room >= 0
}

// Exports are what a scripted component exports that takes data.
type Exports struct {
	// Receiver takes what the script is to see.
	Receiver *flow.Receiver `alloy:"receiver,attr"`
}

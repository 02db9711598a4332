package node

import (
	"fmt"
	"maps"
	"reflect"
	"sync"

	"github.com/weir-run/weir/engine/flow"
	"github.com/weir-run/weir/scripting"
)

// ExportsOf returns the zero value of the exports of a component with this
// definition: the receiver of a component that takes data, or the exports that
// a source declares. It returns nil if there are none.
func ExportsOf(def *scripting.Definition) any {
	switch {
	case def.Accepts() != 0:
		return Exports{}
	case len(def.Exports) == 0:
		return nil
	}
	return reflect.Zero(scripting.ExportsType(def.Exports)).Interface()
}

// exported contains the values that a node exports. Its instances pass it on:
// the value of an unchanged declaration stays until it is replaced.
type exported struct {
	mu     sync.Mutex
	values map[string]reflect.Value // by name, of exportType
}

func newExported() *exported { return &exported{values: map[string]reflect.Value{}} }

// declare begins an instance. If all of its exports are already known, they are
// exported.
func (x *exported) declare(exports []*scripting.Arg, export func(any)) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if all, ok := x.complete(exports); ok {
		export(all)
	}
}

// complete returns the exports if there is a value for each. It is called with
// mu held.
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

// owesExports reports whether nodes wait for the first values of exports.
func (c *Component) owesExports() bool {
	x := c.mem.exports
	x.mu.Lock()
	defer x.mu.Unlock()
	_, ok := x.complete(c.script.Definition.Exports)
	return !ok
}

// export sets the values of exports by name; other exports do not change. If
// one of them is invalid, nothing changes.
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
		c.opts.Export(all) // under the lock, so that calls are in order
	}
	return nil
}

// fits subtracts the size of a value in bytes from room, and reports whether
// there was enough. Repeated text counts each time, because it is written each
// time.
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

// Exports are the exports of a scripted component that takes data.
type Exports struct {
	// Receiver takes the data for the script.
	Receiver *flow.Receiver `alloy:"receiver,attr"`
}

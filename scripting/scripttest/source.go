package scripttest

import (
	"cmp"
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/scripting"
	"github.com/weir-run/weir/scripting/node"
)

// Sources under test. Nothing of them happens by itself: a test polls them, or
// sets the clock forward.

// poll polls a source once.
func (n *testNode) poll(ctx context.Context) (*output, error) {
	c, ok := n.comp.(*node.Component)
	if !ok {
		return nil, fmt.Errorf("cannot poll %s: it is no scripted source", n.name)
	}
	before := n.begin()
	if err := c.Poll(node.Observe(ctx, n.failed)); err != nil {
		return nil, err
	}
	if _, err := n.awaitIdle(ctx); err != nil {
		return nil, err
	}
	return n.output(&batch.Metrics{}, before), nil
}

// export keeps what the component exports.
func (n *testNode) export(v any) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.exports = v
}

// exported is the value of an export.
func (n *testNode) exported(name string) (scripting.Value, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	c, ok := n.comp.(*node.Component)
	if !ok || !slices.ContainsFunc(c.Definition().Exports, func(a *scripting.Arg) bool { return a.Name == name }) {
		return nil, fmt.Errorf("%s has no export %q", n.name, name)
	}
	if n.exports == nil {
		return nil, nil
	}
	v := reflect.ValueOf(n.exports)
	for i := range v.NumField() {
		if tag, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("alloy"), ","); tag == name {
			return exportedValue(v.Field(i)), nil
		}
	}
	panic("BUG: there is no export " + name)
}

// exportedValue is a value of an export as ctx.args would have it.
func exportedValue(v reflect.Value) scripting.Value {
	switch x := v.Interface().(type) {
	case time.Duration:
		return x.Seconds()
	case component.Secret:
		return "<secret>"
	}
	switch v.Kind() {
	case reflect.String:
		return v.String()
	case reflect.Bool:
		return v.Bool()
	case reflect.Float64:
		return v.Float()
	case reflect.Int, reflect.Int64:
		return v.Int()
	case reflect.Uint64:
		return int64(v.Uint())
	case reflect.Slice:
		l := &scripting.List{Items: make([]scripting.Value, v.Len())}
		for i := range l.Items {
			l.Items[i] = exportedValue(v.Index(i))
		}
		return l
	case reflect.Map:
		m := scripting.NewMap()
		for _, k := range slices.SortedFunc(slices.Values(v.MapKeys()), func(a, b reflect.Value) int { return strings.Compare(a.String(), b.String()) }) {
			m.Set(k.String(), exportedValue(v.MapIndex(k)))
		}
		return m
	}
	panic("BUG: an export is a " + v.Kind().String())
}

// outputBatch is what the hooks of a component have made, as a batch of a test. An
// error in the script fails the test.
func (s *session) outputBatch(out *output, err error) (scripting.Value, error) {
	if err := cmp.Or(s.mocks.takeDenied(), err); err != nil {
		return nil, err
	}
	if len(out.errors) > 0 {
		return nil, &scriptFailure{out.errors[0]}
	}
	out.typ = batchType
	return &scripting.Object{Type: batchType, Data: out}, nil
}

// ready returns an error for a component that has ended, and lets chaos have
// its way with another.
func (s *session) ready(n *testNode) error { return cmp.Or(s.usable(n), s.chaos.replaceVMs(s.ctx, n)) }

// sourceMethods are those of a source under test.
func (s *session) sourceMethods() []scripting.Function {
	return []scripting.Function{
		{Name: "poll", Doc: "Polls a source once and returns the output. A source is not polled automatically, but advance polls it when its interval has passed. An error in the script fails the test.",
			Result: scripting.Result{Kind: scripting.KindObject, Type: batchType},
			Fn: func(a []scripting.Value) (scripting.Value, error) {
				n := a[0].(*testNode)
				if err := s.ready(n); err != nil {
					return nil, err
				}
				return s.outputBatch(n.poll(s.ctx))
			}},
		{Name: "exported", Doc: "The value that the component exports under a name; nil until ctx.export has set all of its exports.",
			Params: []scripting.Param{nameParam}, Result: scripting.Result{Kind: scripting.KindAny},
			Fn: func(a []scripting.Value) (scripting.Value, error) {
				n := a[0].(*testNode)
				if err := s.usable(n); err != nil {
					return nil, err
				}
				return n.exported(a[1].(string))
			}},
	}
}

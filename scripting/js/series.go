package js

import (
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/dop251/goja"

	"github.com/weir-run/weir/engine/view"
	"github.com/weir-run/weir/scripting"
	"github.com/weir-run/weir/scripting/api"
	"github.com/weir-run/weir/scripting/operation"
)

// seen is `s` of the hooks series and stream. Each VM has one of each.
type seen struct {
	hosted
	v      *vm
	typ    *scripting.ObjectType
	labels labels
	what   string   // in messages: the hook
	unseen []string // members that it lacks because its result is cached
	use    string   // the hook that has them
}

// openSeries creates the arguments of the hooks series and stream.
func (v *vm) openSeries() {
	of := func(s *seen) goja.Value {
		s.v = v
		s.labels.init(v, s)
		ms := v.operations(s.typ, func(call goja.FunctionCall, c *operation.Call) {
			c.Series = self[*seen](v, call, "a "+s.what).check()
		})
		ms["toString"] = func(call goja.FunctionCall) goja.Value {
			s := self[*seen](v, call, "a "+s.what)
			return v.data.texts.value(s.what + " " + s.check().Name() + labelsText(s))
		}
		v.openMethods(s.typ, ms)
		return s.open(v.rt, v.data.proto.record, s)
	}
	v.series = of(&seen{typ: named().series, what: "series", use: "metrics", unseen: []string{"value", "time", "stale", "histogram", "exemplars"}})
	v.stream = of(&seen{typ: named().stream, what: "stream", use: "logs", unseen: []string{"line", "metadata", "time", "ts"}})
}

func (s *seen) check() *view.Series {
	if s.v.seen == nil {
		s.v.raise(errors.New("cannot use a " + s.what + " after its hook returned"))
	}
	return s.v.seen
}

func (s *seen) label(name string) string          { return s.check().Label(name) }
func (s *seen) setLabel(name, value string) error { return s.check().SetLabel(name, value) }
func (s *seen) all() iter.Seq2[string, string]    { return s.check().Labels() }

// Get returns a field or a method.
func (s *seen) Get(name string) goja.Value {
	m, d := s.check(), &s.v.data
	if name == "labels" {
		return s.labels.value()
	}
	if slices.Contains(s.unseen, name) {
		s.v.raise(fmt.Errorf("cannot read %s in %s: the hook sees labels only, because what it decides is remembered for the %s; use %s", name, s.what, s.what, s.use))
	}
	if s.typ == named().series {
		switch name {
		case "name":
			return d.texts.value(m.Name())
		case "type":
			return d.texts.value(m.Type())
		case "help":
			return d.texts.value(m.Help())
		case "unit":
			return d.texts.value(m.Unit())
		}
	}
	return s.v.member(s.typ, name)
}

// Set sets a field.
func (s *seen) Set(name string, x goja.Value) bool {
	m := s.check()
	switch {
	case name == "labels":
		s.v.setLabels(s, x)
	case name == "name" && s.typ == named().series:
		s.v.must(m.SetName(s.v.stringField(name, x)))
	default:
		s.v.raise(api.CannotSet(s.typ, name))
	}
	return true
}

// Has reports whether it has a member of that name.
func (s *seen) Has(name string) bool { return has(s.typ, name) }

// Delete refuses.
func (s *seen) Delete(name string) bool {
	s.v.raise(fmt.Errorf("cannot delete %s of a %s", name, s.what))
	return false
}

// Keys returns the names of the fields.
func (s *seen) Keys() []string { return scripting.Names(s.typ.Fields) }

package host_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/weir-run/weir/engine/clock/clocktest"
	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/scripting"
	"github.com/weir-run/weir/scripting/block"
	"github.com/weir-run/weir/scripting/host"
	"github.com/weir-run/weir/scripting/state"
	"github.com/weir-run/weir/stdlib"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// script is ctx of a script on one VM, whose functions a test calls.
type script struct {
	call    host.Call // at hand
	outside bool      // no call is at hand
	clock   *clocktest.Fake
	access  *host.Access
	metrics *host.Metrics
	shown   []component.Health
	slept   []time.Duration

	slots []*host.StateSlot
	ctx   *scripting.Module
}

var epoch = time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC)

// open makes ctx of a definition; o is what the script may reach.
func open(t *testing.T, def *scripting.Definition, o host.AccessOptions, slots ...*host.StateSlot) *script {
	t.Helper()
	s := &script{clock: clocktest.New(epoch), metrics: host.NewMetrics(), slots: slots}
	s.call = host.Call{Now: epoch, Clock: s.clock}
	if o.Allow == nil {
		o.Allow = &block.Allow{}
	}
	o.Name, o.Needs, o.UserAgent = "test.script", def.Needs, "weir/test"
	if o.Modules == nil {
		o.Modules = stdlib.Modules()
	}
	var err error
	if s.access, err = host.NewAccess(o); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.access.Close)
	s.ctx = host.NewContext(&host.Binding{
		Call: func() *host.Call {
			if s.outside {
				return nil
			}
			return &s.call
		},
		Wait: func(fn func(context.Context) (scripting.Value, error)) (scripting.Value, error) {
			return fn(t.Context())
		},
		Sleep: func(_ context.Context, d time.Duration) error {
			s.slept = append(s.slept, d)
			return nil
		},
		Health: func(h component.Health) { s.shown = append(s.shown, h) },
		Metric: func(kind host.MetricKind, name string, labels *scripting.Map, help string) (*host.Series, string, string) {
			return s.metrics.Series(1, kind, name, labels, help)
		},
	}, slots, s.access, def)
	return s
}

// transform is a definition with nothing in it.
func transform() *scripting.Definition { return &scripting.Definition{Kind: scripting.Transform} }

// do calls a function of ctx, such as http.get.
func (s *script) do(t *testing.T, name string, args ...scripting.Value) (scripting.Value, error) {
	t.Helper()
	m := s.ctx
	if table, rest, ok := strings.Cut(name, "."); ok {
		name = rest
		for _, part := range s.ctx.Tables {
			if part.Name == table {
				m = part
			}
		}
	}
	f, ok := m.Func(name)
	if !ok {
		t.Fatalf("ctx has no %s", name)
	}
	return f.Call(nil, args)
}

// method calls a method of an object.
func method(t *testing.T, x scripting.Value, name string, args ...scripting.Value) (scripting.Value, error) {
	t.Helper()
	o := x.(*scripting.Object)
	f, ok := o.Type.Method(name)
	if !ok {
		t.Fatalf("%s has no method %s", o.Type.Name, name)
	}
	return f.Call(o, args)
}

// table is a map of names and values, one after the other.
func table(pairs ...scripting.Value) *scripting.Map {
	m := scripting.NewMap()
	for i := 0; i < len(pairs); i += 2 {
		m.Set(pairs[i].(string), pairs[i+1])
	}
	return m
}

func list(items ...scripting.Value) *scripting.List { return &scripting.List{Items: items} }

// fails checks the message of an error.
func fails(t *testing.T, what string, err error, want string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%s: got %v, want %q", what, err, want)
	}
}

// collection is an empty piece of state.
func collection(d state.Decl) *state.Collection {
	if d.Max == 0 {
		d.Max = state.DefaultMax
	}
	d.MaxBytes, d.MaxValue = state.DefaultMaxBytes, state.DefaultMaxValue
	return state.New(state.Options{}).Plan([]state.Decl{d}, 1, false, 0).Collections[0]
}

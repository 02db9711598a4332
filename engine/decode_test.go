package engine_test

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/flow"
)

// countedArguments count how often they are decoded.
type countedArguments struct {
	Value     string           `alloy:"value,attr,optional"`
	ForwardTo []*flow.Receiver `alloy:"forward_to,attr,optional"`

	decoded *atomic.Int64
}

func (a *countedArguments) SetToDefault() {
	*a = countedArguments{decoded: a.decoded}
	a.decoded.Add(1)
}

// counted is a component that does nothing.
type counted struct{}

func (counted) Run(ctx context.Context) error {
	<-ctx.Done()
	return nil
}

// TestDecodeUnchanged reloads configs: a block is decoded again only if its arguments may be
// different.
func TestDecodeUnchanged(t *testing.T) {
	bubble(t, func(l *harness) {
		var decoded atomic.Int64
		var got string
		l.catalog.regs["test.counted"] = component.Registration{
			Name:    "test.counted",
			Sends:   metricsSignal,
			NewArgs: func() any { return &countedArguments{decoded: &decoded} },
			Build: func(_ component.Options, args any, _ component.Component) (component.Component, error) {
				got = args.(*countedArguments).Value
				return counted{}, nil
			},
		}
		f := func(what, config, value string, again bool) {
			t.Helper()
			before := decoded.Load()
			if err := l.reload(config); err != nil {
				t.Fatalf("%s: %v", what, err)
			}
			if n := decoded.Load() - before; (n > 0) != again {
				t.Errorf("%s: decoded %d times", what, n)
			}
			if got != value {
				t.Errorf("%s: runs with %q", what, got)
			}
		}
		const sink = "test.sink \"s\" { }\n"
		const block = "test.counted \"c\" {\n  value = \"1\"\n  forward_to = [test.sink.s.receiver]\n}\n"
		l.start(block + sink)
		f("nothing changes", block+sink, "1", false)
		f("the block moves", "// new\n"+sink+block, "1", false)
		f("what it refers to changes", "test.sink \"s\" {\n  number = 1\n}\n"+block, "1", false)
		f("the block changes", "test.counted \"c\" {\n  value = \"2\"\n  forward_to = [test.sink.s.receiver]\n}\n"+sink, "2", true)
		f("the block changes back", block+sink, "1", true)
		f("a block is new", "test.counted \"c\" {\n  value = \"1\"\n}\n", "1", true)

		value := func(v string) string {
			return "test.value \"v\" {\n  value = \"" + v + "\"\n}\ntest.counted \"c\" {\n  value = test.value.v.value\n}\n"
		}
		f("the block refers to a value", value("3"), "3", true)
		f("the value may have changed", value("3"), "3", true)
		f("the value changes", value("4"), "4", true)
		f("a function may return another value", "test.counted \"c\" {\n  value = sys.env(\"NO_SUCH_VARIABLE\")\n}\n", "", true)
		f("it still may", "test.counted \"c\" {\n  value = sys.env(\"NO_SUCH_VARIABLE\")\n}\n", "", true)

		// The same name may stand for another node.
		f("a sink", block+sink, "1", true)
		if err := l.reload(block); err == nil {
			t.Error("the block refers to a node that is not there")
		}
		f("the sink is back", block+sink, "1", false)
	})
}

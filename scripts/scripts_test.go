package scripts_test

import (
	"context"
	"io/fs"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/grafana/alloy/syntax/parser"
	"github.com/grafana/alloy/syntax/vm"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/component/componenttest"
	"github.com/weir-run/weir/engine/flow"
	"github.com/weir-run/weir/engine/flow/flowtest"
	"github.com/weir-run/weir/scripting"
	"github.com/weir-run/weir/scripting/lua"
	"github.com/weir-run/weir/scripts"
	"github.com/weir-run/weir/stdlib"
)

// TestHeaderExamples runs the examples in the header of every script that
// ships, which must have one.
func TestHeaderExamples(t *testing.T) {
	lang := lua.New()
	c, err := scripting.NewCatalog(scripting.Options{Languages: []scripting.Language{lang}, Embedded: scripts.FS, Modules: stdlib.Modules()})
	if err != nil {
		t.Fatal(err)
	}
	if len(c.Names()) == 0 {
		t.Fatal("there are no scripts")
	}
	for _, name := range c.Names() {
		t.Run(name, func(t *testing.T) {
			reg, _ := c.Lookup(name)
			if reg.Err != nil {
				t.Fatal(reg.Err)
			}
			text, err := fs.ReadFile(scripts.FS, strings.ReplaceAll(name, ".", "/")+".lua")
			if err != nil {
				t.Fatal(err)
			}
			header := scripting.ParseHeader(lang.Comment(string(text)))
			if header.Summary == "" || len(header.Examples) == 0 {
				t.Fatal("a script that ships needs a header with a summary and an example")
			}
			for _, e := range header.Examples {
				if diff := cmp.Diff(e.Output, run(t, reg, e)); diff != "" {
					t.Errorf("example in line %d (-want +got):\n%s", e.Line, diff)
				}
			}
		})
	}
}

func run(t *testing.T, reg component.Registration, e scripting.Example) string {
	t.Helper()
	sink := flowtest.NewSink("sink")
	file, err := parser.ParseFile("example.alloy", []byte("forward_to = [sink]\n"+e.Args))
	if err != nil {
		t.Fatal(err)
	}
	args := reg.NewArgs()
	if err := vm.New(file).Evaluate(vm.NewScope(map[string]any{"sink": sink.Receiver()}), args); err != nil {
		t.Fatal(err)
	}
	node := componenttest.New(t, reg.Name+".default")
	const now = 1_700_000_000_000
	in, err := batch.ParseText(e.Input, batch.TextOptions{T: now})
	if err != nil {
		t.Fatal(err)
	}
	if err := node.Build(t, reg, args).(flow.MetricsConsumer).ConsumeMetrics(context.Background(), in); err != nil {
		t.Fatal(err)
	}
	if h := node.Health(); h.State != component.Healthy {
		t.Fatalf("got %s: %s", h.State, h.Message)
	}
	if sink.Last() == nil {
		return ""
	}
	return string(batch.AppendTextAt(nil, sink.Last(), now))
}

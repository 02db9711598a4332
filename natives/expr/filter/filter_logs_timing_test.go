package filter_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/component/componenttest"
	"github.com/weir-run/weir/engine/flow"
	"github.com/weir-run/weir/natives/expr/filter"
	"github.com/weir-run/weir/natives/expr/internal/clause"
	"github.com/weir-run/weir/natives/expr/route"
	"github.com/weir-run/weir/natives/expr/set"
	"github.com/weir-run/weir/natives/loki/process"
)

func (nowhere) ConsumeLogs(context.Context, *batch.Logs) error { return nil }

// BenchmarkLines compares each expr component with the stage that does the same:
// 1000 lines of 200 bytes in two streams, half of them dropped.
func BenchmarkLines(b *testing.B) {
	in := &batch.Logs{Source: 1}
	streams := []*batch.Stream{}
	for i := range 2 {
		streams = append(streams, batch.NewSeries([]batch.Label{{Name: "app", Value: "api"}, {Name: "side", Value: fmt.Sprint(i)}}))
	}
	for i := range 1000 {
		in.Stream, in.T = append(in.Stream, streams[i/10%2]), append(in.T, int64(i))
		in.Line = append(in.Line, fmt.Sprintf(`level=%s ts=2025-01-01T00:00:00Z caller=%0150d msg="done"`, []string{"info", "debug"}[i%2], i))
	}
	gate := flow.NewReceiver("nowhere", batch.SignalLogs, nil, nil)
	gate.Set(nowhere{})
	to := []*flow.Receiver{gate}
	f := func(name string, r component.Registration, args any) {
		perRow(b, name, r, args, in.Len(), "ns/line", func(c component.Component) error {
			return c.(flow.LogsConsumer).ConsumeLogs(b.Context(), in)
		})
	}
	pred := func(s clause.Predicate) *clause.Predicate { return &s }
	drop := func(src string) {
		f("drop/"+src, filter.Registration(), &filter.Arguments{ForwardTo: to, Drop: pred(clause.Predicate(src))})
	}
	stages := func(name, body string) {
		a := componenttest.Arguments[*process.Arguments](b, process.Registration(), "forward_to = []\n"+body)
		a.ForwardTo = to
		f(name, process.Registration(), a)
	}
	drop(`labels.side == "1"`)
	stages("drop/stage.match by labels", "stage.match {\nselector = `{side=\"1\"}`\naction = \"drop\"\n}")
	drop(`line contains "level=debug"`)
	stages("drop/stage.match by text", "stage.match {\nselector = `{side=~\".+\"} |= \"level=debug\"`\naction = \"drop\"\n}")
	drop(`line matches "level=(debug|trace)"`)
	stages("drop/stage.drop by expression", "stage.drop {\nexpression = `level=(debug|trace)`\n}")
	f("set/label", set.Registration(), &set.Arguments{ForwardTo: to, Labels: []*set.Label{{Name: "x", Value: `labels.side + "x"`}}})
	f("set/label of line", set.Registration(), &set.Arguments{ForwardTo: to, Labels: []*set.Label{{Name: "x", Value: `line contains "debug" ? "debug" : "other"`}}})
	f("route/labels", route.Registration(), &route.Arguments{ForwardTo: to, Routes: []*route.Route{{Name: "a", When: `labels.side == "1"`}}})
	f("route/line", route.Registration(), &route.Arguments{ForwardTo: to, Routes: []*route.Route{{Name: "a", When: `line contains "debug"`}}})
}

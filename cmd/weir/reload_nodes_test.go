package main

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/flow"
)

// reloadSink is test.sink, which collects samples and log lines as text.
type reloadSink struct {
	mu   sync.Mutex
	text []byte
}

func (s *reloadSink) registration() component.Registration {
	type exports struct {
		Receiver *flow.Receiver `alloy:"receiver,attr"`
	}
	return component.Registration{
		Name: "test.sink", Accepts: batch.SignalMetrics | batch.SignalLogs, NewArgs: func() any { return &struct{}{} }, Exports: exports{},
		Build: func(component.Options, any, component.Component) (component.Component, error) { return s, nil },
	}
}

func (s *reloadSink) Run(ctx context.Context) error {
	<-ctx.Done()
	return nil
}

func (s *reloadSink) ConsumeMetrics(_ context.Context, b *batch.Metrics) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.text = batch.AppendTextAt(s.text, b, 1)
	return nil
}

func (s *reloadSink) ConsumeLogs(_ context.Context, b *batch.Logs) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.text = batch.AppendLogsTextAt(s.text, b, 0)
	return nil
}

// take returns what came since it was called last, sorted, without the ends of series.
func (s *reloadSink) take() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	lines := slices.DeleteFunc(slices.Sorted(strings.Lines(string(s.text))), func(line string) bool { return strings.Contains(line, "NaN") })
	s.text = nil
	return strings.Join(lines, "")
}

// reloadSource is test.source, which sends what it is given.
type reloadSource struct {
	mu  sync.Mutex
	out *flow.Output
}

func (s *reloadSource) registration() component.Registration {
	type arguments struct {
		ForwardTo []*flow.Receiver `alloy:"forward_to,attr"`
	}
	return component.Registration{
		Name: "test.source", Sends: batch.SignalMetrics | batch.SignalLogs, NewArgs: func() any { return &arguments{} },
		Build: func(o component.Options, args any, _ component.Component) (component.Component, error) {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.out = flow.NewOutput(o.Stats, args.(*arguments).ForwardTo)
			return s, nil
		},
	}
}

func (s *reloadSource) Run(ctx context.Context) error {
	<-ctx.Done()
	return nil
}

// send sends samples, or log lines if the text begins with the labels of a stream.
func (s *reloadSource) send(text string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.out == nil {
		return errors.New("the config has no test.source")
	}
	ctx, cancel := context.WithTimeout(context.Background(), reloadPatience)
	defer cancel()
	if strings.HasPrefix(text, "{") {
		b, err := batch.ParseLogsText(text, batch.TextOptions{Source: batch.NewPushSource()})
		if err != nil {
			return err
		}
		return s.out.SendLogs(ctx, b)
	}
	b, err := batch.ParseText(text, batch.TextOptions{T: 1, Source: batch.NewPushSource()})
	if err != nil {
		return err
	}
	return s.out.SendMetrics(ctx, b)
}

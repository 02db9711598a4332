// Package echo is loki.echo: it prints every line to standard output with its stream,
// time and metadata, for debugging.
//
// A line is printed as {label="value",…} @time {metadata} line, which is the form
// that tests of scripts are written in.
package echo

import (
	"context"
	"fmt"
	"io"
	"os"
	"sync"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/flow"
)

// Arguments of loki.echo. It has none.
type Arguments struct{}

// Exports of loki.echo.
type Exports struct {
	// Receiver of the lines to print.
	Receiver *flow.Receiver `alloy:"receiver,attr"`
}

// Registration describes loki.echo.
func Registration() component.Registration { return registration(os.Stdout) }

func registration(w io.Writer) component.Registration {
	return component.Registration{
		Name:    "loki.echo",
		Accepts: batch.SignalLogs,
		NewArgs: func() any { return new(Arguments) },
		Exports: Exports{},
		Build: func(component.Options, any, component.Component) (component.Component, error) {
			return &Component{w: w}, nil
		},
	}
}

// Component is the component of a loki.echo node.
type Component struct {
	mu sync.Mutex
	w  io.Writer
}

var (
	_ component.Component = (*Component)(nil)
	_ component.Updater   = (*Component)(nil)
	_ flow.LogsConsumer   = (*Component)(nil)
)

// Update does nothing, because there are no arguments.
func (c *Component) Update(any) error { return nil }

// Run waits until ctx ends.
func (c *Component) Run(ctx context.Context) error {
	<-ctx.Done()
	return nil
}

// ConsumeLogs prints b. It accepts the batch only if all of it was written.
func (c *Component) ConsumeLogs(_ context.Context, b *batch.Logs) error {
	text := batch.AppendLogsText(nil, b)
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, err := c.w.Write(text); err != nil {
		return fmt.Errorf("cannot print a batch of lines: %w", err)
	}
	return nil
}

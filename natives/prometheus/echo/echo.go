// Package echo is prometheus.echo: it prints every batch to standard output in an
// exposition format, for debugging.
//
// A batch is printed as a whole, its rows grouped into metric families. It is not
// a way to export metrics, because exposition formats cannot represent
// everything: a native histogram is printed as an approximate classic histogram,
// and a staleness marker as NaN after a comment.
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

// Registration describes prometheus.echo.
func Registration() component.Registration { return registration(os.Stdout) }

func registration(w io.Writer) component.Registration {
	return component.Registration{
		Name:    "prometheus.echo",
		Accepts: batch.SignalMetrics,
		NewArgs: func() any { a := new(Arguments); a.SetToDefault(); return a },
		Exports: Exports{},
		Build: func(_ component.Options, args any, _ component.Component) (component.Component, error) {
			return &Component{w: w, format: args.(*Arguments).Format}, nil
		},
	}
}

// Component is the component of a prometheus.echo node.
type Component struct {
	w io.Writer

	mu     sync.Mutex
	format Format
	buf    []byte
}

var (
	_ component.Component  = (*Component)(nil)
	_ component.Updater    = (*Component)(nil)
	_ flow.MetricsConsumer = (*Component)(nil)
)

// Update applies new arguments.
func (c *Component) Update(args any) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.format = args.(*Arguments).Format
	return nil
}

// Run waits until ctx ends.
func (c *Component) Run(ctx context.Context) error {
	<-ctx.Done()
	return nil
}

// maxKeptBuffer is the maximum size of the buffer that a Component retains
// between batches.
const maxKeptBuffer = 1 << 20

// ConsumeMetrics prints b. It accepts the batch only if all of it was written.
func (c *Component) ConsumeMetrics(_ context.Context, b *batch.Metrics) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.buf = appendExposition(c.buf[:0], b, c.format)
	_, err := c.w.Write(c.buf)
	if cap(c.buf) > maxKeptBuffer {
		c.buf = nil
	}
	if err != nil {
		return fmt.Errorf("cannot print a batch: %w", err)
	}
	return nil
}

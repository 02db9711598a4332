package node

import (
	"context"

	"github.com/weir-run/weir/scripting"
)

type observed struct{}

// Observe returns a context with which ConsumeMetrics of a scripted component
// calls fn with every error in the script. fn may be called from any goroutine.
func Observe(ctx context.Context, fn func(*scripting.Error)) context.Context {
	return context.WithValue(ctx, observed{}, fn)
}

func observer(ctx context.Context) func(*scripting.Error) {
	fn, _ := ctx.Value(observed{}).(func(*scripting.Error))
	return fn
}

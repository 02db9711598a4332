package scripting

import "context"

type observed struct{}

// Observe returns a context with which ConsumeMetrics of a scripted component
// tells fn of every error in the script. fn may be called from any goroutine.
func Observe(ctx context.Context, fn func(*Error)) context.Context {
	return context.WithValue(ctx, observed{}, fn)
}

func observer(ctx context.Context) func(*Error) {
	fn, _ := ctx.Value(observed{}).(func(*Error))
	return fn
}

package host

import (
	"context"
	"net/http"
	"time"

	"github.com/weir-run/weir/engine/clock"
	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/scripting"
)

// Call is the call of a hook, for the functions of ctx.
type Call struct {
	Now         time.Time // of the engine's clock
	Clock       clock.Clock
	Setup       bool // it is the hook setup, which is not called again
	Remembering bool // the hook's result is cached
	// OutsideFailed means that an external request of the call failed.
	OutsideFailed bool
	Delivery      *Delivery // of the hook send; nil for any other hook
	// Sleep and Flush implement ctx.sleep and ctx.flush in the hook run; nil for
	// any other hook.
	Sleep func(d time.Duration) error
	Flush func() error
}

// Delivery is an attempt to deliver a batch, with the results that the hook
// send sets.
type Delivery struct {
	Attempt int    // from 1
	ID      string // of the batch, the same for every attempt

	Retry     bool           // the whole batch must be sent again
	After     time.Duration  // when; 0 if not set
	Reason    string         // of retry
	Rejected  map[int]string // rows that are lost, with the reasons
	RejectAll string         // why the whole batch is lost; "" if it is not
}

// failsBy reports whether a response means that the external system does not
// work, rather than that it rejects the data. For a sink, this is every error
// except those for unacceptable data: a record does not cause a wrong password,
// for example.
func (k *Call) failsBy(status int) bool {
	switch status {
	case http.StatusTooManyRequests:
		return true
	case http.StatusBadRequest, http.StatusRequestEntityTooLarge, http.StatusUnprocessableEntity:
		return false
	}
	return status >= 500 || k.Delivery != nil && status >= 400
}

// Binding connects the ctx of one VM to its component.
type Binding struct {
	// Call returns the current call, or nil outside of calls.
	Call func() *Call
	// Wait runs a function that waits for external events, within the call's
	// context and limits. Every Function that Waits uses it.
	Wait func(fn func(ctx context.Context) (scripting.Value, error)) (scripting.Value, error)
	// Sleep waits for a time of the engine's clock.
	Sleep func(ctx context.Context, d time.Duration) error
	// Export sets values of the component's exports.
	Export func(values *scripting.Map) error
	// Health reports the health that the script sets.
	Health func(h component.Health)
	// Metric returns a series of the node's own metrics. msg describes the error
	// in the argument called name.
	Metric func(kind MetricKind, name string, labels *scripting.Map, help string) (s *Series, wrong, msg string)
}

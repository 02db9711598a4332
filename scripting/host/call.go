package host

import (
	"context"
	"net/http"
	"time"

	"github.com/weir-run/weir/engine/clock"
	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/scripting"
)

// Call is the call of a hook, as the functions of ctx see it.
type Call struct {
	Now         time.Time // of the engine's clock
	Clock       clock.Clock
	Setup       bool // it is the hook setup, which is not called again
	Remembering bool // a hook runs whose answer is remembered
	// OutsideFailed says that the call has used the outside, and that did not work.
	OutsideFailed bool
	Delivery      *Delivery // of the hook send; nil: it is another hook
	// Sleep and Flush are what ctx.sleep and ctx.flush do in the hook run; nil: it
	// is another hook.
	Sleep func(d time.Duration) error
	Flush func() error
}

// Delivery is an attempt to deliver a batch, and what the hook send says of it.
type Delivery struct {
	Attempt int    // from 1
	ID      string // of the batch, the same at every attempt

	Retry     bool           // all of it is to be sent again
	After     time.Duration  // when; 0: the script does not say
	Reason    string         // of retry
	Rejected  map[int]string // rows that are lost for good, with the reason
	RejectAll string         // why all of it is lost for good; "": it is not
}

// failsBy reports whether an answer says that the outside does not work, rather
// than something about the data. To a sink that is every error but those which
// servers answer to what they cannot accept: a record is not to blame for a
// password.
func (k *Call) failsBy(status int) bool {
	switch status {
	case http.StatusTooManyRequests:
		return true
	case http.StatusBadRequest, http.StatusRequestEntityTooLarge, http.StatusUnprocessableEntity:
		return false
	}
	return status >= 500 || k.Delivery != nil && status >= 400
}

// Binding is the component that the ctx of one VM belongs to, as the functions of
// ctx see it.
type Binding struct {
	// Call returns the call at hand, nil outside of calls.
	Call func() *Call
	// Wait runs a function that waits for the outside, within the call's context
	// and limits. Every Function that Waits goes through it.
	Wait func(fn func(ctx context.Context) (scripting.Value, error)) (scripting.Value, error)
	// Sleep waits for a time of the engine's clock.
	Sleep func(ctx context.Context, d time.Duration) error
	// Export gives values of the component's exports.
	Export func(values *scripting.Map) error
	// Health shows what the script says of the node.
	Health func(h component.Health)
	// Metric returns a series of the node's own metrics. msg says what is wrong
	// with the argument of that name.
	Metric func(kind MetricKind, name string, labels *scripting.Map, help string) (s *Series, wrong, msg string)
}

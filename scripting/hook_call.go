package scripting

import (
	"context"
	"net/http"
	"time"

	"github.com/weir-run/weir/engine/clock"
	"github.com/weir-run/weir/engine/component"
)

// hookCall is the call of a hook, as the functions of ctx see it.
type hookCall struct {
	now         time.Time // of the engine's clock
	clock       clock.Clock
	setup       bool // it is the hook setup, which is not called again
	remembering bool // a hook runs whose answer is remembered
	// outsideFailed says that the call has used the outside, and that did not work.
	outsideFailed bool
	delivery      *delivery // of the hook send; nil: it is another hook
	// sleep and flush are what ctx.sleep and ctx.flush do in the hook run; nil: it
	// is another hook.
	sleep func(d time.Duration) error
	flush func() error
}

// delivery is an attempt to deliver a batch, and what the hook send says of it.
type delivery struct {
	attempt int    // from 1
	id      string // of the batch, the same at every attempt

	retry    bool           // all of it is to be sent again
	after    time.Duration  // when; 0: the script does not say
	reason   string         // of retry
	rejected map[int]string // rows that are lost for good, with the reason
	all      string         // why all of it is lost for good; "": it is not
}

// failsBy reports whether an answer says that the outside does not work, rather
// than something about the data. To a sink that is every error but those which
// servers answer to what they cannot accept: a record is not to blame for a
// password.
func (k *hookCall) failsBy(status int) bool {
	switch status {
	case http.StatusTooManyRequests:
		return true
	case http.StatusBadRequest, http.StatusRequestEntityTooLarge, http.StatusUnprocessableEntity:
		return false
	}
	return status >= 500 || k.delivery != nil && status >= 400
}

// hookHost is the component that the ctx of one VM belongs to.
type hookHost struct {
	// call returns the call at hand, nil outside of calls.
	call func() *hookCall
	// wait runs a function that waits for the outside, within the call's context
	// and limits. Every Function that Waits goes through it.
	wait func(fn func(ctx context.Context) (Value, error)) (Value, error)
	// sleep waits for a time of the engine's clock.
	sleep func(ctx context.Context, d time.Duration) error
	// export gives values of the component's exports.
	export func(values *Map) error
	// health shows what the script says of the node.
	health func(h component.Health)
	// metric returns a series of the node's own metrics. msg says what is wrong
	// with the argument of that name.
	metric func(kind ownKind, name string, labels *Map, help string) (s *ownSeries, wrong, msg string)
}

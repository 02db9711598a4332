package component

import (
	"errors"
	"time"
)

// ErrRebuild is returned by Update when the change needs a new component.
var ErrRebuild = errors.New("the change needs a rebuild")

// ErrReplaced is the cause (context.Cause) with which the context of Run ends
// when the component that replaces it has taken over.
var ErrReplaced = errors.New("the component was replaced")

// ErrRemoved is the cause (context.Cause) with which the context of Run ends
// when the node leaves the graph while weir goes on running. With a cause that
// is neither ErrRemoved nor ErrReplaced, weir stops and expects to come back.
var ErrRemoved = errors.New("the node was removed")

// HealthState is how well a node does.
type HealthState uint8

// The health states, from best to worst where they are merged.
const (
	Unknown HealthState = iota
	Healthy
	Unhealthy
	Exited
)

var healthNames = [...]string{"unknown", "healthy", "unhealthy", "exited"}

// String returns the state in lower case.
func (s HealthState) String() string { return healthNames[s] }

// MarshalText returns the state in lower case.
func (s HealthState) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// The reasons for which a node is not healthy. A component may have reasons of
// its own, in lower_snake_case and of a closed set: they are a metric's label.
const (
	// ReasonBuild: the component cannot be built or updated as the config says.
	ReasonBuild = "build"
	// ReasonRun: the component failed while it ran.
	ReasonRun = "run"
	// ReasonStalled: an operation has not returned; see package stall.
	ReasonStalled = "stalled"
	// ReasonComponent is what a component says without another reason.
	ReasonComponent = "component"
	// ReasonTimeout: a call of a script took longer than it may.
	ReasonTimeout = "call_timeout"
	// ReasonHeld: batches are held until the script works on them.
	ReasonHeld = "batch_held"
	// ReasonQueue: data waits and the queue does not drain.
	ReasonQueue = "queue_not_draining"
	// ReasonChurn: what a foreach or an import is written out of changes faster
	// than nodes can be built.
	ReasonChurn = "changes_too_fast"
)

// Health is a state, why, and since when.
type Health struct {
	State   HealthState `json:"state"`
	Message string      `json:"message"`
	// Time is when the state began. In a report of a component it is when the
	// component reports: the engine knows when the state began.
	Time time.Time `json:"time"`
	// Reason is why the state is worse than healthy, one of a closed set; "" is
	// ReasonComponent in a report of a component.
	Reason string `json:"reason,omitempty"`
}

// Following returns h as the health that follows before: a state that stays the
// same began when it began before, whatever the message says.
func (h Health) Following(before Health) Health {
	if h.State == before.State && !before.Time.IsZero() {
		h.Time = before.Time
	}
	return h
}

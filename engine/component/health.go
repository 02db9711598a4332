package component

import (
	"errors"
	"time"
)

// ErrRebuild is returned by Update when the change needs a new component.
var ErrRebuild = errors.New("the change needs a rebuild")

// ErrReplaced is the cause (context.Cause) with which the context of Run ends
// when a new component has replaced this one.
var ErrReplaced = errors.New("the component was replaced")

// ErrRemoved is the cause (context.Cause) with which the context of Run ends
// when the node leaves the graph while weir continues to run. If the cause is
// neither ErrRemoved nor ErrReplaced, weir stops and expects to be started
// again.
var ErrRemoved = errors.New("the node was removed")

// HealthState is the health of a node.
type HealthState uint8

// The health states, from best to worst. Merged states have the worst of their
// states.
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

// The reasons for which a node is not healthy. A component may define its own
// reasons. They are in lower_snake_case and from a closed set, because they are
// values of a metric label.
const (
	// ReasonBuild means that the component cannot be built or updated with this
	// config.
	ReasonBuild = "build"
	// ReasonRun means that the component failed while it ran.
	ReasonRun = "run"
	// ReasonStalled means that an operation has not returned; see package stall.
	ReasonStalled = "stalled"
	// ReasonComponent is the reason of a report that names no other reason.
	ReasonComponent = "component"
	// ReasonTimeout means that a call of a script exceeded its time limit.
	ReasonTimeout = "call_timeout"
	// ReasonHeld means that batches are held until the script can process them.
	ReasonHeld = "batch_held"
	// ReasonQueue means that data waits and the queue does not drain.
	ReasonQueue = "queue_not_draining"
	// ReasonChurn means that the input of a foreach or an import changes faster
	// than nodes can be built.
	ReasonChurn = "changes_too_fast"
)

// Health is a state with its reason, message and start time.
type Health struct {
	State   HealthState `json:"state"`
	Message string      `json:"message"`
	// Time is when the state began. In a component's report, it is the time of the
	// report; the engine finds out when the state began.
	Time time.Time `json:"time"`
	// Reason is why the state is worse than healthy, from a closed set. In a
	// component's report, "" means ReasonComponent.
	Reason string `json:"reason,omitempty"`
}

// Following returns h as the successor of before. If the state is the same, its
// start time is that of before, even if the message differs.
func (h Health) Following(before Health) Health {
	if h.State == before.State && !before.Time.IsZero() {
		h.Time = before.Time
	}
	return h
}

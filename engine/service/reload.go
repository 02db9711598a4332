package service

import "time"

// Reload is the record of one change of the running graph. It is not written to once
// it can be read.
type Reload struct {
	// ID counts up from the start. Numbers may be missing.
	ID uint64 `json:"id"`
	// Follows are the IDs of earlier records that this one completes, at most 21: those
	// of changes whose compilations, tests or calls took long and ended with this one, and
	// that of the config that was refused when its scripts were not.
	Follows []uint64 `json:"follows,omitempty"`
	// Time is when the change was made or refused.
	Time    time.Time `json:"time"`
	Seconds float64   `json:"seconds"`
	Trigger Trigger   `json:"trigger"`
	// Outcome is "applied", "partial" (a node stayed on its last good version),
	// "refused" (nothing was changed) or "in progress" (the new versions are being
	// tested); "" when there was no change.
	Outcome string `json:"outcome"`
	// Message says what changed, or why it was refused: a position, the
	// message and the source line for each mistake. It has at most 8 KiB.
	Message string `json:"message"`
	// Nodes are the nodes that the change touched, at most 50; Omitted is the number
	// of further ones.
	Nodes   []ReloadNode `json:"nodes"`
	Omitted int          `json:"omitted,omitempty"`
	// Rebuilt and Untouched are numbers of nodes.
	Rebuilt   int `json:"rebuilt"`
	Untouched int `json:"untouched"`
	// Steps are the seconds of each step: detect, compile, check, test, shadow, canary,
	// build and swap. A step that took place for several nodes at once has the longest
	// time. A change that completes earlier ones has their detect and compile.
	Steps map[string]float64 `json:"steps"`
}

// Trigger is why a change began.
type Trigger struct {
	// Kind is "start", "request", "files", or "graph" for what follows from the exports
	// or the restart of a node.
	Kind string `json:"kind"`
	// Files are the paths that changed, at most 50.
	Files []string `json:"files,omitempty"`
}

// The kinds of a Trigger.
const (
	TriggerStart   = "start"
	TriggerRequest = "request"
	TriggerFiles   = "files"
	TriggerGraph   = "graph"
)

// ReloadNode is a node in the record of a change.
type ReloadNode struct {
	ID string `json:"id"`
	// Action is added, rebuilt, updated, removed, refused (by Step), failed or "in
	// progress".
	Action string `json:"action"`
	// From and To are versions. If To was refused, From keeps running.
	From string `json:"from,omitempty"`
	To   string `json:"to,omitempty"`
	// Step is the step that refused the version, or that is in progress.
	Step string `json:"step,omitempty"`
	// Message is why it failed or was refused, at most 1 KiB.
	Message string `json:"message,omitempty"`
}

// Trial is a step of a new version of a node that is in progress.
type Trial struct {
	Version string    `json:"version"`
	Step    string    `json:"step"`
	Since   time.Time `json:"since"` // when the step began
}

// ReloadEvent is a step of a reload: a step of a trial that began, or a change that
// was made or refused.
type ReloadEvent struct {
	ID   uint64 // counts up from the start
	Time time.Time
	// Node and Trial are set if a step of a trial began.
	Node  string
	Trial *Trial
	// Reload is set if a change was made or refused, or waits for trials.
	Reload *Reload
}

// Preview is what a reload would change.
type Preview struct {
	// Nodes are the nodes that would change, in the order in which they would.
	Nodes     []PreviewNode `json:"nodes"`
	Untouched int           `json:"untouched"`
}

// PreviewNode is a node that a reload would change.
type PreviewNode struct {
	ID string `json:"id"`
	// Action is added, rebuilt, updated (or rebuilt, if it cannot be updated), removed,
	// refused, in progress (its new version is being tried), or unknown (what it does
	// depends on the exports of another node, or on a script that is still being compiled).
	Action string `json:"action"`
	// From and To are versions.
	From string `json:"from,omitempty"`
	To   string `json:"to,omitempty"`
	Why  string `json:"why"`
	// Shadow is how the results of the new version differ from those of the running one;
	// nil for natives and for nodes whose version would not change.
	Shadow any `json:"shadow,omitempty"`
}

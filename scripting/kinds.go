package scripting

import (
	"slices"

	"github.com/weir-run/weir/engine/batch"
)

// ComponentKind is the role of a component in the graph. The function of weir
// that creates the definition sets it. The differences between kinds are in
// this file (their keys), in args_config.go (what the host adds to their
// blocks), and in files per kind: source*.go, sink*.go, http*.go. Everything
// else is common to all kinds.
type ComponentKind string

// The kinds.
const (
	// Transform receives data, processes it and sends it on.
	Transform ComponentKind = "transform"
	// Source creates data, or exports, from requests that it sends or receives.
	Source ComponentKind = "source"
	// Sink receives data and delivers it to an external system.
	Sink ComponentKind = "sink"
)

// ComponentKinds are all kinds, in the order of the manual.
var ComponentKinds = []ComponentKind{Transform, Source, Sink}

// definitionKey is a key of a definition with the function that reads it. Keys
// that are more than a hook have their own file.
type definitionKey struct {
	name string
	read func(d *definer, field RawField)
}

// keys are the keys of a kind's definition, in the order of the manual.
func (k ComponentKind) keys() []definitionKey {
	switch k {
	case Source:
		return sourceKeys
	case Sink:
		return sinkKeys
	}
	return transformKeys
}

var transformKeys = slices.Concat([]definitionKey{
	{"args", defineArgs},
	{"series", hookKey(func(d *Definition) *bool { return &d.Series })},
	{"metrics", hookKey(func(d *Definition) *bool { return &d.Metrics })},
	{"stream", hookKey(func(d *Definition) *bool { return &d.Stream })},
	{"logs", hookKey(func(d *Definition) *bool { return &d.Logs })},
	{"sends", defineSends},
	{"on_error", defineOnError},
}, commonKeys, []definitionKey{
	{"outputs", defineOutputs},
	{"needs", defineNeeds},
})

var sourceKeys = slices.Concat([]definitionKey{
	{"args", defineArgs},
	{"poll", hookKey(func(d *Definition) *bool { return &d.Poll })},
	{"interval", defineInterval},
	{"run", hookKey(func(d *Definition) *bool { return &d.Run })},
	{"http", defineHTTP},
	{"sends", defineSends},
	{"exports", defineExports},
}, commonKeys, []definitionKey{
	{"outputs", defineOutputs},
	{"needs", defineNeeds},
})

var sinkKeys = slices.Concat([]definitionKey{
	{"args", defineArgs},
	{HookSend, hookKey(func(d *Definition) *bool { return &d.Send })},
	{"accepts", defineAccepts},
	{"batch", defineBatch},
	{"on_error", defineOnError},
}, commonKeys, []definitionKey{
	{"needs", defineNeeds},
})

// commonKeys are the keys of every kind.
var commonKeys = []definitionKey{
	{"every", defineEvery},
	{"setup", hookKey(func(d *Definition) *bool { return &d.Setup })},
	{"teardown", hookKey(func(d *Definition) *bool { return &d.Teardown })},
	{HookMigrate, hookKey(func(d *Definition) *bool { return &d.Migrate })},
	{"version", defineVersion},
	{"state", defineState},
}

// complete checks the required keys of a definition and sets defaults. line is
// the line of the definition.
func (d *definer) complete(line int) {
	def := d.def
	switch def.Kind {
	case Transform:
		if def.Accepts() == 0 && len(d.errs) == 0 {
			d.fail(line, "cannot use a transform without a hook: write series or metrics, for logs stream or logs")
		}
		if def.Sends == 0 {
			def.Sends = def.Accepts()
		}
	case Source:
		d.completeSource(line)
	case Sink:
		d.completeSink(line)
	}
}

// Accepts returns the signals that the component takes: those of its hooks, or
// for a sink those in accepts.
func (d *Definition) Accepts() (s batch.Signals) {
	if d.Kind == Sink {
		return d.takes
	}
	if d.Series || d.Metrics {
		s |= batch.SignalMetrics
	}
	if d.Stream || d.Logs {
		s |= batch.SignalLogs
	}
	return s
}

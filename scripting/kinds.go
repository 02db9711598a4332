package scripting

import (
	"slices"

	"github.com/weir-run/weir/engine/batch"
)

// ComponentKind is what a component is to the graph: the function of weir that
// made its definition. What differs between kinds is here (their keys), in
// args_config.go (what the host adds to their blocks), and in the kind's own
// files: source*.go, sink*.go, http*.go. All else is common to them.
type ComponentKind string

// The kinds.
const (
	// Transform is sent data and sends on what it leaves of it.
	Transform ComponentKind = "transform"
	// Source makes data, or exports, of what it asks for or is told.
	Source ComponentKind = "source"
	// Sink is sent data and delivers it to something that is not weir.
	Sink ComponentKind = "sink"
)

// ComponentKinds are all kinds, in the order of the manual.
var ComponentKinds = []ComponentKind{Transform, Source, Sink}

// definitionKey is a key of a definition and what reads it, which lives in a
// file of its own where it is more than a hook.
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

// commonKeys are those that every kind has.
var commonKeys = []definitionKey{
	{"every", defineEvery},
	{"setup", hookKey(func(d *Definition) *bool { return &d.Setup })},
	{"teardown", hookKey(func(d *Definition) *bool { return &d.Teardown })},
	{HookMigrate, hookKey(func(d *Definition) *bool { return &d.Migrate })},
	{"version", defineVersion},
	{"state", defineState},
}

// complete checks what a definition of a kind must have, and fills in what it
// does not say. line is the definition's.
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

// Accepts are the signals that the component takes: those of its hooks, of a
// sink those that it says.
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

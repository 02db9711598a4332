package scripting

import (
	"slices"
	"strings"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/config"
)

// Accepts are the signals that the component takes: those of its hooks.
func (d *Definition) Accepts() (s batch.Signals) {
	if d.Series || d.Metrics {
		s |= batch.SignalMetrics
	}
	if d.Stream || d.Logs {
		s |= batch.SignalLogs
	}
	return s
}

// signalNames are what sends may name.
var signalNames = []string{"metrics", "logs"}

// defineSends reads sends = { "metrics", "logs" }: the signals that leave the
// component, where they are not those that it takes.
func defineSends(d *definer, field RawField) {
	list, ok := stringList(field.Value)
	if !ok || len(list) == 0 {
		d.fail(field.Line, `cannot use %s as sends: it must be a list of "metrics" and "logs"`, describe(field.Value))
		return
	}
	for _, name := range list {
		i := slices.Index(signalNames, name)
		if i < 0 {
			e := d.fail(field.Line, "cannot use %q in sends: there is %s", name, strings.Join(signalNames, " and "))
			e.Hint = config.DidYouMean(name, signalNames)
			continue
		}
		d.def.Sends |= batch.SignalMetrics << i
	}
}

package scripting

import (
	"slices"
	"strings"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/config"
)

// signalNames are the valid elements of sends and accepts.
var signalNames = []string{"metrics", "logs"}

// sendsMetrics is the default of sends.
const sendsMetrics = batch.SignalMetrics

// defineSends reads sends = { "metrics", "logs" }: the signals that leave the
// component, if they differ from the signals that it takes.
func defineSends(d *definer, field RawField) { d.def.Sends, d.saysSends = d.signals(field), true }

// signals reads a list of signals.
func (d *definer) signals(field RawField) (s batch.Signals) {
	list, ok := stringList(field.Value)
	if !ok || len(list) == 0 {
		d.fail(field.Line, `cannot use %s as %s: it must be a list of "metrics" and "logs"`, describe(field.Value), field.Name)
		return 0
	}
	for _, name := range list {
		i := slices.Index(signalNames, name)
		if i < 0 {
			e := d.fail(field.Line, "cannot use %q in %s: there is %s", name, field.Name, strings.Join(signalNames, " and "))
			e.Hint = config.DidYouMean(name, signalNames)
			continue
		}
		s |= batch.SignalMetrics << i
	}
	return s
}

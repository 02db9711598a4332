package scripting

import (
	"fmt"
	"slices"
	"strings"

	"github.com/weir-run/weir/engine/config"
	"github.com/weir-run/weir/engine/view"
)

// defineOutputs reads the names of outputs in addition to forward_to.
func defineOutputs(d *definer, field RawField) {
	names, ok := stringList(field.Value)
	if !ok {
		d.fail(field.Line, "cannot use %s as outputs: it must be a list of names", describe(field.Value)).Hint = `write outputs = { "errors" }`
		return
	}
	for i, name := range names {
		switch {
		case !identifier.MatchString(name):
			d.fail(field.Line, "cannot name an output %q: it must be an identifier", name)
		case slices.Contains(names[:i], name):
			d.fail(field.Line, "cannot name two outputs %q", name)
		case name == "forward_to":
			d.fail(field.Line, "cannot name an output %q: that is where all goes that is not routed", name)
		}
	}
	if len(names) > view.MaxOutputs {
		d.fail(field.Line, "cannot use %d outputs: at most %d", len(names), view.MaxOutputs)
	}
	d.def.Outputs = names
}

// Way returns the way of an output in the window of a batch. The error lists
// the outputs.
func (d *Definition) Way(output string) (int, error) {
	if i := slices.Index(d.Outputs, output); i >= 0 {
		return i + 1, nil
	}
	if len(d.Outputs) == 0 {
		return 0, fmt.Errorf("cannot route to %q: the definition has no outputs; write outputs = { %q }", output, output)
	}
	e := fmt.Errorf("cannot route to %q: there is %s", output, strings.Join(d.Outputs, ", "))
	if hint := config.DidYouMean(output, d.Outputs); hint != "" {
		e = fmt.Errorf("%w; %s", e, hint)
	}
	return 0, e
}

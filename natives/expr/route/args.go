package route

import (
	"errors"
	"fmt"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/flow"
	"github.com/weir-run/weir/natives/expr/internal/clause"
)

// Arguments of expr.route.
type Arguments struct {
	// Routes, in the order in which they are evaluated. A sample or log line takes only
	// the first route whose expression is true.
	Routes []*Route `alloy:"route,block"`
	// Receivers of samples and log lines that match no route. If the list is empty, they
	// are dropped.
	ForwardTo []*flow.Receiver `alloy:"forward_to,attr"`
}

// Route sends samples and log lines for which an expression is true to receivers.
type Route struct {
	Name string `alloy:",label"`
	// Boolean expression that selects samples and log lines. For a sample, it can use
	// name, labels, value, type and time (Unix ms); for a log line, it can use line,
	// labels, meta (the structured metadata) and time. A missing label is "". If an
	// expression of the block uses name, value or type, the block accepts only samples.
	// If an expression uses line or meta, the block accepts only log lines. Otherwise,
	// the block accepts the same signals as its receivers. 'weir help expr' describes
	// expressions.
	When clause.Predicate `alloy:"when,attr"`
	// Receivers of the selected samples and log lines. If the list is empty, they are
	// dropped.
	ForwardTo []*flow.Receiver `alloy:"forward_to,attr"`
}

// maxRoutes is the number of routes that fit into a 64-bit word together with the
// bit for forward_to.
const maxRoutes = 63

// SetToDefault leaves all arguments unset.
func (a *Arguments) SetToDefault() { *a = Arguments{} }

// Validate returns all errors in the arguments, joined.
func (a *Arguments) Validate() error {
	var errs []error
	if n := len(a.Routes); n > maxRoutes {
		errs = append(errs, fmt.Errorf("%d route blocks are more than the %d allowed; send the rest to another expr.route", n, maxRoutes))
	}
	seen := map[string]bool{}
	for _, r := range a.Routes {
		if seen[r.Name] {
			errs = append(errs, errors.New("there are two blocks route \""+r.Name+"\""))
		}
		seen[r.Name] = true
	}
	errs = append(errs, a.fit().Err())
	return errors.Join(errs...)
}

// fit returns the signals that the expressions support.
func (a *Arguments) fit() *clause.Fit {
	var fit clause.Fit
	for _, r := range a.Routes {
		if r.When != "" { // an empty expression has been reported already
			fit.Reads(fmt.Sprintf("route %q", r.Name), r.When.Compile())
		}
	}
	return &fit
}

// passes implements Registration.Passes.
func passes(args any) (batch.Signals, string) { return args.(*Arguments).fit().Signals() }

// receiversByRoute returns the receivers by route, with those of forward_to last.
func (a *Arguments) receiversByRoute() (out [][]*flow.Receiver) {
	for _, r := range a.Routes {
		out = append(out, r.ForwardTo)
	}
	return append(out, a.ForwardTo)
}

// Exports of expr.route.
type Exports struct {
	// Receiver of the samples and log lines to route.
	Receiver *flow.Receiver `alloy:"receiver,attr"`
}

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
	// Routes in the order they are asked: a sample or log line goes the first one
	// whose expression is true, and no other.
	Routes []*Route `alloy:"route,block"`
	// Receivers to send to what no route takes; with an empty list it is
	// dropped.
	ForwardTo []*flow.Receiver `alloy:"forward_to,attr"`
}

// Route is where samples and lines go for which an expression is true.
type Route struct {
	Name string `alloy:",label"`
	// Expression that is true for what goes this way. For a sample it can use name,
	// labels, value, type and time (Unix ms); for a log line, line, labels, meta (the
	// structured metadata) and time. A label that is missing is "". A block with an
	// expression that uses name, value or type takes samples only, one with an
	// expression that uses line or meta takes lines only; any other takes what its
	// receivers take. 'weir help expr' describes expressions.
	When clause.Predicate `alloy:"when,attr"`
	// Receivers to send it to; with an empty list it is dropped.
	ForwardTo []*flow.Receiver `alloy:"forward_to,attr"`
}

// maxRoutes is what fits into a word beside the rest.
const maxRoutes = 63

// SetToDefault leaves everything unset.
func (a *Arguments) SetToDefault() { *a = Arguments{} }

// Validate returns all that is wrong with the arguments, joined.
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

// fit is what the expressions are for.
func (a *Arguments) fit() *clause.Fit {
	var fit clause.Fit
	for _, r := range a.Routes {
		if r.When != "" { // else there is a mistake in it
			fit.Reads(fmt.Sprintf("route %q", r.Name), r.When.Compile())
		}
	}
	return &fit
}

// passes is Registration.Passes.
func passes(args any) (batch.Signals, string) { return args.(*Arguments).fit().Signals() }

// receiversByRoute are the receivers by route, those of forward_to last.
func (a *Arguments) receiversByRoute() (out [][]*flow.Receiver) {
	for _, r := range a.Routes {
		out = append(out, r.ForwardTo)
	}
	return append(out, a.ForwardTo)
}

// Exports of expr.route.
type Exports struct {
	// Where samples and lines to be sent on their ways go.
	Receiver *flow.Receiver `alloy:"receiver,attr"`
}

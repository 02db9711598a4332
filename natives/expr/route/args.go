package route

import (
	"errors"
	"fmt"

	"github.com/weir-run/weir/engine/flow"
	"github.com/weir-run/weir/natives/expr/clause"
)

// Arguments of expr.route.
type Arguments struct {
	// Routes in the order they are asked: a sample goes the first one whose
	// expression is true, and no other.
	Routes []*Route `alloy:"route,block"`
	// Receivers to send the samples to that no route takes; with an empty list
	// they are dropped.
	ForwardTo []*flow.Receiver `alloy:"forward_to,attr"`
}

// Route is where samples go for which an expression is true.
type Route struct {
	Name string `alloy:",label"`
	// Expression that says which samples go this way. It sees name, labels,
	// value, type and time (Unix ms). A missing label is "".
	When clause.Predicate `alloy:"when,attr"`
	// Receivers to send them to; with an empty list they are dropped.
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
	return errors.Join(errs...)
}

// ways are the receivers by route, those of forward_to last.
func (a *Arguments) ways() (out [][]*flow.Receiver) {
	for _, r := range a.Routes {
		out = append(out, r.ForwardTo)
	}
	return append(out, a.ForwardTo)
}

// Exports of expr.route.
type Exports struct {
	// Where samples to be sent on their ways go.
	Receiver *flow.Receiver `alloy:"receiver,attr"`
}

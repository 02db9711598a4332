package clause

import (
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/expr"
)

// failureAge is the time without a batch after which a source whose last batch
// failed does not make its node unhealthy any more, because it is considered
// removed.
const failureAge = 10 * time.Minute

// Failures reports expressions that fail on samples and lines: with a counter,
// one log line and the node's health. It is passed from component to component.
// Its methods are safe for concurrent use.
type Failures struct {
	count *prometheus.CounterVec

	mu      sync.Mutex
	failing map[uint64]time.Time // sources whose last batch contained a failure
	pruned  time.Time
	message string // the health message; "" while it is healthy
}

// NewFailures returns the Failures of a node. arguments are the names of its
// arguments with expressions, such as "drop".
func NewFailures(arguments ...string) *Failures {
	f := &Failures{
		count: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "weir_expr_errors_total",
			Help: "Samples and log lines on which an expression failed, by the argument it is in. They were forwarded unchanged.",
		}, []string{"argument"}),
		failing: map[uint64]time.Time{},
	}
	for _, a := range arguments {
		f.count.WithLabelValues(a) // expose 0, because increase() ignores the first sample
	}
	return f
}

// Register registers the counter.
func (f *Failures) Register(r prometheus.Registerer) error {
	if err := component.Register(r, f.count); err != nil {
		return fmt.Errorf("cannot register the expressions' metrics: %w", err)
	}
	return nil
}

// Batch collects the failures of one batch. The zero value is empty.
type Batch struct {
	first string
	n     map[string]int // by argument
}

// Add records that the expression of an argument failed on a sample of s.
func (b *Batch) Add(argument string, s *batch.Series, err error) {
	if b.add(argument) {
		b.first = fmt.Sprintf("%s: %s, in a sample of %s", argument, inOneLine(err), s)
	}
}

// AddLine records that the expression of an argument failed on a line of s.
func (b *Batch) AddLine(argument string, s *batch.Stream, err error) {
	if b.add(argument) {
		b.first = fmt.Sprintf("%s: %s, in a line of %s", argument, inOneLine(err), batch.AppendStream(nil, s))
	}
}

// add counts a failure and reports whether it is the first one.
func (b *Batch) add(argument string) bool {
	first := b.n == nil
	if first {
		b.n = map[string]int{}
	}
	b.n[argument]++
	return first
}

func inOneLine(err error) string {
	if e, ok := errors.AsType[*expr.Error](err); ok {
		if e.Line == 0 {
			return e.Msg
		}
		return fmt.Sprintf("%s (%d:%d)", e.Msg, e.Line, e.Column)
	}
	line, _, _ := strings.Cut(err.Error(), "\n")
	return line
}

// Done reports the failures of a batch of source. b may be empty.
func (f *Failures) Done(o *component.Options, source uint64, b *Batch) {
	for a, n := range b.n {
		f.count.WithLabelValues(a).Add(float64(n))
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if b.n == nil && f.message == "" {
		return // the common case
	}
	now := o.Clock.Now()
	if now.Sub(f.pruned) >= failureAge/10 { // not for each batch, because there may be many sources
		f.pruned = now
		maps.DeleteFunc(f.failing, func(_ uint64, t time.Time) bool { return now.Sub(t) > failureAge })
	}
	if b.n != nil {
		f.failing[source] = now
		if f.message == "" {
			f.message = b.first
			o.Logger.Error("expression failed", "err", b.first)
			o.Health(component.Health{State: component.Unhealthy, Message: b.first, Time: now})
		}
		return
	}
	delete(f.failing, source)
	if len(f.failing) == 0 {
		f.message = ""
		o.Logger.Info("expressions work again")
		o.Health(component.Health{State: component.Healthy, Time: now})
	}
}

// Start resets the health for a component that begins with different expressions
// from the previous one.
func (f *Failures) Start(o *component.Options) {
	f.mu.Lock()
	defer f.mu.Unlock()
	clear(f.failing)
	f.message = ""
	o.Health(component.Health{State: component.Healthy, Time: o.Clock.Now()})
}

package engine

import (
	"errors"
	"time"
)

// question is what the engine asks a component about itself for the status, the
// metrics and the shutdown. The answer may need a lock that a call holds which hangs, so nobody waits for
// it for long.
type question uint8

const (
	askBacklog question = iota
	askDebug
	askMetrics
	askUnaccepted
	questions
)

const (
	// answerPatience is how long to wait for an answer. It is shorter while other
	// components do not answer, so that many of them delay the status about twice as
	// long as one.
	answerPatience    = 40 * time.Millisecond
	minAnswerPatience = time.Millisecond
	// metricsPatience is answerPatience for metrics: a missing metric looks like a
	// counter that was reset.
	metricsPatience = time.Second
)

// errNoAnswer means that a component does not answer a question, which is then not asked
// again before it has answered. Its node becomes unhealthy after some time.
var errNoAnswer = errors.New("the component does not answer")

// ask calls into a component, and returns errNoAnswer if that does not return in time.
func ask[T any](g *instance, q question, call func() T) (T, error) {
	type answer struct {
		v   T
		err error
	}
	var zero T
	hung, all := &g.hung[q], &g.n.e.hung
	if hung.Load() > 0 {
		return zero, errNoAnswer
	}
	what, patience := "status", answerPatience
	if q == askMetrics {
		what, patience = "collect metrics", metricsPatience
	}
	answers := make(chan answer, 1)
	go func() { // it may hang, so nobody waits for its end
		op := g.n.watch.Begin(what, 0)
		defer op.End()
		var a answer
		a.err = guard(func() error { a.v = call(); return nil })
		answers <- a
	}()
	timer := time.NewTimer(max(patience>>min(all.Load(), 16), minAnswerPatience))
	defer timer.Stop()
	select {
	case a := <-answers:
		return a.v, a.err
	case <-timer.C:
	}
	hung.Add(1)
	all.Add(1)
	go func() {
		<-answers
		hung.Add(-1)
		all.Add(-1)
	}()
	return zero, errNoAnswer
}

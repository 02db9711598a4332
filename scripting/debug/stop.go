package debug

import (
	"context"
	"errors"

	"github.com/google/go-dap"

	"github.com/weir-run/weir/scripting"
)

// stepper says where the script stops next, breakpoints aside.
type stepper struct {
	pausing bool // at the next statement
	mode    stepMode
	from    scripting.DebugStatement
	depth   int
}

type stepMode uint8

const (
	running  stepMode = iota
	stepIn            // at the next line, in any function
	stepOver          // at the next line, not in functions that it calls
	stepOut           // after the function has returned
)

// reason returns why the script stops at a statement, "" if it does not.
func (st *stepper) reason(at scripting.DebugStatement, p scripting.Paused) string {
	if st.pausing {
		return "pause"
	}
	if st.mode == running {
		return ""
	}
	depth := p.Depth()
	// A line ends where another line begins, or where it begins again.
	sameLine := at.File == st.from.File && at.Line == st.from.Line && at.Number != st.from.Number
	stops := depth < st.depth
	switch st.mode {
	case stepIn:
		stops = depth != st.depth || !sameLine
	case stepOver:
		stops = depth < st.depth || depth == st.depth && !sameLine
	}
	if !stops {
		return ""
	}
	return "step"
}

// stop is a script that is stopped.
type stop struct {
	paused scripting.Paused
	at     scripting.DebugStatement
	work   chan func()   // what the goroutine of the script does meanwhile
	resume chan struct{} // closed when the script goes on
	gone   chan struct{} // closed when the goroutine of the script takes no more work

	// refs are the lists of variables by reference minus 1. Only the goroutine of
	// the script uses them.
	refs []func() []scripting.Variable
}

// errEnded ends the call of a script that is no longer debugged.
var errEnded = errors.New("the debugger ended the call")

// at is called before a statement.
func (s *Session) at(ctx context.Context, at scripting.DebugStatement, p scripting.Paused) error {
	if ctx.Err() != nil {
		return errEnded
	}
	s.mu.Lock()
	if !s.ready {
		s.mu.Unlock()
		return nil
	}
	points, step := s.points.at(at), s.stepper
	s.mu.Unlock()
	reason := step.reason(at, p)
	if len(points) == 0 && reason == "" {
		return nil
	}
	var err error
	p.Wait(func() {
		var hit []int
		for _, b := range points {
			if s.hits(b, p) {
				hit = append(hit, b.id)
			}
		}
		if len(hit) > 0 {
			reason = "breakpoint"
		}
		if reason != "" {
			err = s.wait(ctx, at, p, reason, hit)
		}
	})
	return err
}

// wait stops the script until the client resumes it.
func (s *Session) wait(ctx context.Context, at scripting.DebugStatement, p scripting.Paused, reason string, hit []int) error {
	st := &stop{paused: p, at: at, work: make(chan func()), resume: make(chan struct{}), gone: make(chan struct{})}
	s.mu.Lock()
	s.stepper, s.stop = stepper{}, st
	s.mu.Unlock()
	s.send(&dap.StoppedEvent{Event: event("stopped"), Body: dap.StoppedEventBody{
		Reason: reason, ThreadId: threadID, AllThreadsStopped: true, HitBreakpointIds: hit,
	}})
	defer close(st.gone)
	for {
		select {
		case fn := <-st.work:
			fn()
		case <-st.resume:
			return nil
		case <-ctx.Done():
			s.mu.Lock()
			s.stop = nil
			s.mu.Unlock()
			s.send(&dap.ContinuedEvent{Event: event("continued"), Body: dap.ContinuedEventBody{ThreadId: threadID, AllThreadsContinued: true}})
			return errEnded
		}
	}
}

var errNotStopped = errors.New("the script is not stopped: it runs, or waits for a batch")

// stopped calls fn on the goroutine of the script, if it is stopped.
func (s *Session) stopped(fn func(*stop) error) error {
	s.mu.Lock()
	st := s.stop
	s.mu.Unlock()
	if st == nil {
		return errNotStopped
	}
	done := make(chan error, 1)
	select {
	case st.work <- func() { done <- fn(st) }:
		return <-done
	case <-st.gone:
		return errNotStopped
	}
}

// goOn calls before, and lets the script go on in a mode.
func (s *Session) goOn(mode stepMode, before func()) error {
	var depth int
	err := s.stopped(func(st *stop) error {
		depth = st.paused.Depth()
		return nil
	})
	if err != nil {
		return err
	}
	s.mu.Lock()
	st := s.stop
	if st == nil {
		s.mu.Unlock()
		return errNotStopped
	}
	s.stop, s.stepper = nil, stepper{mode: mode, from: st.at, depth: depth}
	s.mu.Unlock()
	before() // the response comes before the next stop
	close(st.resume)
	return nil
}

package debug

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/google/go-dap"

	"github.com/weir-run/weir/scripting"
)

// threadID is the number of the only thread.
const threadID = 1

// Categories of Print.
const (
	Console = "console" // about the session
	Stdout  = "stdout"  // results and log lines of the script
	Stderr  = "stderr"  // errors of the script
)

// Session is the debugger of one client. It is safe for concurrent use.
type Session struct {
	name       string
	configured chan struct{} // closed when the client has set its breakpoints
	ended      sync.Once     // there is nothing more to debug

	out struct {
		mu  sync.Mutex
		w   io.Writer
		seq int
	}

	mu      sync.Mutex
	ready   bool // configured is closed
	files   []scripting.DebugFile
	points  points
	stepper stepper
	stop    *stop // nil: the script runs, or there is no call
	shipped []string
}

// New returns a session that writes to w. The name is that of the thread.
func New(name string, w io.Writer) *Session {
	s := &Session{name: name, configured: make(chan struct{}), points: newPoints()}
	s.out.w = w
	return s
}

// Configured is closed when the client has set its breakpoints, so that the script
// may run.
func (s *Session) Configured() <-chan struct{} { return s.configured }

// Program returns what a version of the script is compiled with. When ctx ends, its
// call ends with an error.
func (s *Session) Program(ctx context.Context) *scripting.Debug {
	return &scripting.Debug{At: func(st scripting.DebugStatement, p scripting.Paused) error { return s.at(ctx, st, p) }}
}

// Load replaces the files of the script.
func (s *Session) Load(files []scripting.DebugFile) {
	s.mu.Lock()
	s.files = files
	changed := s.points.bind(files)
	s.mu.Unlock()
	for _, p := range changed {
		s.send(&dap.BreakpointEvent{Event: event("breakpoint"), Body: dap.BreakpointEventBody{Reason: "changed", Breakpoint: p.shown()}})
	}
}

// Print shows text to the user.
func (s *Session) Print(category, text string) {
	s.send(&dap.OutputEvent{Event: event("output"), Body: dap.OutputEventBody{Category: category, Output: text + "\n"}})
}

// EndCall ends stepping: the call of the script has returned.
func (s *Session) EndCall() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stepper = stepper{pausing: s.stepper.pausing}
}

// End tells the client why there is nothing more to debug. It returns when the client
// has been told, also if another goroutine tells it.
func (s *Session) End(reason string) {
	s.ended.Do(func() {
		s.Print(Console, reason)
		s.send(&dap.TerminatedEvent{Event: event("terminated")})
	})
}

// Serve handles the requests of the client until it disconnects. The error is that
// of the connection; nil if the client ended the session.
func (s *Session) Serve(r io.Reader) error {
	in := bufio.NewReader(r)
	for {
		content, err := dap.ReadBaseMessage(in)
		if err != nil {
			return fmt.Errorf("cannot read a request of the debugger: %w", err)
		}
		m, err := dap.DecodeProtocolMessage(content)
		if unknown, ok := errors.AsType[*dap.DecodeProtocolMessageFieldError](err); ok {
			s.refuse(&dap.Request{ProtocolMessage: dap.ProtocolMessage{Seq: unknown.Seq}, Command: unknown.FieldValue}, errors.New("weir does not support this request"))
			continue
		}
		if err != nil {
			return fmt.Errorf("cannot read a request of the debugger: %w", err)
		}
		req, ok := m.(dap.RequestMessage)
		if !ok {
			continue // a response to a request that weir never makes
		}
		if done := s.handle(req); done {
			return nil
		}
	}
}

func event(name string) dap.Event {
	return dap.Event{ProtocolMessage: dap.ProtocolMessage{Type: "event"}, Event: name}
}

// send writes a message. An error shows in reading: the client is gone.
func (s *Session) send(m dap.Message) {
	s.out.mu.Lock()
	defer s.out.mu.Unlock()
	s.out.seq++
	switch m := m.(type) {
	case dap.ResponseMessage:
		m.GetResponse().Seq = s.out.seq
	case dap.EventMessage:
		m.GetEvent().Seq = s.out.seq
	}
	_ = dap.WriteProtocolMessage(s.out.w, m)
}

// response returns the successful response to a request.
func response(req *dap.Request) dap.Response {
	return dap.Response{ProtocolMessage: dap.ProtocolMessage{Type: "response"}, RequestSeq: req.Seq, Success: true, Command: req.Command}
}

// refuse sends an error as the response to a request.
func (s *Session) refuse(req *dap.Request, err error) {
	r := &dap.ErrorResponse{Response: response(req)}
	r.Success, r.Message = false, err.Error()
	r.Body.Error = &dap.ErrorMessage{Id: 1, Format: "{text}", Variables: map[string]string{"text": err.Error()}}
	s.send(r)
}

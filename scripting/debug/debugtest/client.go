// Package debugtest has a client of the Debug Adapter Protocol for tests.
package debugtest

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-dap"
)

// Client is a debugger. It is not safe for concurrent use.
type Client struct {
	t    testing.TB
	w    io.Writer
	in   chan dap.Message
	kept []dap.Message // events that nobody has waited for
	seq  int
}

// New returns a client of a server. It reads until the connection ends; wait for
// that with Closed.
func New(t testing.TB, r io.Reader, w io.Writer) *Client {
	c := &Client{t: t, w: w, in: make(chan dap.Message, 10_000)}
	go func() {
		defer close(c.in)
		buffered := bufio.NewReader(r)
		for {
			m, err := dap.ReadProtocolMessage(buffered)
			if err != nil {
				return
			}
			c.in <- m
		}
	}()
	return c
}

func (c *Client) next() dap.Message {
	c.t.Helper()
	m, ok := <-c.in
	if !ok {
		c.t.Fatal("the debug adapter has closed the connection")
	}
	return m
}

// Closed waits until the server has closed the connection.
func (c *Client) Closed() {
	for m := range c.in {
		c.kept = append(c.kept, m)
	}
}

// send sends a request, which the caller has filled in except for its type.
func (c *Client) send(command string, m dap.RequestMessage) dap.Message {
	c.t.Helper()
	c.seq++
	r := m.GetRequest()
	r.Seq, r.Type, r.Command = c.seq, "request", command
	if err := dap.WriteProtocolMessage(c.w, m); err != nil {
		c.t.Fatal(err)
	}
	for {
		got := c.next()
		if resp, ok := got.(dap.ResponseMessage); ok && resp.GetResponse().RequestSeq == c.seq {
			return got
		}
		c.kept = append(c.kept, got)
	}
}

// Do sends a request and returns its response.
func Do[T dap.Message](c *Client, command string, m dap.RequestMessage) T {
	c.t.Helper()
	got := c.send(command, m)
	out, ok := got.(T)
	if !ok {
		c.t.Fatalf("got %s for %s, want a %T", describe(got), command, out)
	}
	return out
}

// Refused sends a request and returns the error that is its response.
func (c *Client) Refused(command string, m dap.RequestMessage) string {
	c.t.Helper()
	return Do[*dap.ErrorResponse](c, command, m).Message
}

func describe(m dap.Message) string {
	if e, ok := m.(*dap.ErrorResponse); ok {
		return "the error " + e.Message
	}
	return fmt.Sprintf("a %T", m)
}

// Event waits for an event.
func Event[T dap.Message](c *Client) T {
	c.t.Helper()
	for i, m := range c.kept {
		if out, ok := m.(T); ok {
			c.kept = slices.Delete(c.kept, i, i+1)
			return out
		}
	}
	for {
		m := c.next()
		if out, ok := m.(T); ok {
			return out
		}
		c.kept = append(c.kept, m)
	}
}

// Output waits for output that contains a text.
func (c *Client) Output(text string) string {
	c.t.Helper()
	for {
		if out := Event[*dap.OutputEvent](c).Body.Output; strings.Contains(out, text) {
			return out
		}
	}
}

// Start begins a session with breakpoints in a file, and returns them.
func (c *Client) Start(path string, points ...dap.SourceBreakpoint) []dap.Breakpoint {
	c.t.Helper()
	c.Initialize()
	return c.Attach("{}", path, points...)
}

// Initialize sends the first request.
func (c *Client) Initialize() {
	c.t.Helper()
	Do[*dap.InitializeResponse](c, "initialize", &dap.InitializeRequest{Arguments: dap.InitializeRequestArguments{AdapterID: "weir", LinesStartAt1: true, ColumnsStartAt1: true, PathFormat: "path"}})
}

// Attach is the rest of Start after Initialize, with the attributes of a launch.json.
func (c *Client) Attach(attributes, path string, points ...dap.SourceBreakpoint) []dap.Breakpoint {
	c.t.Helper()
	Do[*dap.AttachResponse](c, "attach", &dap.AttachRequest{Arguments: []byte(attributes)})
	Event[*dap.InitializedEvent](c)
	set := c.Break(path, points...)
	Do[*dap.ConfigurationDoneResponse](c, "configurationDone", &dap.ConfigurationDoneRequest{})
	return set
}

// Break replaces the breakpoints of a file.
func (c *Client) Break(path string, points ...dap.SourceBreakpoint) []dap.Breakpoint {
	c.t.Helper()
	return Do[*dap.SetBreakpointsResponse](c, "setBreakpoints", &dap.SetBreakpointsRequest{Arguments: dap.SetBreakpointsArguments{
		Source: dap.Source{Path: path}, Breakpoints: points,
	}}).Body.Breakpoints
}

// Stopped waits until the script stops, and returns the reason and the stack, as
// function:line from the innermost on.
func (c *Client) Stopped() string {
	c.t.Helper()
	reason := Event[*dap.StoppedEvent](c).Body.Reason
	for _, f := range c.Stack() {
		reason += fmt.Sprintf(" %s:%d", f.Name, f.Line)
	}
	return reason
}

// Stack returns the frames.
func (c *Client) Stack() []dap.StackFrame {
	c.t.Helper()
	return Do[*dap.StackTraceResponse](c, "stackTrace", &dap.StackTraceRequest{Arguments: dap.StackTraceArguments{ThreadId: 1}}).Body.StackFrames
}

// Step sends continue, next, stepIn or stepOut.
func (c *Client) Step(command string) {
	c.t.Helper()
	m := map[string]dap.RequestMessage{
		"continue": &dap.ContinueRequest{Arguments: dap.ContinueArguments{ThreadId: 1}}, "next": &dap.NextRequest{Arguments: dap.NextArguments{ThreadId: 1}},
		"stepIn": &dap.StepInRequest{Arguments: dap.StepInArguments{ThreadId: 1}}, "stepOut": &dap.StepOutRequest{Arguments: dap.StepOutArguments{ThreadId: 1}},
	}[command]
	if got := c.send(command, m); !got.(dap.ResponseMessage).GetResponse().Success {
		c.t.Fatalf("got %s for %s", describe(got), command)
	}
}

// Evaluate returns the value of an expression in a frame, or "error: " and the error.
func (c *Client) Evaluate(frame int, code string) string {
	c.t.Helper()
	got := c.send("evaluate", &dap.EvaluateRequest{Arguments: dap.EvaluateArguments{Expression: code, FrameId: frame}})
	if e, ok := got.(*dap.ErrorResponse); ok {
		return "error: " + e.Message
	}
	return got.(*dap.EvaluateResponse).Body.Result
}

// Scope returns the variables of a scope of a frame, as name=value, with a space
// between them.
func (c *Client) Scope(frame int, name string) string {
	c.t.Helper()
	for _, s := range Do[*dap.ScopesResponse](c, "scopes", &dap.ScopesRequest{Arguments: dap.ScopesArguments{FrameId: frame}}).Body.Scopes {
		if s.Name == name {
			return Join(c.Variables(s.VariablesReference))
		}
	}
	c.t.Fatalf("frame %d has no scope %s", frame, name)
	return ""
}

// Variables returns the variables of a reference.
func (c *Client) Variables(ref int) []dap.Variable {
	c.t.Helper()
	return Do[*dap.VariablesResponse](c, "variables", &dap.VariablesRequest{Arguments: dap.VariablesArguments{VariablesReference: ref}}).Body.Variables
}

// Join returns variables as name=value, with a space between them.
func Join(vs []dap.Variable) string {
	var out []string
	for _, v := range vs {
		out = append(out, v.Name+"="+v.Value)
	}
	return strings.Join(out, " ")
}

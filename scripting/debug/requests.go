package debug

import (
	"fmt"
	"slices"

	"github.com/google/go-dap"

	"github.com/weir-run/weir/scripting"
)

// handle responds to a request, and reports whether the client ends the session.
func (s *Session) handle(m dap.RequestMessage) (done bool) {
	req := m.GetRequest()
	var err error
	switch m := m.(type) {
	case *dap.InitializeRequest:
		s.send(initialized(m))
		s.send(&dap.InitializedEvent{Event: event("initialized")})
	case *dap.LaunchRequest:
		s.send(&dap.LaunchResponse{Response: response(req)})
	case *dap.AttachRequest:
		s.send(&dap.AttachResponse{Response: response(req)})
	case *dap.SetBreakpointsRequest:
		s.setBreakpoints(m)
	case *dap.SetExceptionBreakpointsRequest:
		s.send(&dap.SetExceptionBreakpointsResponse{Response: response(req)})
	case *dap.ConfigurationDoneRequest:
		s.send(&dap.ConfigurationDoneResponse{Response: response(req)})
		s.mu.Lock()
		if !s.ready {
			s.ready = true
			close(s.configured)
		}
		s.mu.Unlock()
	case *dap.ThreadsRequest:
		s.send(&dap.ThreadsResponse{Response: response(req), Body: dap.ThreadsResponseBody{Threads: []dap.Thread{{Id: threadID, Name: s.name}}}})
	case *dap.PauseRequest:
		s.mu.Lock()
		s.stepper.pausing = s.stop == nil
		s.mu.Unlock()
		s.send(&dap.PauseResponse{Response: response(req)})
	case *dap.ContinueRequest:
		err = s.goOn(running, func() {
			s.send(&dap.ContinueResponse{Response: response(req), Body: dap.ContinueResponseBody{AllThreadsContinued: true}})
		})
	case *dap.NextRequest:
		err = s.goOn(stepOver, func() { s.send(&dap.NextResponse{Response: response(req)}) })
	case *dap.StepInRequest:
		err = s.goOn(stepIn, func() { s.send(&dap.StepInResponse{Response: response(req)}) })
	case *dap.StepOutRequest:
		err = s.goOn(stepOut, func() { s.send(&dap.StepOutResponse{Response: response(req)}) })
	case *dap.StackTraceRequest:
		err = s.stopped(func(st *stop) error { return s.stack(st, m) })
	case *dap.ScopesRequest:
		err = s.stopped(func(st *stop) error { return s.scopes(st, m) })
	case *dap.VariablesRequest:
		err = s.stopped(func(st *stop) error { return s.variables(st, m) })
	case *dap.EvaluateRequest:
		err = s.stopped(func(st *stop) error { return s.evaluate(st, m) })
	case *dap.SourceRequest:
		err = s.source(m)
	case *dap.LoadedSourcesRequest:
		s.mu.Lock()
		r := &dap.LoadedSourcesResponse{Response: response(req), Body: dap.LoadedSourcesResponseBody{Sources: []dap.Source{}}}
		for _, f := range s.files {
			r.Body.Sources = append(r.Body.Sources, *s.sourceOf(f.Name))
		}
		s.mu.Unlock()
		s.send(r)
	case *dap.DisconnectRequest:
		s.send(&dap.DisconnectResponse{Response: response(req)})
		s.ended.Do(func() {}) // there is nobody to tell
		return true
	case *dap.TerminateRequest:
		s.send(&dap.TerminateResponse{Response: response(req)})
		s.End("the session ends")
	default:
		err = fmt.Errorf("weir does not support this request")
	}
	if err != nil {
		s.refuse(req, err)
	}
	return false
}

// initialized returns the response to the first request.
func initialized(m *dap.InitializeRequest) *dap.InitializeResponse {
	return &dap.InitializeResponse{Response: response(&m.Request), Body: dap.Capabilities{
		SupportsConfigurationDoneRequest: true, SupportsConditionalBreakpoints: true, SupportsHitConditionalBreakpoints: true,
		SupportsLogPoints: true, SupportsEvaluateForHovers: true, SupportsTerminateRequest: true, SupportsLoadedSourcesRequest: true,
	}}
}

func (s *Session) setBreakpoints(m *dap.SetBreakpointsRequest) {
	src := m.Arguments.Source
	s.mu.Lock()
	name := src.Path
	if n := src.SourceReference; n > 0 && n <= len(s.shipped) {
		name = shippedPath(s.shipped[n-1])
	}
	r := &dap.SetBreakpointsResponse{Response: response(&m.Request), Body: dap.SetBreakpointsResponseBody{Breakpoints: []dap.Breakpoint{}}}
	for _, p := range s.points.set(s.files, name, m.Arguments.Breakpoints) {
		r.Body.Breakpoints = append(r.Body.Breakpoints, p.shown())
	}
	s.mu.Unlock()
	s.send(r)
}

// sourceOf returns where the client finds a file. s.mu is held.
func (s *Session) sourceOf(file string) *dap.Source {
	i := slices.IndexFunc(s.files, func(f scripting.DebugFile) bool { return f.Name == file })
	if i < 0 {
		return &dap.Source{Name: file}
	}
	if p := s.files[i].Path; p != "" {
		if known := s.points.paths[file]; known != "" {
			p = known
		}
		return &dap.Source{Name: file, Path: p}
	}
	n := slices.Index(s.shipped, file)
	if n < 0 {
		n = len(s.shipped)
		s.shipped = append(s.shipped, file)
	}
	return &dap.Source{Name: file, Path: shippedPath(file), SourceReference: n + 1, Origin: "ships with weir"}
}

// source sends the text of a file that the client does not have.
func (s *Session) source(m *dap.SourceRequest) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := m.Arguments.SourceReference
	for _, f := range s.files {
		if n > 0 && n <= len(s.shipped) && f.Name == s.shipped[n-1] {
			s.send(&dap.SourceResponse{Response: response(&m.Request), Body: dap.SourceResponseBody{Content: f.Text}})
			return nil
		}
	}
	return fmt.Errorf("there is no source %d", n)
}

func (s *Session) stack(st *stop, m *dap.StackTraceRequest) error {
	all := st.paused.Stack()
	r := &dap.StackTraceResponse{Response: response(&m.Request), Body: dap.StackTraceResponseBody{StackFrames: []dap.StackFrame{}, TotalFrames: len(all)}}
	first := min(max(m.Arguments.StartFrame, 0), len(all))
	last := len(all)
	if n := m.Arguments.Levels; n > 0 {
		last = min(last, first+n)
	}
	s.mu.Lock()
	for i := first; i < last; i++ {
		f := all[i]
		r.Body.StackFrames = append(r.Body.StackFrames, dap.StackFrame{Id: i + 1, Name: f.Func, Source: s.sourceOf(f.File), Line: f.Line, Column: 1})
	}
	s.mu.Unlock()
	s.send(r)
	return nil
}

// checkFrame returns the number of a frame by its id.
func (st *stop) checkFrame(id int) (int, error) {
	if n := st.paused.Depth(); id < 1 || id > n {
		return 0, fmt.Errorf("there is no frame %d", id)
	}
	return id - 1, nil
}

func (s *Session) scopes(st *stop, m *dap.ScopesRequest) error {
	i, err := st.checkFrame(m.Arguments.FrameId)
	if err != nil {
		return err
	}
	r := &dap.ScopesResponse{Response: response(&m.Request), Body: dap.ScopesResponseBody{Scopes: []dap.Scope{}}}
	for n, sc := range st.paused.Scopes(i) {
		scope := dap.Scope{Name: sc.Name, VariablesReference: st.ref(sc.Variables)}
		if n == 0 {
			scope.PresentationHint = "locals"
		}
		r.Body.Scopes = append(r.Body.Scopes, scope)
	}
	s.send(r)
	return nil
}

// maxRefs is the maximum number of lists of variables that a client may open while
// the script is stopped.
const maxRefs = 100_000

// ref returns the reference of a list of variables, 0 for none.
func (st *stop) ref(list func() []scripting.Variable) int {
	if list == nil || len(st.refs) >= maxRefs {
		return 0
	}
	st.refs = append(st.refs, list)
	return len(st.refs)
}

func (s *Session) variables(st *stop, m *dap.VariablesRequest) error {
	n := m.Arguments.VariablesReference
	if n < 1 || n > len(st.refs) {
		return fmt.Errorf("there are no variables %d", n)
	}
	r := &dap.VariablesResponse{Response: response(&m.Request), Body: dap.VariablesResponseBody{Variables: []dap.Variable{}}}
	for _, v := range st.refs[n-1]() {
		r.Body.Variables = append(r.Body.Variables, dap.Variable{Name: v.Name, Value: v.Value, Type: v.Type, VariablesReference: st.ref(v.Fields)})
	}
	s.send(r)
	return nil
}

func (s *Session) evaluate(st *stop, m *dap.EvaluateRequest) error {
	i := 0
	if id := m.Arguments.FrameId; id != 0 {
		var err error
		if i, err = st.checkFrame(id); err != nil {
			return err
		}
	}
	v, err := st.paused.Evaluate(i, m.Arguments.Expression)
	if err != nil {
		return err
	}
	s.send(&dap.EvaluateResponse{Response: response(&m.Request), Body: dap.EvaluateResponseBody{Result: v.Value, Type: v.Type, VariablesReference: st.ref(v.Fields)}})
	return nil
}

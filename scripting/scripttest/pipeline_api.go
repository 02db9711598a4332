package scripttest

import (
	"cmp"
	"fmt"
	"math"

	"github.com/weir-run/weir/scripting"
)

// pipelineFunc is weir.test.pipeline.
func (s *session) pipelineFunc() scripting.Function {
	return scripting.Function{
		Name: "pipeline",
		Doc: "Runs a whole config in the real engine. config is the path of the file or folder, relative to the folder of the test. " +
			"Native sources, native sinks, and native components with exports from outside, such as discovery.http, are replaced: " +
			"the test sends batches from the sources and sees what the sinks receive. Everything else is real: native transforms, modules, and scripts, whose requests and files are mocks. " +
			"A script that needs a grant must get it in the config. A pipeline that is opened in a test ends with it, one opened outside lives for the whole file.",
		Params: []scripting.Param{
			{Name: "config", Kind: scripting.KindString},
			{Name: "options", Kind: scripting.KindMap, Optional: true, Fields: []scripting.Param{
				{Name: "time", Kind: scripting.KindString, Optional: true, Doc: `Start of the clock, such as "2025-06-01T12:00:00Z"; the default is 2025-01-01T00:00:00Z.`},
				{Name: "exports", Kind: scripting.KindMap, Of: &scripting.Param{Kind: scripting.KindMap, Of: &scripting.Param{Kind: scripting.KindAny}}, Optional: true, Doc: "Exports of replaced components, by node, such as the targets of discovery.http.default. Without them, they are empty."},
			}},
		},
		Result: scripting.Result{Kind: scripting.KindObject, Type: s.pipelineType()},
		Fn: func(a []scripting.Value) (scripting.Value, error) {
			options, _ := a[1].(*scripting.Map)
			p, err := s.openPipeline(a[0].(string), options)
			if err := cmp.Or(s.mocks.takeDenied(), err); err != nil {
				return nil, err
			}
			return &scripting.Object{Type: s.pipelineType(), Data: p}, nil
		},
	}
}

// pipelineType is what weir.test.pipeline returns.
func (s *session) pipelineType() *scripting.ObjectType {
	if s.pipelineKind != nil {
		return s.pipelineKind
	}
	sinkType := s.sinkType()
	nodeParam := scripting.Param{Name: "node", Kind: scripting.KindString, Doc: "ID of the node, such as prometheus.scrape.default."}
	t := &scripting.ObjectType{
		Name: "pipeline", Doc: "A config under test. Its clock stands still and begins at 2025-01-01T00:00:00Z, unless the options have another time.", New: "pipeline",
		String: func(data any) string { return data.(*pipeline).name },
	}
	// call makes a method of a pipeline that has not ended. Errors in scripts fail the test.
	call := func(f scripting.Function, fn func(p *pipeline, a []scripting.Value) (scripting.Value, error)) {
		f.Fn = func(a []scripting.Value) (scripting.Value, error) {
			p := a[0].(*pipeline)
			if err := p.usable(); err != nil {
				return nil, err
			}
			v, err := fn(p, a)
			if err := p.result(err); err != nil {
				return nil, err
			}
			return v, nil
		}
		t.Methods = append(t.Methods, f)
	}
	call(scripting.Function{Name: "send", Doc: "Sends one batch from a replaced source: samples in the text format of a scrape, or log lines such as {app=\"api\"} the line. " +
		"If a sink or a script refuses the batch, the source sends it again when the clock has been set forward, and later batches wait. An error in a script fails the test.",
		Params: []scripting.Param{nodeParam, {Name: "text", Kind: scripting.KindString}}},
		func(p *pipeline, a []scripting.Value) (scripting.Value, error) {
			return nil, p.send(a[1].(string), a[2].(string))
		})
	call(scripting.Function{Name: "sink", Doc: "Returns a sink, native or scripted, to see what it receives and to let it fail.",
		Params: []scripting.Param{nodeParam}, Result: scripting.Result{Kind: scripting.KindObject, Type: sinkType}},
		func(p *pipeline, a []scripting.Value) (scripting.Value, error) {
			sink, err := p.sink(a[1].(string))
			if err != nil {
				return nil, err
			}
			return &scripting.Object{Type: sinkType, Data: &sinkHandle{p, sink}}, nil
		})
	call(scripting.Function{Name: "advance", Doc: `Sets the clock forward, "30s" or a number of seconds. Timers of scripts, polls and retries happen at their time. An error in a script fails the test.`,
		Params: []scripting.Param{{Name: "by", Kind: scripting.KindAny}}},
		func(p *pipeline, a []scripting.Value) (scripting.Value, error) {
			d, err := duration(a[1])
			if err != nil {
				return nil, err
			}
			return nil, p.advance(d)
		})
	call(scripting.Function{Name: "waiting", Doc: "The number of records that a replaced source must send again, counted once for each branch that refused them.",
		Params: []scripting.Param{nodeParam}, Result: scripting.Result{Kind: scripting.KindInt}},
		func(p *pipeline, a []scripting.Value) (scripting.Value, error) {
			src, err := p.source(a[1].(string))
			if err != nil {
				return nil, err
			}
			return int64(src.held()), nil
		})
	call(scripting.Function{Name: "now", Doc: "The time of the clock in Unix ms. Samples without a timestamp get this time.", Result: scripting.Result{Kind: scripting.KindInt}},
		func(p *pipeline, a []scripting.Value) (scripting.Value, error) { return p.clock.Now().UnixMilli(), nil })
	call(scripting.Function{Name: "logged", Doc: "The lines that components have logged since the last call of logged, each with the ID of its node.", Result: scripting.Result{Kind: scripting.KindList}},
		func(p *pipeline, a []scripting.Value) (scripting.Value, error) {
			return stringList(p.log.takeOutput().lines), nil
		})
	call(scripting.Function{Name: "stop", Doc: "Stops the pipeline, which runs teardown of its scripts. Open pipelines are stopped automatically."},
		func(p *pipeline, a []scripting.Value) (scripting.Value, error) { return nil, p.close() })
	s.pipelineKind = t
	return t
}

// sinkHandle is a sink as the test sees it.
type sinkHandle struct {
	p    *pipeline
	sink *pipeSink
}

// sinkType is what p:sink returns.
func (s *session) sinkType() *scripting.ObjectType {
	if s.sinkKind != nil {
		return s.sinkKind
	}
	t := &scripting.ObjectType{
		Name: "sink", Doc: "A sink of a pipeline under test. Records that it accepts wait in a queue, as in the journal of a real sink, until they are delivered.",
		New: "pipeline", String: func(data any) string { return data.(*sinkHandle).sink.id },
	}
	call := func(f scripting.Function, fn func(h *sinkHandle, a []scripting.Value) (scripting.Value, error)) {
		f.Fn = func(a []scripting.Value) (scripting.Value, error) {
			h := a[0].(*sinkHandle)
			if err := h.p.usable(); err != nil {
				return nil, err
			}
			return fn(h, a)
		}
		t.Methods = append(t.Methods, f)
	}
	call(scripting.Function{Name: "received", Doc: "The records that the sink has delivered since the last call. outcome() of the batch also has the records that wait or were lost.",
		Result: scripting.Result{Kind: scripting.KindObject, Type: batchType}},
		func(h *sinkHandle, _ []scripting.Value) (scripting.Value, error) {
			return &scripting.Object{Type: batchType, Data: h.sink.received()}, nil
		})
	reason := scripting.Param{Name: "reason", Kind: scripting.KindString, Doc: `Message of the error, such as "503 Service Unavailable".`}
	times := scripting.Param{Name: "times", Kind: scripting.KindInt, Optional: true, Doc: "How often; without it, until recover is called."}
	failing := func(name, doc string, set func(h *sinkHandle, reason string, times int) error) {
		call(scripting.Function{Name: name, Doc: doc, Params: []scripting.Param{reason, times}}, func(h *sinkHandle, a []scripting.Value) (scripting.Value, error) {
			n := int64(-1)
			if a[2] != nil {
				if n = a[2].(int64); n < 1 || n > math.MaxInt32 {
					return nil, fmt.Errorf("cannot use %d as times: it must be 1 or more", n)
				}
			}
			if a[1].(string) == "" {
				return nil, fmt.Errorf("cannot let %s fail: the reason is empty", h.sink.id)
			}
			return nil, set(h, a[1].(string), int(n))
		})
	}
	failing("fail", "Lets attempts to deliver a batch fail, as for an endpoint that is down. The sink accepts records, which wait and are sent again after 1s, 2s, 4s and so on up to 30s.",
		func(h *sinkHandle, reason string, times int) error { return h.sink.set(reason, times, false) })
	failing("reject", "Lets the endpoint reject batches for good, as with status 400. Their records are lost.",
		func(h *sinkHandle, reason string, times int) error { return h.sink.set(reason, times, true) })
	failing("block", "Lets the sink refuse batches, as with a full journal. The source sends them again after 1s, 2s, 4s and so on up to 30s. times counts batches.",
		func(h *sinkHandle, reason string, times int) error {
			h.sink.block(reason, times)
			return nil
		})
	call(scripting.Function{Name: "recover", Doc: "Ends fail, reject and block. Records that wait are sent when the clock has been set forward."},
		func(h *sinkHandle, _ []scripting.Value) (scripting.Value, error) {
			h.sink.recover()
			return nil, nil
		})
	s.sinkKind = t
	return t
}

// block makes the sink refuse batches.
func (s *pipeSink) block(reason string, times int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.full, s.count = reason, times
}

// recover ends all faults.
func (s *pipeSink) recover() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.full, s.end.fault = "", fault{}
}

// set sets the fault of a native sink.
func (s *pipeSink) set(reason string, times int, final bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.end.script != nil {
		return fmt.Errorf("cannot let %s fail: it is a script that makes its own requests; let them fail with weir.test.http, or use block", s.id)
	}
	s.end.fault = fault{reason: reason, times: times, final: final}
	return nil
}

// source returns a replaced source.
func (p *pipeline) source(id string) (*pipeSource, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if s := p.sources[id]; s != nil {
		return s, nil
	}
	if _, ok := p.engine.GetComponent(id); !ok {
		return nil, p.unknown(id)
	}
	return nil, fmt.Errorf("cannot send a batch from %s: it is no native source; the sources of %s: %s", id, p.name, edges(p.sources))
}

// sink returns a sink.
func (p *pipeline) sink(id string) (*pipeSink, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if s := p.sinks[id]; s != nil {
		return s, nil
	}
	if _, ok := p.engine.GetComponent(id); !ok {
		return nil, p.unknown(id)
	}
	return nil, fmt.Errorf("cannot use %s as a sink: it sends records on; the sinks of %s: %s", id, p.name, edges(p.sinks))
}

// send sends a batch from a source.
func (p *pipeline) send(id, text string) error {
	src, err := p.source(id)
	if err != nil {
		return err
	}
	in, err := src.node.read(text)
	if err != nil {
		return err
	}
	if err := src.send(p.s.ctx, in); err != nil {
		return err
	}
	return p.settle()
}

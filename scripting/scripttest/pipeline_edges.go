package scripttest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"strings"
	"sync"
	"time"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/config"
	"github.com/weir-run/weir/engine/flow"
	"github.com/weir-run/weir/engine/service"
	"github.com/weir-run/weir/scripting/node"
)

// pipeNatives is the catalog of native components, whose edges the test replaces. The
// registration tells what is an edge, not the name.
type pipeNatives struct {
	component.Catalog
	p *pipeline
}

// Lookup returns a registration, which builds what the pipeline needs.
func (c *pipeNatives) Lookup(name string) (component.Registration, bool) {
	r, ok := c.Catalog.Lookup(name)
	if !ok || r.Err != nil {
		return r, ok
	}
	build := r.Build
	switch {
	case r.Accepts == 0 && r.Sends != 0:
		r.Build = c.p.buildSource(r)
	case r.Accepts != 0 && r.Sends == 0:
		r.Build = c.p.buildSink(r)
	case r.External:
		r.Build = c.p.buildExternal(r)
	default:
		r.Build = func(o component.Options, args any, previous component.Component) (component.Component, error) {
			return build(c.p.adapt(o), args, previous)
		}
		return r, true
	}
	r.NeedsServices, r.ExportsLater = nil, false
	return r, true
}

// adapt changes the options of a component, so that the pipeline sees what it does.
func (p *pipeline) adapt(o component.Options) component.Options {
	o.Logger = slog.New(nodeLog{p.log, o.ID})
	export := o.Export
	o.Export = func(v any) {
		export(v)
		p.exported.Store(true)
	}
	return o
}

// double takes the place of a native component.
type double struct{}

// Run does nothing until the end.
func (double) Run(ctx context.Context) error {
	<-ctx.Done()
	return nil
}

// Update accepts all arguments.
func (double) Update(any) error { return nil }

// buildExternal builds a component with the exports that the test has given.
func (p *pipeline) buildExternal(r component.Registration) buildFunc {
	return func(o component.Options, _ any, _ component.Component) (component.Component, error) {
		p.mu.Lock()
		p.replaced[o.ID] = true
		p.mu.Unlock()
		given, ok := p.given[o.ID]
		if !ok {
			return double{}, nil
		}
		exports, err := decodeExports(r, given)
		if err != nil {
			return nil, fmt.Errorf("cannot use the exports of the test: %w", err)
		}
		p.adapt(o).Export(exports)
		return double{}, nil
	}
}

type buildFunc = func(o component.Options, args any, previous component.Component) (component.Component, error)

// decodeExports reads the exports of a component as its arguments would be read.
func decodeExports(r component.Registration, body string) (any, error) {
	v := reflect.New(reflect.TypeOf(r.Exports))
	cfg, ds := config.Parse(map[string]string{"exports": r.Name + " \"test\" {\n" + body + "\n}\n"})
	if err := ds.Err(); err != nil {
		return nil, unplaced(err)
	}
	if err := cfg.Blocks[0].Decode(cfg.NewScope("test"), v.Interface()).Err(); err != nil {
		return nil, unplaced(err)
	}
	return v.Elem().Interface(), nil
}

// newPipeNode returns the part of an edge that reads and writes batches.
func (p *pipeline) newPipeNode(id string, stats *flow.Stats, signals batch.Signals) *testNode {
	return &testNode{
		name: id, clock: p.clock, stats: stats, source: batch.NewSource(), accepts: signals, sends: signals,
		series: map[string]*batch.Series{}, log: p.log, called: true,
	}
}

// pipeSource takes the place of a native source. The test gives it its batches. As a real
// source does, it sends a batch again, with back-off, to the branches that refused it, and
// later batches wait for that.
type pipeSource struct {
	double
	p    *pipeline
	id   string
	node *testNode

	mu      sync.Mutex
	to      *flow.Output
	waiting []*heldBatch
}

// heldBatch is a batch that a source has not sent, or that some branches refused.
type heldBatch struct {
	in      input
	refused *flow.Partial // nil: it was not sent
	due     time.Time
	backoff time.Duration
}

func (p *pipeline) buildSource(r component.Registration) buildFunc {
	return func(o component.Options, args any, _ component.Component) (component.Component, error) {
		s := &pipeSource{p: p, id: o.ID, node: p.newPipeNode(o.ID, o.Stats, r.Sends)}
		p.mu.Lock()
		defer p.mu.Unlock()
		p.sources[o.ID] = s
		return s, s.Update(args)
	}
}

// Update takes the receivers of the arguments.
func (s *pipeSource) Update(args any) error {
	var to []*flow.Receiver
	for _, ref := range config.Receivers(args) {
		to = append(to, ref.Receiver)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.to = flow.NewOutput(s.node.stats, to)
	return nil
}

// send sends a batch, after those that wait.
func (s *pipeSource) send(ctx context.Context, in input) error {
	s.waiting = append(s.waiting, &heldBatch{in: in})
	if len(s.waiting) > 1 {
		return nil
	}
	return s.deliverDue(ctx)
}

func (s *pipeSource) nextSend() time.Time {
	if len(s.waiting) == 0 {
		return time.Time{}
	}
	return s.waiting[0].due
}

func (s *pipeSource) deliverDue(ctx context.Context) error {
	for len(s.waiting) > 0 && !s.waiting[0].due.After(s.node.clock.Now()) {
		h := s.waiting[0]
		err := s.attempt(s.p.observed(ctx), h)
		refused, ok := errors.AsType[*flow.Partial](err)
		if err != nil && !ok {
			return fmt.Errorf("%s cannot send the batch: %w", s.id, err)
		}
		if ok {
			h.refused = refused
			h.backoff = min(max(2*h.backoff, minBackoff), maxBackoff)
			h.due = s.node.clock.Now().Add(h.backoff)
			return nil
		}
		s.waiting = s.waiting[1:]
	}
	return nil
}

func (s *pipeSource) attempt(ctx context.Context, h *heldBatch) error {
	ctx, cancel := context.WithTimeoutCause(ctx, patience, fmt.Errorf("the batch was not accepted within %s", patience))
	defer cancel()
	if h.refused != nil {
		return h.refused.Retry(ctx)
	}
	s.mu.Lock()
	to := s.to
	s.mu.Unlock()
	if h.in.logs != nil {
		return to.SendLogs(ctx, h.in.logs)
	}
	return to.SendMetrics(ctx, h.in.metrics)
}

// held returns how many records wait.
func (s *pipeSource) held() (n int) {
	for _, h := range s.waiting {
		if h.refused != nil {
			n += h.refused.Len()
		} else {
			n += h.in.len()
		}
	}
	return n
}

// pipeSink is the queue in front of a sink, in the place of its journal. A native sink
// ends there. The hook send of a scripted one is called with what leaves the queue.
type pipeSink struct {
	double
	id   string
	node *testNode
	// texts parses the texts that the test compares with the output.
	texts *testNode
	end   *sinkEnd

	mu    sync.Mutex
	full  string // why it accepts nothing; "" if it does
	count int    // number of batches that it refuses for that; negative: all
}

// sinkEnd is what a queue delivers to.
type sinkEnd struct {
	node   *testNode
	script *node.Component // nil: of a native sink
	fault  fault
}

// fault is what happens to the attempts to deliver a batch.
type fault struct {
	reason string
	final  bool // the endpoint rejects the batch, which is not sent again
	times  int  // how often; negative: always
}

func (p *pipeline) newSink(id string, stats *flow.Stats, signals batch.Signals) *pipeSink {
	p.mu.Lock()
	defer p.mu.Unlock()
	if s := p.sinks[id]; s != nil {
		return s
	}
	n := p.newPipeNode(id, stats, signals)
	n.sends = 0 // for deliver
	s := &pipeSink{id: id, node: n, texts: p.newPipeNode(id, stats, signals), end: &sinkEnd{node: n}}
	n.in = flow.NewReceiver(id, signals, nil, nil)
	n.in.Set(s.end)
	p.sinks[id] = s
	return s
}

func (p *pipeline) buildSink(r component.Registration) buildFunc {
	return func(o component.Options, _ any, _ component.Component) (component.Component, error) {
		return p.newSink(o.ID, o.Stats, r.Accepts), nil
	}
}

// ConsumeMetrics accepts a batch.
func (s *pipeSink) ConsumeMetrics(ctx context.Context, b *batch.Metrics) error {
	return s.accept(ctx, input{metrics: b})
}

// ConsumeLogs accepts a batch.
func (s *pipeSink) ConsumeLogs(ctx context.Context, b *batch.Logs) error {
	return s.accept(ctx, input{logs: b})
}

func (s *pipeSink) accept(ctx context.Context, in input) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.full != "" && s.count != 0 {
		s.count--
		return errors.New(s.full)
	}
	return s.node.sendInput(ctx, in)
}

func (s *pipeSink) nextSend() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.node.nextSend()
}

func (s *pipeSink) deliverDue(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.node.deliver(ctx, false)
}

// received returns what has come out since the last call.
func (s *pipeSink) received() *output {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := s.node.output(&batch.Metrics{}, nil)
	s.node.begin()
	out.node, out.typ = s.texts, batchType
	return out
}

// ConsumeMetrics delivers a batch.
func (e *sinkEnd) ConsumeMetrics(ctx context.Context, b *batch.Metrics) error {
	err := e.deliver(ctx, b.Len(), func(ctx context.Context) error { return e.script.ConsumeMetrics(ctx, b) })
	if rows := delivered(b.Len(), err); len(rows) > 0 {
		return errors.Join(e.node.ConsumeMetrics(ctx, b.Rows(rows)), err)
	}
	return err
}

// ConsumeLogs delivers a batch.
func (e *sinkEnd) ConsumeLogs(ctx context.Context, b *batch.Logs) error {
	err := e.deliver(ctx, b.Len(), func(ctx context.Context) error { return e.script.ConsumeLogs(ctx, b) })
	if rows := delivered(b.Len(), err); len(rows) > 0 {
		return errors.Join(e.node.ConsumeLogs(ctx, b.Rows(rows)), err)
	}
	return err
}

// deliver calls the script, or returns the error of the fault of a native sink.
func (e *sinkEnd) deliver(ctx context.Context, records int, call func(context.Context) error) error {
	if e.script != nil {
		return call(ctx)
	}
	f := &e.fault
	if f.reason == "" || f.times == 0 {
		return nil
	}
	f.times--
	u := &node.Undelivered{Records: records, Err: errors.New(f.reason)}
	if f.final {
		u.Lost = map[string]int{"rejected": records}
		return u
	}
	for i := range records {
		u.Left = append(u.Left, i)
	}
	return u
}

// delivered returns the rows that are not to be sent again after an attempt with err.
func delivered(records int, err error) (rows []int) {
	u, ok := errors.AsType[*node.Undelivered](err)
	if err != nil && !ok || ok && u.Lost["rejected"] == records {
		return nil
	}
	left := map[int]bool{}
	if ok {
		for _, i := range u.Left {
			left[i] = true
		}
	}
	for i := range records {
		if !left[i] {
			rows = append(rows, i)
		}
	}
	return rows
}

// pipeScripts is a catalog of scripts, which run as they are. The mocks of the test are
// what is outside.
type pipeScripts struct {
	component.Catalog
	p *pipeline
}

func (p *pipeline) scripts(c component.Catalog) component.Catalog {
	return &pipeScripts{p.s.mocks.catalog(c, false), p}
}

// Lookup returns a registration, which builds what the pipeline needs.
func (c *pipeScripts) Lookup(name string) (component.Registration, bool) {
	r, ok := c.Catalog.Lookup(name)
	if !ok || r.Err != nil {
		return r, ok
	}
	build := r.Build
	// A test does not run tests.
	r.Trial, r.Compare, r.Instead, r.Activated, r.NeedsServices = nil, nil, nil, nil, nil
	r.Build = func(o component.Options, args any, previous component.Component) (component.Component, error) {
		o = c.p.adapt(o)
		o.DataPath, o.StoragePath = "", "" // nothing outlives the test
		switch before := previous.(type) {
		case *pipeScript:
			previous = before.Component
		case *pipeScriptSink:
			previous = before.Component
		}
		made, err := build(o, args, previous)
		if err != nil {
			return nil, err
		}
		s := &pipeScript{made.(*node.Component), c.p}
		if r.Accepts == 0 || r.Sends != 0 {
			return s, nil
		}
		sink := c.p.newSink(o.ID, o.Stats, r.Accepts)
		sink.mu.Lock()
		defer sink.mu.Unlock()
		sink.end.script = s.Component
		return &pipeScriptSink{s, sink}, nil
	}
	return r, true
}

// pipeScript is a scripted component whose errors the test sees.
type pipeScript struct {
	*node.Component
	p *pipeline
}

// Run runs the component.
func (s *pipeScript) Run(ctx context.Context) error { return s.Component.Run(s.p.observed(ctx)) }

// pipeScriptSink is a scripted sink behind its queue.
type pipeScriptSink struct {
	*pipeScript
	sink *pipeSink
}

// ConsumeMetrics accepts a batch.
func (s *pipeScriptSink) ConsumeMetrics(ctx context.Context, b *batch.Metrics) error {
	return s.sink.ConsumeMetrics(ctx, b)
}

// ConsumeLogs accepts a batch.
func (s *pipeScriptSink) ConsumeLogs(ctx context.Context, b *batch.Logs) error {
	return s.sink.ConsumeLogs(ctx, b)
}

// services returns services that accept their blocks and do nothing.
func (p *pipeline) services() (out []service.Service) {
	for _, d := range p.s.pipelines.Services {
		out = append(out, pipeService{d})
	}
	return out
}

type pipeService struct{ d service.Definition }

// Definition returns that of the real service.
func (s pipeService) Definition() service.Definition { return s.d }

// Run does nothing.
func (pipeService) Run(ctx context.Context, _ service.Host) error {
	<-ctx.Done()
	return nil
}

// Update does nothing.
func (pipeService) Update(any) error { return nil }

// Data returns nothing: what needs it is replaced.
func (pipeService) Data() any { return nil }

// edges returns the IDs of the edges of a kind, for errors.
func edges[V any](m map[string]V) string {
	if len(m) == 0 {
		return "none"
	}
	return strings.Join(sortedNames(m), ", ")
}

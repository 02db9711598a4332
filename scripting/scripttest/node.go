package scripttest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/clock/clocktest"
	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/config"
	"github.com/weir-run/weir/engine/flow"
	"github.com/weir-run/weir/scripting"
	"github.com/weir-run/weir/scripting/node"
)

// began is what the clock of every component shows first.
var began = time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC)

// node is a component under test: what the engine would run for one block,
// with the test as its source and its sink.
type testNode struct {
	name           string
	body           string // of its block, without forward_to
	clock          testClock
	comp           component.Component
	make           func(previous component.Component) (component.Component, error)
	stats          *flow.Stats
	in             *flow.Receiver
	source         uint64
	accepts, sends batch.Signals
	registry       *prometheus.Registry
	series         map[string]*batch.Series // the source's handles, by labels and metadata
	log            *logLines
	end            func(cause error) // ends Run and waits for it
	known          int               // index in the session's known
	over           bool              // it was stopped

	mu         sync.Mutex
	came       []*batch.Metrics // in the call at hand
	cameLogs   []*batch.Logs
	routed     map[string][]*batch.Metrics
	routedLogs map[string][]*batch.Logs
	called     bool
	waiting    []*waiting // of a sink, in order
	delivery   delivery
	exports    any // as the component gave them last
	errors     []*scripting.Error
}

// newNode builds the component of a name with the attributes and blocks of its
// block in the config language. at is where body stands, for mistakes in it.
func newNode(ctx context.Context, c component.Catalog, name, body string, at config.Span) (*testNode, error) {
	return newNodeAt(ctx, began, c, name, body, at)
}

// newNodeAt is newNode with the time at which the clock begins.
func newNodeAt(ctx context.Context, began time.Time, c component.Catalog, name, body string, at config.Span) (*testNode, error) {
	reg, ok := c.Lookup(name)
	if !ok {
		if hint := config.DidYouMean(name, c.Names()); hint != "" {
			return nil, fmt.Errorf("there is no component %s; %s", name, hint)
		}
		return nil, fmt.Errorf("there is no component %s", name)
	}
	if reg.Err != nil {
		return nil, reg.Err
	}
	n := &testNode{
		name: name, body: body, clock: testClock{clocktest.New(began)}, stats: new(flow.Stats), source: batch.NewSource(),
		accepts: reg.Accepts, sends: reg.Sends,
		registry: prometheus.NewRegistry(), series: map[string]*batch.Series{}, log: &logLines{},
	}
	sink := flow.NewReceiver("test", batch.SignalMetrics|batch.SignalLogs, nil, nil)
	sink.Set(n)
	args, err := decode(reg, body, at, sink, n.outputSinks(reg))
	if err != nil {
		return nil, err
	}
	id := name + ".test"
	n.make = func(previous component.Component) (component.Component, error) {
		return reg.Build(component.Options{
			ID: id, Logger: slog.New(n.log), Registerer: n.registry, UserAgent: "weir/test",
			Clock: n.clock, Stats: n.stats, Export: n.export, Health: func(component.Health) {},
			Service: func(s string) (any, error) { return nil, fmt.Errorf("there is no service %q in a test", s) },
		}, args, previous)
	}
	comp, err := n.make(nil)
	if err != nil {
		return nil, err
	}
	n.in = flow.NewReceiver(id, reg.Accepts, n.stats, nil)
	n.in.Set(comp)
	n.run(comp)
	if _, err := n.awaitIdle(ctx); err != nil {
		n.stop()
		return nil, err
	}
	return n, nil
}

// testClock stands still until the test moves it, or a script sleeps, which
// takes no time.
type testClock struct{ *clocktest.Fake }

// Sleep moves the clock.
func (c testClock) Sleep(ctx context.Context, d time.Duration) error {
	c.Advance(d)
	return context.Cause(ctx)
}

// run calls Run until stop.
func (n *testNode) run(c component.Component) {
	ctx, cancel := context.WithCancelCause(node.Observe(context.Background(), n.failed))
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = c.Run(ctx) // a transform's ends with its context
	}()
	n.comp = c
	n.end = func(cause error) {
		cancel(cause)
		<-done
	}
}

// stop ends Run and waits for it; the hook teardown has run then.
func (n *testNode) stop() {
	if n.over {
		return
	}
	n.over = true
	n.end(nil)
	n.releaseSeries()
}

func (n *testNode) releaseSeries() {
	for _, s := range n.series {
		s.Release()
	}
}

// reload puts a new instance in the component's place, as a save does. After a save of
// the same script, series that are not sent again do not end.
func (n *testNode) reload(ctx context.Context, same bool) error {
	c, err := n.make(n.comp)
	if err != nil {
		return err
	}
	if next, ok := c.(*node.Component); ok && same {
		next.KeepRules(n.comp.(*node.Component))
	}
	end := n.end
	n.run(c)
	n.in.Set(c)
	end(component.ErrReplaced)
	_, err = n.awaitIdle(ctx)
	return err
}

// awaitIdle waits until all that is due has been done, and returns when the next
// timer rings; zero for never.
func (n *testNode) awaitIdle(ctx context.Context) (next time.Time, err error) {
	c, ok := n.comp.(*node.Component)
	if !ok {
		return next, nil // nothing in it goes on by itself
	}
	if next, err = c.Settled(ctx); err != nil && ctx.Err() == nil {
		err = fmt.Errorf("cannot set up %s: %w", n.name, err)
	}
	return next, err
}

// maxRings is how often timers may ring in one call of advance.
const maxRings = 100_000

// advance sets the clock forward, with a stop at each timer, and returns what
// they send.
func (n *testNode) advance(ctx context.Context, d time.Duration) (*output, error) {
	before := n.begin()
	end := n.clock.Now().Add(d)
	for rings := 0; ; rings++ {
		next, err := n.awaitIdle(ctx)
		if err != nil {
			return nil, err
		}
		now := n.clock.Now()
		if due := n.nextSend(); !due.IsZero() && (next.IsZero() || due.Before(next)) {
			next = due
		}
		if next.IsZero() || next.After(end) {
			next = end
		}
		n.clock.Advance(next.Sub(now))
		if err := n.deliver(ctx, false); err != nil {
			return nil, err
		}
		if !next.Before(end) {
			break
		}
		if rings == maxRings {
			return nil, fmt.Errorf("cannot set the clock forward by %s: timers rang %d times", d, rings)
		}
	}
	if _, err := n.awaitIdle(ctx); err != nil {
		return nil, err
	}
	return n.output(&batch.Metrics{}, before), nil
}

// decode reads a block's body as the engine would.
func decode(reg component.Registration, body string, at config.Span, sink *flow.Receiver, outputs map[string]*flow.Receiver) (any, error) {
	const id = "prometheus.echo.test"
	head := reg.Name + " \"test\" {\n"
	if reg.Sends != 0 {
		head = reg.Name + " \"test\" { forward_to = [" + id + ".receiver]\n"
	}
	if len(outputs) > 0 {
		head = strings.TrimSuffix(head, "\n") + routesBlock(outputs)
	}
	lead := strings.Repeat("\n", max(0, at.Line-2))
	cfg, ds := config.Parse(map[string]string{at.File: lead + head + body + "\n}\n"})
	if err := ds.Err(); err != nil {
		return nil, err
	}
	scope := cfg.NewScope("test")
	scope.Set(id, struct {
		Receiver *flow.Receiver `alloy:"receiver,attr"`
	}{sink})
	for name, r := range outputs {
		scope.Set(outputSink+name, struct {
			Receiver *flow.Receiver `alloy:"receiver,attr"`
		}{r})
	}
	args := reg.NewArgs()
	if len(cfg.Blocks) != 1 {
		return nil, errors.New("cannot use these arguments: they end their block")
	}
	return args, cfg.Blocks[0].Decode(scope, args).Err()
}

// ConsumeMetrics is the sink's.
func (n *testNode) ConsumeMetrics(_ context.Context, b *batch.Metrics) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.came = append(n.came, b)
	return nil
}

func (n *testNode) failed(e *scripting.Error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.errors = append(n.errors, e)
}

// now is the time of samples without one, Unix ms.
func (n *testNode) now() int64 { return n.clock.Now().UnixMilli() }

// parse reads a batch as a source that knows its series would hand it over.
func (n *testNode) parse(text string) (*batch.Metrics, error) {
	b, err := batch.ParseText(text, batch.TextOptions{T: n.now(), Source: n.source, Series: n.handle})
	if e, ok := errors.AsType[*batch.SyntaxError](err); ok {
		return nil, &textError{e, "metrics"}
	}
	return b, err
}

// textError is a mistake in the text of a batch.
type textError struct {
	*batch.SyntaxError
	what string
}

// Unwrap returns the parser's error.
func (e *textError) Unwrap() error { return e.SyntaxError }

func (e *textError) Error() string {
	return fmt.Sprintf("cannot read line %d of the %s, column %d: %s", e.Line, e.what, e.Col, e.Msg)
}

func (n *testNode) handle(sorted []batch.Label, meta *batch.Metadata) *batch.Series {
	var key strings.Builder
	for _, l := range sorted {
		fmt.Fprintf(&key, "%q%q", l.Name, l.Value)
	}
	if meta != nil {
		fmt.Fprintf(&key, "%+v", *meta)
	}
	s := n.series[key.String()]
	if s == nil {
		s = batch.NewSeries(sorted)
		s.SetMeta(meta)
		n.series[key.String()] = s
	}
	return s
}

// output is what one batch became.
type output struct {
	node       *testNode
	in         *batch.Metrics
	inLogs     *batch.Logs // nil: in is what was sent
	t          int64       // the time that samples have without one
	nanos      int64       // and lines
	batches    []*batch.Metrics
	logs       []*batch.Logs
	routedLogs map[string][]*batch.Logs
	errors     []*scripting.Error
	dropped    map[string]uint64 // by reason
	routed     map[string][]*batch.Metrics
	delivery   delivery              // of a sink
	typ        *scripting.ObjectType // of it in tests
}

// begin forgets what came before, but for what a source has sent of itself before
// the first call, and returns what was dropped until now.
func (n *testNode) begin() map[string]uint64 {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.called {
		n.came, n.cameLogs, n.routed, n.routedLogs, n.errors = nil, nil, nil, nil, nil
	}
	n.called = true
	return n.dropped()
}

// output is what came since begin.
func (n *testNode) output(in *batch.Metrics, before map[string]uint64) *output {
	out := &output{node: n, in: in, t: n.now(), nanos: n.nanos(), dropped: n.dropped()}
	for reason, count := range before {
		if out.dropped[reason] -= count; out.dropped[reason] == 0 {
			delete(out.dropped, reason)
		}
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	out.batches, out.logs, out.errors = n.came, n.cameLogs, n.errors
	out.routed, out.routedLogs = n.routed, n.routedLogs
	out.delivery, n.delivery = n.delivery, delivery{}
	out.delivery.waits(n.waiting, n.clock.Now())
	return out
}

// dropped are the samples and lines that were dropped, by reason.
func (n *testNode) dropped() map[string]uint64 {
	all := n.stats.Dropped()
	for reason, count := range n.stats.DroppedLines() {
		all[reason] += count
	}
	return all
}

// send sends one batch through the component.
func (n *testNode) send(ctx context.Context, in *batch.Metrics) (*output, error) {
	before := n.begin()
	if err := n.sendInput(ctx, input{metrics: in}); err != nil {
		return nil, err
	}
	if _, err := n.awaitIdle(ctx); err != nil { // a script that sleeps moves the clock
		return nil, err
	}
	return n.output(in, before), nil
}

// text is the output in text form.
func (o *output) text() string {
	var dst []byte
	for _, b := range o.batches {
		dst = batch.AppendTextAt(dst, b, o.t)
	}
	for _, b := range o.logs {
		dst = batch.AppendLogsTextAt(dst, b, o.nanos)
	}
	return string(dst)
}

// record is the record of an index over all batches, samples first.
func (o *output) record(index int) scripting.Value {
	for _, b := range o.batches {
		if index < b.Len() {
			return record(b, index)
		}
		index -= b.Len()
	}
	for _, b := range o.logs {
		if index < b.Len() {
			return logRecord(b, index)
		}
		index -= b.Len()
	}
	panic("BUG: index beyond the output")
}

func (o *output) len() int {
	total := 0
	for _, b := range o.batches {
		total += b.Len()
	}
	for _, b := range o.logs {
		total += b.Len()
	}
	return total
}

// maxOutput is how many lines that a test prints, or that a component logs, are kept.
const maxOutput = 200

// testOutput is the lines that a test prints, or that a component logs.
type testOutput struct {
	lines []string
	more  int // lines that were not kept
}

func (o *testOutput) add(line string) {
	if len(o.lines) < maxOutput {
		o.lines = append(o.lines, line)
	} else {
		o.more++
	}
}

// shown returns the lines, and a note if some of them were not kept.
func (o testOutput) shown() []string {
	if o.more == 0 {
		return o.lines
	}
	return append(o.lines, fmt.Sprintf("%d more lines are not shown", o.more))
}

// logLines keeps what a component logs of its script's lines.
type logLines struct {
	mu  sync.Mutex
	out testOutput
}

// Enabled returns true: a test sees debug lines as well.
func (*logLines) Enabled(context.Context, slog.Level) bool { return true }

// isKnown reports whether a line says what the test knows already.
func isKnown(r slog.Record) bool {
	return r.Message == "script failed" || r.Message == "script works again"
}

// Handle keeps a line with its attributes.
func (l *logLines) Handle(_ context.Context, r slog.Record) error {
	var b strings.Builder
	if isKnown(r) {
		return nil
	}
	fmt.Fprintf(&b, "%s: %s", strings.ToLower(r.Level.String()), r.Message)
	r.Attrs(func(a slog.Attr) bool {
		fmt.Fprintf(&b, " %s=%v", a.Key, a.Value)
		return true
	})
	l.mu.Lock()
	defer l.mu.Unlock()
	l.out.add(b.String())
	return nil
}

// WithAttrs leaves out attributes of the node, which say nothing in a test.
func (l *logLines) WithAttrs([]slog.Attr) slog.Handler { return l }

// WithGroup likewise.
func (l *logLines) WithGroup(string) slog.Handler { return l }

func (l *logLines) takeOutput() testOutput {
	l.mu.Lock()
	defer l.mu.Unlock()
	out := l.out
	l.out = testOutput{}
	return out
}

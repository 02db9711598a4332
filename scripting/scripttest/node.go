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
)

// began is what the clock of every component shows first.
var began = time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC)

// node is a component under test: what the engine would run for one block,
// with the test as its source and its sink.
type node struct {
	name   string
	body   string // of its block, without forward_to
	clock  *clocktest.Fake
	stats  *flow.Stats
	in     *flow.Receiver
	source uint64
	series map[string]*batch.Series // the source's handles, by labels and metadata
	log    *logLines
	stop   func() // ends Run and waits for it
	known  int    // index in the session's known
	over   bool   // it was stopped

	mu     sync.Mutex
	came   []*batch.Metrics // in the call at hand
	routed map[string][]*batch.Metrics
	errors []*scripting.Error
}

// newNode builds the component of a name with the attributes and blocks of its
// block in the config language. at is where body stands, for mistakes in it.
func newNode(c component.Catalog, name, body string, at config.Span) (*node, error) {
	c = scripting.WithOutside(c, denied())
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
	if reg.Accepts&batch.SignalMetrics == 0 {
		return nil, fmt.Errorf("cannot test %s: it takes no metrics", name)
	}
	n := &node{
		name: name, body: body, clock: clocktest.New(began), stats: new(flow.Stats), source: batch.NewSource(),
		series: map[string]*batch.Series{}, log: &logLines{},
	}
	sink := flow.NewReceiver("test", batch.SignalMetrics, nil, nil)
	sink.Set(n)
	args, err := decode(reg, body, at, sink, n.outputSinks(reg))
	if err != nil {
		return nil, err
	}
	id := name + ".test"
	comp, err := reg.Build(component.Options{
		ID: id, Logger: slog.New(n.log), Registerer: prometheus.NewRegistry(), UserAgent: "weir/test",
		Clock: n.clock, Stats: n.stats, Export: func(any) {}, Health: func(component.Health) {},
		Service: func(s string) (any, error) { return nil, fmt.Errorf("there is no service %q in a test", s) },
	}, args)
	if err != nil {
		return nil, err
	}
	n.in = flow.NewReceiver(id, reg.Accepts, n.stats, nil)
	n.in.Set(comp)
	n.run(comp)
	return n, nil
}

// run calls Run until stop.
func (n *node) run(c component.Component) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = c.Run(ctx) // a transform's ends with its context
	}()
	n.stop = sync.OnceFunc(func() {
		n.over = true
		cancel()
		<-done
		for _, s := range n.series {
			s.Release()
		}
	})
}

// decode reads a block's body as the engine would.
func decode(reg component.Registration, body string, at config.Span, sink *flow.Receiver, outputs map[string]*flow.Receiver) (any, error) {
	const id = "prometheus.echo.test"
	head := reg.Name + " \"test\" { forward_to = [" + id + ".receiver]\n"
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
func (n *node) ConsumeMetrics(_ context.Context, b *batch.Metrics) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.came = append(n.came, b)
	return nil
}

func (n *node) failed(e *scripting.Error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.errors = append(n.errors, e)
}

// now is the time of samples without one, Unix ms.
func (n *node) now() int64 { return n.clock.Now().UnixMilli() }

// parse reads a batch as a source that knows its series would hand it over.
func (n *node) parse(text string) (*batch.Metrics, error) {
	b, err := batch.ParseText(text, batch.TextOptions{T: n.now(), Source: n.source, Series: n.handle})
	if e, ok := errors.AsType[*batch.SyntaxError](err); ok {
		return nil, &textError{e}
	}
	return b, err
}

// textError is a mistake in the text of a batch.
type textError struct{ *batch.SyntaxError }

// Unwrap returns the parser's error.
func (e *textError) Unwrap() error { return e.SyntaxError }

func (e *textError) Error() string {
	return fmt.Sprintf("cannot read line %d of the metrics, column %d: %s", e.Line, e.Col, e.Msg)
}

func (n *node) handle(sorted []batch.Label, meta *batch.Metadata) *batch.Series {
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
	node    *node
	in      *batch.Metrics
	t       int64 // the time that samples have without one
	batches []*batch.Metrics
	errors  []*scripting.Error
	dropped map[string]uint64 // by reason
	routed  map[string][]*batch.Metrics
	typ     *scripting.ObjectType // of it in tests
}

// send sends one batch through the component.
func (n *node) send(ctx context.Context, in *batch.Metrics) (*output, error) {
	before := n.stats.Dropped()
	n.mu.Lock()
	n.came, n.errors, n.routed = nil, nil, nil
	n.mu.Unlock()
	if err := n.in.ConsumeMetrics(scripting.Observe(ctx, n.failed), in); err != nil {
		return nil, fmt.Errorf("%s did not take the batch: %w", n.name, err)
	}
	out := &output{node: n, in: in, t: n.now(), dropped: n.stats.Dropped()}
	for reason, count := range before {
		if out.dropped[reason] -= count; out.dropped[reason] == 0 {
			delete(out.dropped, reason)
		}
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	out.batches, out.errors, out.routed = n.came, n.errors, n.routed
	return out, nil
}

// text is the output in text form.
func (o *output) text() string {
	var dst []byte
	for _, b := range o.batches {
		dst = batch.AppendTextAt(dst, b, o.t)
	}
	return string(dst)
}

// at returns the batch and row of an index over all batches.
func (o *output) at(index int) (*batch.Metrics, int) {
	for _, b := range o.batches {
		if index < b.Len() {
			return b, index
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
	return total
}

// logLines keeps what a component logs of its script's lines.
type logLines struct {
	mu    sync.Mutex
	lines []string
}

// maxLogLines is how many lines of a component are kept.
const maxLogLines = 200

// Enabled returns true: a test sees debug lines as well.
func (*logLines) Enabled(context.Context, slog.Level) bool { return true }

// Handle keeps a line with its attributes.
func (l *logLines) Handle(_ context.Context, r slog.Record) error {
	var b strings.Builder
	if r.Message == "script failed" || r.Message == "script works again" {
		return nil // which the test knows already
	}
	fmt.Fprintf(&b, "%s: %s", strings.ToLower(r.Level.String()), r.Message)
	r.Attrs(func(a slog.Attr) bool {
		fmt.Fprintf(&b, " %s=%v", a.Key, a.Value)
		return true
	})
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.lines) < maxLogLines {
		l.lines = append(l.lines, b.String())
	}
	return nil
}

// WithAttrs leaves out attributes of the node, which say nothing in a test.
func (l *logLines) WithAttrs([]slog.Attr) slog.Handler { return l }

// WithGroup likewise.
func (l *logLines) WithGroup(string) slog.Handler { return l }

func (l *logLines) take() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	out := l.lines
	l.lines = nil
	return out
}

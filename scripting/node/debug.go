package node

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/clock"
	"github.com/weir-run/weir/engine/expr"
	"github.com/weir-run/weir/engine/flow"
	"github.com/weir-run/weir/engine/tap"
	"github.com/weir-run/weir/scripting"
	"github.com/weir-run/weir/scripting/debug"
)

const (
	// debugTime is how many times longer a call may run with a debugger. While it is
	// stopped, its time does not count.
	debugTime = 20
	// maxDebugRecords is the maximum number of records that are shown of the result
	// of a call.
	maxDebugRecords = 20
	// lastMessages is the time in which a client must read the last messages.
	lastMessages = 500 * time.Millisecond
	// endOfNode is why a session ends that the client has not ended.
	endOfNode = "the node was removed, or weir stops"
)

// debugger is a debug session of a node: a copy of the node, apart from the graph,
// gets batches that the node gets.
type debugger struct {
	session *debug.Session
	where   *expr.Programs // nil: all batches
	busy    atomic.Bool    // the copy processes a batch
	batches chan payload   // for the copy
	skipped atomic.Int64   // batches that came while it was busy

	loads  sync.Once
	loaded chan struct{} // closed when the session knows the files, or there are none
}

func (d *debugger) load() { d.loads.Do(func() { close(d.loaded) }) }

// offer passes a batch to the copy if that has time. It never waits.
func (d *debugger) offer(b payload) {
	if d.busy.Load() {
		d.skipped.Add(1)
		return
	}
	if d.where != nil && !tap.Match(*d.where, b.batches()) {
		return
	}
	if !d.busy.CompareAndSwap(false, true) {
		d.skipped.Add(1)
		return
	}
	select {
	case d.batches <- b:
	default: // one for an earlier copy is left
		d.skipped.Add(1)
	}
}

func (b payload) batches() flow.Batches {
	if b.Logs != nil {
		return flow.Batches{Logs: []*batch.Logs{b.Logs}}
	}
	return flow.Batches{Metrics: []*batch.Metrics{b.Metrics}}
}

// serveDebug is a session of the Debug Adapter Protocol. The client sends its
// messages in the body while it reads the response.
func (c *Component) serveDebug(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Cache-Control", "no-store")
	refuse := func(status int, format string, args ...any) { http.Error(w, fmt.Sprintf(format, args...), status) }
	d := &debugger{batches: make(chan payload, 1), loaded: make(chan struct{})}
	d.busy.Store(true) // until the copy is there
	if text := r.URL.Query().Get("where"); text != "" {
		progs, err := expr.CompileEither(text, expr.Bool, nil)
		if err != nil {
			refuse(http.StatusBadRequest, "where: %v", err)
			return
		}
		d.where = &progs
	}
	if c.script.Definition.Kind != scripting.Transform {
		refuse(http.StatusConflict, "%s cannot be debugged: only scripts that receive records and send them on can be", c.opts.ID)
		return
	}
	out := &stream{w: w, rc: http.NewResponseController(w)}
	d.session = debug.New(c.opts.ID, out)
	if !c.mem.debugger.CompareAndSwap(nil, d) {
		refuse(http.StatusConflict, "somebody else debugs %s; try again when that has ended", c.opts.ID)
		return
	}
	defer c.mem.debugger.Store(nil)
	w.Header().Set("Content-Type", "application/octet-stream")
	// The connection ends with the session, and has deadlines of its own: another request
	// of the client must not use it.
	w.Header().Set("Connection", "close")
	if err := out.open(); err != nil {
		refuse(http.StatusInternalServerError, "cannot open the stream: %v", err)
		return
	}
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	var wg sync.WaitGroup
	defer func() {
		wg.Wait()
		out.finish()
	}()
	wg.Go(func() {
		<-ctx.Done()
		out.limitWrites() // the client may not read any more
		d.session.End(endOfNode)
		out.cut()
	})
	defer cancel()
	wg.Go(func() {
		defer cancel()
		d.run(ctx, c)
	})
	select {
	case <-d.loaded: // so that the client learns which breakpoints are valid
	case <-ctx.Done():
	}
	_ = d.session.Serve(r.Body) // an error is the client's: it went away
}

// stream is a response that is written while the request is read.
type stream struct {
	w  io.Writer
	rc *http.ResponseController
}

// open sends the headers.
func (s *stream) open() error {
	err := errors.Join(s.rc.EnableFullDuplex(), s.rc.SetReadDeadline(time.Time{}), s.rc.SetWriteDeadline(time.Time{}))
	if err != nil {
		return err
	}
	return s.rc.Flush()
}

// limitWrites limits the time for the last messages.
func (s *stream) limitWrites() { _ = s.rc.SetWriteDeadline(time.Now().Add(lastMessages)) }

// cut ends reading and writing.
func (s *stream) cut() {
	past := time.Unix(1, 0)
	_ = s.rc.SetReadDeadline(past)
	_ = s.rc.SetWriteDeadline(past)
}

// finish allows for the end of the response after cut.
func (s *stream) finish() { _ = s.rc.SetWriteDeadline(time.Now().Add(answerTime)) }

// Write sends b.
func (s *stream) Write(b []byte) (int, error) {
	n, err := s.w.Write(b)
	if err != nil {
		return n, err
	}
	return n, s.rc.Flush()
}

// run runs copies of the node, one version after another, until ctx ends or the node
// does.
func (d *debugger) run(ctx context.Context, c *Component) {
	for {
		d.runVersion(ctx, c)
		select {
		case <-c.admission.replaced:
			c = c.mem.newest()
			d.session.Print(debug.Console, "the node was rebuilt: a copy of its new version is debugged from now on")
		case <-c.admission.stopped:
			d.session.End(endOfNode)
			return
		case <-ctx.Done():
			return
		}
	}
}

// runVersion runs a copy of c until c or ctx ends.
func (d *debugger) runVersion(ctx context.Context, c *Component) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	wg.Go(func() {
		defer cancel()
		select {
		case <-c.admission.replaced:
		case <-c.admission.stopped:
		case <-ctx.Done():
		}
	})
	if err := d.runCopy(ctx, c); err != nil && ctx.Err() == nil {
		d.session.Print(debug.Stderr, "cannot debug this version: "+err.Error())
		<-ctx.Done()
	}
}

// runCopy compiles the script of c for the debugger and passes batches to it until
// ctx ends.
func (d *debugger) runCopy(ctx context.Context, c *Component) error {
	program := d.session.Program(ctx)
	compiled, err := c.script.Debug(program)
	defer d.load()
	if err != nil {
		return err
	}
	d.session.Load(program.Files)
	d.load()
	select {
	case <-d.session.Configured():
	case <-ctx.Done():
		return nil
	}
	script := *c.script
	script.Program = compiled
	now := &debugClock{Clock: c.opts.Clock}
	now.set()
	copied, err := c.newRehearsal(ctx, &script, c.args, rehearsalOptions{
		what: "a debugged script", clock: now, log: slog.New(&debugLog{session: d.session}), debugged: true,
	})
	if err != nil {
		return err
	}
	defer copied.close()
	d.ready()
	d.session.Print(debug.Console, fmt.Sprintf("debugging %s: it waits for a batch", c)) // which is let in
	defer d.busy.Store(true)
	for {
		select {
		case <-ctx.Done():
			return nil
		case b := <-d.batches:
			now.set()
			err := d.process(ctx, copied.c, b)
			d.session.EndCall()
			if ctx.Err() != nil {
				return nil
			}
			text := ""
			if n := d.ready(); n > 0 {
				text = fmt.Sprintf("; batches that came meanwhile and were skipped: %d", n)
			}
			if err != nil {
				d.session.Print(debug.Stderr, err.Error()+text)
				continue
			}
			d.session.Print(debug.Console, "the call has ended"+text)
		}
	}
}

// ready lets the next batch in, and returns the number of skipped batches. A batch of
// an earlier copy is dropped.
func (d *debugger) ready() (skipped int64) {
	select {
	case <-d.batches:
	default:
	}
	skipped = d.skipped.Swap(0)
	d.busy.Store(false)
	return skipped
}

// process passes a batch to a copy and shows the result. Hooks for labels are called
// for all series, although the node may have remembered their results.
func (d *debugger) process(ctx context.Context, c *Component, b payload) error {
	c.instance.close()
	c.instance = c.mem.next(c.views)
	t := c.kind.(*transform)
	if b.Logs != nil {
		return debugBatch(ctx, d, t.logs, b.Logs)
	}
	return debugBatch(ctx, d, t.metrics, b.Metrics)
}

func debugBatch[B records](ctx context.Context, d *debugger, p pipeline[B], b B) error {
	if p.c.script.Definition.Accepts()&p.signal.bit() == 0 {
		return nil
	}
	r, err := p.rehearse(ctx, b, nil)
	if err != nil {
		return err
	}
	defer r.close()
	for _, e := range r.errors {
		if ctx.Err() == nil {
			d.session.Print(debug.Stderr, e.Error())
		}
	}
	var text strings.Builder
	all := p.signal.payload(r.all)
	n := all.len() + r.other.len()
	fmt.Fprintf(&text, "records in: %d, out: %d (not sent)", b.Len(), n)
	shown := 0
	for _, out := range []payload{all, r.other} {
		for line := range out.lines() {
			if shown++; shown > maxDebugRecords {
				break
			}
			text.WriteString("\n  " + shortExample(strings.TrimSpace(line)))
		}
	}
	if n > maxDebugRecords {
		fmt.Fprintf(&text, "\n  … %d more", n-maxDebugRecords)
	}
	d.session.Print(debug.Stdout, text.String())
	return nil
}

// debugClock stands still while a call is debugged. Nobody waits on it.
type debugClock struct {
	clock.Clock
	at atomic.Pointer[time.Time]
}

func (c *debugClock) set() {
	now := c.Clock.Now()
	c.at.Store(&now)
}

// Now returns the time at which the call began.
func (c *debugClock) Now() time.Time { return *c.at.Load() }

// Sleep returns at once.
func (*debugClock) Sleep(ctx context.Context, _ time.Duration) error { return context.Cause(ctx) }

// debugLog shows log lines of a copy to the client.
type debugLog struct {
	session *debug.Session
	attrs   string
}

// Enabled returns true: the user reads all lines.
func (*debugLog) Enabled(context.Context, slog.Level) bool { return true }

// Handle shows a line.
func (h *debugLog) Handle(_ context.Context, r slog.Record) error {
	text := r.Level.String() + " " + r.Message + h.attrs
	r.Attrs(func(a slog.Attr) bool {
		text += " " + a.String()
		return true
	})
	h.session.Print(debug.Stdout, text)
	return nil
}

// WithAttrs returns a handler that adds attributes.
func (h *debugLog) WithAttrs(attrs []slog.Attr) slog.Handler {
	out := *h
	for _, a := range attrs {
		out.attrs += " " + a.String()
	}
	return &out
}

// WithGroup returns h: the names of groups are not shown.
func (h *debugLog) WithGroup(string) slog.Handler { return h }

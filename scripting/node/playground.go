package node

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/files"
	"github.com/weir-run/weir/engine/flow"
	"github.com/weir-run/weir/engine/tap"
	"github.com/weir-run/weir/scripting"
)

const (
	// maxPlaygroundRecords is the maximum number of records that are shown of a result.
	maxPlaygroundRecords = 500
	// maxPlaygroundTime is the limit of CPU time for a batch. Unfinished code often loops
	// endlessly.
	maxPlaygroundTime = time.Second
	// maxPlaygroundLog is the maximum size of the log lines that are shown of a call.
	maxPlaygroundLog = 16 << 10
)

// PlaygroundStart is what an editor begins with.
type PlaygroundStart struct {
	File string `json:"file"` // the script's name, as shown to people
	Text string `json:"text"` // that the node runs
	// Disk is the text of the file if weir has not accepted it, so that the node runs an
	// older one.
	Disk string `json:"disk,omitempty"`
	// Metrics and Logs report which records the script accepts.
	Metrics bool `json:"metrics"`
	Logs    bool `json:"logs"`
}

// PlaygroundRequest is a script and the records that it processes.
type PlaygroundRequest struct {
	Text string `json:"text"` // of the script
	tap.Pasted
}

// PlaygroundResult is what the script made of the records.
type PlaygroundResult struct {
	Records int     `json:"records"` // of the input
	Seconds float64 `json:"seconds"` // that the hooks took
	// Events are the differences between the input and the output, in the format of
	// /api/v0/tap/{id}.
	Events []json.RawMessage `json:"events"`
	Errors []PlaygroundError `json:"errors,omitempty"`
	Log    string            `json:"log,omitempty"` // lines that the script logged
}

// addEvents adds events, one in each line.
func (res *PlaygroundResult) addEvents(lines []byte) {
	for line := range bytes.Lines(lines) {
		res.Events = append(res.Events, bytes.TrimSpace(line))
	}
}

// PlaygroundError is an error of the script or of its input.
type PlaygroundError struct {
	File    string `json:"file,omitempty"`
	Input   bool   `json:"input,omitempty"`  // whether the error is in the input
	Line    int    `json:"line,omitempty"`   // starts at 1; 0 if it is unknown
	Column  int    `json:"column,omitempty"` // starts at 1; 0 if it is unknown
	Message string `json:"message"`
}

// servePlaygroundStart returns the script of the node.
func (c *Component) servePlaygroundStart(w http.ResponseWriter, _ *http.Request) {
	f := c.script.File
	accepts := c.script.Definition.Accepts()
	writeJSON(w, PlaygroundStart{File: f.Name, Text: f.Text, Disk: c.unaccepted(), Metrics: accepts&batch.SignalMetrics != 0, Logs: accepts&batch.SignalLogs != 0})
}

// unaccepted returns the text of the file if the node runs another one although it is not
// pinned to it and has no canary. It is "" if the file has been removed or cannot be read.
func (c *Component) unaccepted() string {
	f := c.script.File
	if f.Path == "" || c.canary.Load() != nil {
		return ""
	}
	if h := c.script.History; h != nil {
		if _, pinned := h.Record().Pinned(c.opts.ID); pinned {
			return ""
		}
	}
	if files.Inside(c.script.Folder, f.Path) != nil {
		return ""
	}
	text, err := files.Read(f.Path, scripting.MaxFileSize)
	if err != nil || string(text) == f.Text {
		return ""
	}
	return string(text)
}

// servePlayground runs another text as the script of the node, without effect.
func (c *Component) servePlayground(w http.ResponseWriter, r *http.Request) {
	var req PlaygroundRequest
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxRequest)).Decode(&req); err != nil {
		http.Error(w, fmt.Sprintf("cannot read the request: %v", err), http.StatusBadRequest)
		return
	}
	c.mem.playing.Lock() // the CPU time of several would delay the data
	defer c.mem.playing.Unlock()
	res, err := c.play(r.Context(), req)
	if err != nil {
		res.Errors = append(res.Errors, playgroundErrors(err)...)
	}
	writeJSON(w, res)
}

// playgroundErrors returns the errors in err, with their positions.
func playgroundErrors(err error) (out []PlaygroundError) {
	if all, ok := err.(interface{ Unwrap() []error }); ok {
		for _, e := range all.Unwrap() {
			out = append(out, playgroundErrors(e)...)
		}
		return out
	}
	if e, ok := errors.AsType[*scripting.Error](err); ok {
		return []PlaygroundError{{File: e.File, Line: e.Line, Column: e.Col, Message: e.Err.Error()}}
	}
	return []PlaygroundError{{Message: err.Error()}}
}

// play processes the records of a request. The result is there even with an error.
func (c *Component) play(ctx context.Context, req PlaygroundRequest) (*PlaygroundResult, error) {
	res := &PlaygroundResult{Events: []json.RawMessage{}}
	if ctx.Err() != nil {
		return res, context.Cause(ctx)
	}
	if c.script.Definition.Kind != scripting.Transform {
		return res, fmt.Errorf("%s has no playground: only scripts that receive records and send them on have one", c.opts.ID)
	}
	in, err := req.Parse(c.opts.Clock.Now())
	if syntax, ok := errors.AsType[*batch.SyntaxError](err); ok {
		res.Errors = []PlaygroundError{{Input: true, Line: syntax.Line, Column: syntax.Col, Message: syntax.Msg}}
		return res, nil
	}
	if err != nil {
		return res, err
	}
	f := c.script.File
	f.Text = req.Text
	s, err := c.script.Recompile(f)
	if err != nil {
		return res, err
	}
	if s.Definition.Kind != scripting.Transform {
		return res, fmt.Errorf("cannot run %s: it does not return weir.transform", f.Name)
	}
	args := s.NewArgs()
	if err := copyArgs(args, c.args); err != nil {
		return res, fmt.Errorf("cannot use the arguments of %s: %w", c.opts.ID, err)
	}
	log := &cutWriter{left: maxPlaygroundLog}
	defer func() { res.Log = log.String() }()
	r, err := c.newRehearsal(ctx, s, args, rehearsalOptions{
		what: "the playground", clock: stopped{c.opts.Clock, c.opts.Clock.Now()},
		log: slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug})),
	})
	if err != nil {
		return res, err
	}
	defer r.close()
	r.c.block.Limits.Time = min(r.c.block.Limits.Time, maxPlaygroundTime)
	p, err := tap.New(tap.Options{Side: flow.Calls, Format: "json", Limit: maxPlaygroundRecords})
	if err != nil {
		return res, err
	}
	p.Mask(c.secrets())
	t := r.c.kind.(*transform)
	var errs []error
	for _, b := range in.Metrics {
		errs = append(errs, playBatch(ctx, res, p, t.metrics, b))
	}
	for _, b := range in.Logs {
		errs = append(errs, playBatch(ctx, res, p, t.logs, b))
	}
	res.addEvents(p.Tick(nil))
	return res, errors.Join(errs...)
}

// playBatch processes a batch and adds the result.
func playBatch[B records](ctx context.Context, res *PlaygroundResult, p *tap.Printer, line pipeline[B], b B) error {
	if line.c.script.Definition.Accepts()&line.signal.bit() == 0 {
		return fmt.Errorf("the script does not accept %s", line.signal.bit())
	}
	r, err := line.rehearse(ctx, b, nil)
	if err != nil {
		return err
	}
	defer r.close()
	res.Records += b.Len()
	res.Seconds += r.took.Seconds()
	out := line.signal.payload(r.all).batches()
	if r.other.len() > 0 {
		other := r.other.batches()
		out.Metrics = append(out.Metrics, other.Metrics...)
		out.Logs = append(out.Logs, other.Logs...)
	}
	res.addEvents(p.Append(nil, flow.Tapped{In: line.signal.payload(b).batches(), Out: out, Time: time.Now()}))
	for _, e := range r.errors {
		res.Errors = append(res.Errors, playgroundErrors(e)...)
	}
	return nil
}

// cutWriter keeps the beginning of what is written to it.
type cutWriter struct {
	bytes.Buffer
	left int
}

// Write keeps what there is room for.
func (w *cutWriter) Write(b []byte) (int, error) {
	kept := b[:min(len(b), w.left)]
	w.left -= len(kept)
	w.Buffer.Write(kept)
	return len(b), nil
}

package node

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weir-run/weir/engine/api"
	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/clock"
	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/flow"
	"github.com/weir-run/weir/scripting"
)

// quarantineRoutes serves the requests of 'weir quarantine' and of the web UI.
func (c *Component) quarantineRoutes(m *api.Mux) {
	m.Handle("GET /quarantine", c.serveQuarantine, listQuarantineOperation)
	m.Handle("GET /quarantine/{entry}", c.serveQuarantined, getQuarantineOperation)
	m.Handle("POST /quarantine/drop", c.serveDrop, dropOperation)
	m.Handle("POST /quarantine/replay", c.serveReplay, replayOperation)
}

// maxRequest is the maximum size of a request, which contains a script and
// numbers.
const maxRequest = scripting.MaxFileSize + 1<<20

// QuarantineRequest requests a replay or a removal of entries.
type QuarantineRequest struct {
	IDs []uint64 `json:"ids"` // empty: all
	// With is a script that processes the entries instead of the node's script.
	// Its output is shown, and is sent only if Send is set. nil: the node's
	// script.
	With *scripting.File `json:"with,omitempty"`
	Send bool            `json:"send,omitempty"`
}

// QuarantineResult is the result for an entry.
type QuarantineResult struct {
	ID     uint64 `json:"id"`
	Passed bool   `json:"passed"` // processed by the script, and sent if requested
	Gone   bool   `json:"gone"`   // removed from the store
	Error  string `json:"error,omitempty"`
	// Outputs contains the output of the request's script in text form, by output.
	Outputs []QuarantineOutput `json:"outputs,omitempty"`
}

// QuarantineOutput contains the data that left by one output.
type QuarantineOutput struct {
	Name string `json:"name"` // forward_to, or the name of an output
	Text string `json:"text"`
}

func (c *Component) quarantineRequest(w http.ResponseWriter, r *http.Request) (req QuarantineRequest, ok bool) {
	err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxRequest)).Decode(&req)
	if err == nil && len(req.IDs) == 0 {
		req.IDs, err = c.mem.quarantine.store.IDs()
	}
	if err != nil {
		http.Error(w, fmt.Sprintf("cannot read the request: %v", err), http.StatusBadRequest)
		return req, false
	}
	return req, true
}

func writeJSON(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v) // the client is gone
}

func (c *Component) serveDrop(w http.ResponseWriter, r *http.Request) {
	req, ok := c.quarantineRequest(w, r)
	if !ok {
		return
	}
	results := []QuarantineResult{}
	for _, id := range req.IDs {
		res := QuarantineResult{ID: id, Passed: true, Gone: true}
		if err := c.mem.quarantine.store.Discard(id); err != nil {
			res = QuarantineResult{ID: id, Error: err.Error()}
		}
		results = append(results, res)
	}
	writeJSON(w, results)
}

func (c *Component) serveReplay(w http.ResponseWriter, r *http.Request) {
	req, ok := c.quarantineRequest(w, r)
	if !ok {
		return
	}
	through := c
	if req.With != nil {
		try, done, err := c.try(r.Context(), *req.With)
		if err != nil {
			http.Error(w, err.Error(), http.StatusUnprocessableEntity)
			return
		}
		defer done()
		through = try
	}
	results := []QuarantineResult{}
	for _, id := range req.IDs {
		res := QuarantineResult{ID: id}
		if err := c.replay(r.Context(), through, id, req, &res); err != nil {
			res.Error = err.Error()
		}
		results = append(results, res)
	}
	writeJSON(w, results)
}

// replay processes an entry in a component, which is c or a substitute, and
// sends the result. If it succeeds, the entry is removed from the store.
func (c *Component) replay(ctx context.Context, through *Component, id uint64, req QuarantineRequest, res *QuarantineResult) error {
	e, data, err := c.mem.quarantine.store.Read(id)
	if err != nil {
		return err
	}
	if accepts := through.script.Definition.Accepts(); e.Signal != accepts.String() && accepts != batch.SignalMetrics|batch.SignalLogs {
		return fmt.Errorf("cannot replay entry %d: it holds %s, and the script takes %s", id, e.Signal, accepts)
	}
	// It has its own source, so no cached data or staleness markers apply.
	handles := batch.NewInterner(0)
	defer handles.Clear()
	text := batch.TextOptions{Source: batch.NewPushSource(), Series: func(sorted []batch.Label, meta *batch.Metadata) *batch.Series {
		return handles.Intern(sorted, meta, time.Time{})
	}}
	var b payload
	if e.Signal == batch.SignalLogs.String() {
		b.Logs, err = batch.ParseLogsText(string(data), text)
	} else {
		b.Metrics, err = batch.ParseText(string(data), text)
	}
	if err != nil {
		return fmt.Errorf("cannot read entry %d: %w", id, err)
	}
	t := through.newTerms(ctx)
	t.replay = true
	if to, ok := through.kind.(*sink); ok {
		return c.replaySink(ctx, to, id, b, t, req, res)
	}
	o, err := through.kind.(*transform).process(ctx, b, t)
	if err != nil {
		return err
	}
	if through != c {
		res.Outputs = through.show(o.out)
		if res.Passed = true; !req.Send {
			return nil
		}
		res.Passed = false
	}
	if err := c.deliverReplayed(ctx, o.out, b.latest(c.opts.Clock)); err != nil {
		return err
	}
	res.Passed = true
	if err := c.mem.quarantine.store.Drop(id); err != nil {
		return err
	}
	res.Gone = true
	return nil
}

// replaySink sends an entry through a sink. The request's script sends as well,
// because it has no other output to show.
func (c *Component) replaySink(ctx context.Context, to *sink, id uint64, b payload, t terms, req QuarantineRequest, res *QuarantineResult) error {
	if to.c != c && !req.Send {
		return errors.New("cannot show what a sink would send without sending it: say --send")
	}
	sent, err := to.sendNow(ctx, b.Batch, t)
	if err != nil {
		return err
	}
	if c.script.Definition.Kind == scripting.Sink {
		c.mem.outbox.CountSent(b.Signal(), sent)
	}
	res.Passed = true
	if err := c.mem.quarantine.store.Drop(id); err != nil {
		return err
	}
	res.Gone = true
	return nil
}

// replayTries is the number of retries after a refusal.
const replayTries = 5

// deliverReplayed sends the result for an entry. If receivers refuse it, it is
// sent to them again for a while.
func (c *Component) deliverReplayed(ctx context.Context, out result, t int64) error {
	err := c.router.send(ctx, c.rules, out, t)
	for range replayTries {
		p, refused := errors.AsType[*flow.Partial](err)
		if !refused {
			break
		}
		if clock.Sleep(ctx, c.opts.Clock, time.Second) != nil {
			break
		}
		err = p.Retry(ctx)
	}
	if err != nil {
		return fmt.Errorf("it passed the script, but it was not accepted, at least not by all: %w", err)
	}
	return nil
}

// show returns the result for a batch in text form.
func (c *Component) show(out result) []QuarantineOutput {
	var shown []QuarantineOutput
	for i, set := range c.router.sets {
		if i == 0 || set&1 == 0 {
			var text []byte
			if out.samples != nil {
				text = batch.AppendText(text, out.samples[i])
			}
			if out.lines != nil {
				text = batch.AppendLogsText(text, out.lines[i])
			}
			shown = append(shown, QuarantineOutput{wayNames(c.script.Definition, set), string(text)})
		}
	}
	return shown
}

// try builds a component of another script as a substitute for c. It has the
// arguments of c, but not its place in the graph, its counters or its state.
// done ends it.
func (c *Component) try(ctx context.Context, f scripting.File) (try *Component, done func(), err error) {
	s, err := c.script.Recompile(f)
	if err != nil {
		return nil, nil, fmt.Errorf("cannot use %s: %w", f.Name, err)
	}
	args := s.NewArgs()
	if err := copyArgs(args, c.args); err != nil {
		return nil, nil, fmt.Errorf("cannot use %s with the arguments of %s: %w", f.Name, c.opts.ID, err)
	}
	o := c.opts
	o.Registerer, o.Stats = prometheus.NewRegistry(), new(flow.Stats)
	o.Health, o.Export = func(component.Health) {}, func(any) {}
	o.StoragePath, o.DataPath = "", "" // nothing of it is stored
	if try, err = New(s, o, args, nil); err != nil {
		return nil, nil, err
	}
	if !slices.Equal(s.Definition.Outputs, c.script.Definition.Outputs) {
		return nil, nil, fmt.Errorf("cannot use %s: its outputs are %q, those of %s %q", f.Name, s.Definition.Outputs, c.opts.ID, c.script.Definition.Outputs)
	}
	if err := try.takeState(ctx); err != nil {
		return nil, nil, err
	}
	if s.Definition.Setup {
		if err := try.runHook(ctx, &scripting.Hook{Name: "setup"}); err != nil {
			return nil, nil, err
		}
	}
	try.admission.open()
	return try, func() {
		try.world.Close()
		try.instance.close()
	}, nil
}

// copyArgs copies the arguments from one type created by block.TypeOf to
// another, by name.
func copyArgs(into, from any) error {
	dst, src := reflect.ValueOf(into).Elem(), reflect.ValueOf(from).Elem()
	var missing []string
	for i := range dst.NumField() {
		f := dst.Type().Field(i)
		name, kind, _ := strings.Cut(f.Tag.Get("alloy"), ",")
		v := src.FieldByName(f.Name)
		switch {
		case name == "":
		case v.IsValid() && v.Type().ConvertibleTo(f.Type):
			dst.Field(i).Set(v.Convert(f.Type))
		case !strings.HasSuffix(kind, ",optional"):
			missing = append(missing, name)
		}
	}
	if len(missing) > 0 {
		return fmt.Errorf("the block does not set %s, or as another type", strings.Join(missing, ", "))
	}
	return nil
}

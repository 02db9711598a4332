package http

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	nethttp "net/http"
	"strings"
	"time"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/config"
	"github.com/weir-run/weir/engine/flow"
	"github.com/weir-run/weir/engine/service"
	"github.com/weir-run/weir/engine/tap"
)

const (
	// maxPlayRequest is the maximum size of a request to the playground.
	maxPlayRequest = 1 << 20
	// maxPlayEvents is the maximum number of records that are shown of a result.
	maxPlayEvents = 500
	// maxPlayTargets is the maximum number of targets of a node with which an editor begins.
	maxPlayTargets = 100
)

// PlaygroundStart is what an editor begins with. Secrets are masked.
type PlaygroundStart struct {
	File string `json:"file"` // of the config
	Line int    `json:"line"` // where the block begins
	Text string `json:"text"` // of the block
	// Metrics, Logs and Targets report what the node processes.
	Metrics bool `json:"metrics"`
	Logs    bool `json:"logs"`
	Targets bool `json:"targets"`
	// Input are targets of the node, one JSON object in each line. The last batch of a
	// node is at /api/v0/batch/{id}.
	Input string `json:"input"`
}

// PlaygroundRequest is a block and what a copy of its node processes: at least one of the
// other fields.
type PlaygroundRequest struct {
	Text string `json:"text"` // of the block
	tap.Pasted
	// Targets has a target in each line, as a JSON object with its labels.
	Targets string `json:"targets,omitempty"`
}

// PlaygroundResult is what the copy made of the input. Secrets are masked.
type PlaygroundResult struct {
	Records int     `json:"records"` // of the input
	Seconds float64 `json:"seconds"` // that the copy took to process them
	// Events are the differences between the input and the output, in the format of
	// /api/v0/tap/{id}. Records that were changed or dropped have also the fields steps and
	// reason, as in /api/v0/why/{id}; so have records with steps that are unchanged, such as
	// those of a route, with the kind unchanged.
	Events []json.RawMessage `json:"events"`
	Errors []PlaygroundError `json:"errors,omitempty"`
	Log    string            `json:"log,omitempty"` // lines that the copy logged
}

// PlaygroundError is an error of the block or of its input.
type PlaygroundError struct {
	Input   bool   `json:"input,omitempty"`  // whether the error is in the input
	Line    int    `json:"line,omitempty"`   // starts at 1; 0 if it is unknown
	Column  int    `json:"column,omitempty"` // starts at 1; 0 if it is unknown
	Message string `json:"message"`
}

// servePlaygroundBlock returns the block of a node.
func servePlaygroundBlock(host service.Host, w nethttp.ResponseWriter, r *nethttp.Request) {
	id := r.PathValue("id")
	b, ok := host.PlaygroundBlock(id)
	if !ok {
		noPlayground(w, id)
		return
	}
	start := PlaygroundStart{File: b.File, Line: b.Line, Text: tap.MaskText(b.Text, secretsOf(host)), Metrics: b.Metrics, Logs: b.Logs, Targets: b.Targets}
	if i, ok := find(host, id); ok && b.Targets {
		targets := targetsIn(i.Arguments, "targets")
		var lines strings.Builder
		for _, t := range targets[:min(len(targets), maxPlayTargets)] {
			line, err := json.Marshal(t)
			if err != nil {
				continue // a map of strings
			}
			lines.Write(append(line, '\n'))
		}
		start.Input = tap.MaskText(lines.String(), secretsOf(host))
	}
	writeJSON(w, start)
}

func noPlayground(w nethttp.ResponseWriter, id string) {
	nethttp.Error(w, fmt.Sprintf("there is no node %s with a playground: its component must only transform records or targets", id), nethttp.StatusNotFound)
}

// servePlay runs a copy of a node with another text of its block.
func servePlay(host service.Host, w nethttp.ResponseWriter, r *nethttp.Request) {
	id := r.PathValue("id")
	if _, ok := host.PlaygroundBlock(id); !ok {
		noPlayground(w, id)
		return
	}
	var req PlaygroundRequest
	if err := json.NewDecoder(nethttp.MaxBytesReader(w, r.Body, maxPlayRequest)).Decode(&req); err != nil {
		nethttp.Error(w, fmt.Sprintf("cannot read the request: %v", err), nethttp.StatusBadRequest)
		return
	}
	secrets := secretsOf(host)
	res := PlaygroundResult{Events: []json.RawMessage{}}
	in, err := req.input(host.Overview().Time)
	if err != nil {
		res.Errors = playErrors(err, secrets)
		for i := range res.Errors {
			res.Errors[i].Input = true
		}
		writeJSON(w, res)
		return
	}
	out, err := host.Play(r.Context(), id, req.Text, in)
	if err != nil {
		res.Errors = playErrors(err, secrets)
	} else {
		res.Records = in.Records.Len() + len(in.Targets)
		res.Seconds = out.Took.Seconds()
		res.Events = playEvents(in, out, secrets)
	}
	res.Log = tap.MaskText(out.Log, secrets)
	writeJSON(w, res)
}

// input parses the records of a request. now is their time unless they have one.
func (req PlaygroundRequest) input(now time.Time) (in service.PlaygroundInput, err error) {
	if in.Records, err = req.Parse(now); err != nil {
		return in, err
	}
	in.Targets, err = parseTargets(req.Targets)
	return in, err
}

// parseTargets reads targets, one JSON object in each line.
func parseTargets(text string) (out []map[string]string, err error) {
	lines := bufio.NewScanner(strings.NewReader(text))
	lines.Buffer(nil, maxPlayRequest)
	for n := 1; lines.Scan(); n++ {
		if strings.TrimSpace(lines.Text()) == "" {
			continue
		}
		var t map[string]string
		if err := json.Unmarshal(lines.Bytes(), &t); err != nil || t == nil {
			return nil, &batch.SyntaxError{Line: n, Msg: `a target is a JSON object with its labels, such as {"__address__": "10.1.0.1:9100"}`}
		}
		out = append(out, t)
	}
	return out, lines.Err()
}

// playErrors returns the errors in err, with their positions.
func playErrors(err error, secrets []string) (out []PlaygroundError) {
	add := func(e PlaygroundError) {
		e.Message = tap.MaskText(e.Message, secrets)
		out = append(out, e)
	}
	if syntax, ok := errors.AsType[*batch.SyntaxError](err); ok {
		add(PlaygroundError{Line: syntax.Line, Column: syntax.Col, Message: syntax.Msg})
		return out
	}
	ds, ok := errors.AsType[config.Diagnostics](err)
	if !ok {
		add(PlaygroundError{Message: err.Error()})
		return out
	}
	for _, d := range ds {
		if d.Severity == config.Error {
			at := d.Span
			d.Span = config.Span{}
			add(PlaygroundError{Line: at.Line, Column: at.Col, Message: d.Error()})
		}
	}
	return out
}

// playEvents returns the differences between the input and the output of a copy.
func playEvents(in service.PlaygroundInput, out service.PlaygroundOutput, secrets []string) []json.RawMessage {
	p, err := tap.New(tap.Options{Side: flow.Calls, Format: "json", Limit: maxPlayEvents})
	if err != nil {
		panic("BUG: " + err.Error())
	}
	p.Mask(secrets)
	events := []json.RawMessage{}
	add := func(lines []byte) {
		for line := range bytes.Lines(lines) {
			events = append(events, bytes.TrimSpace(line))
		}
	}
	if in.Records.Len()+out.Records.Len() > 0 {
		add(p.AppendExplained(nil, flow.Tapped{In: in.Records, Out: out.Records, Time: time.Now()}, out.Steps))
	}
	for i, r := range out.Targets {
		call := flow.Tapped{In: component.TargetRecord(in.Targets[i]), Time: time.Now()}
		if r.After != nil {
			call.Out = component.TargetRecord(r.After)
		}
		add(p.AppendExplained(nil, call, [][]component.Step{r.Steps}))
	}
	add(p.Tick(nil))
	if len(out.Targets) == 0 {
		return events
	}
	for i, e := range events {
		events[i] = targetEvent(e)
	}
	return events
}

// targetEvent returns an event without what a target does not have.
func targetEvent(e json.RawMessage) json.RawMessage {
	var all map[string]any
	if json.Unmarshal(e, &all) != nil {
		return e
	}
	steps, _ := all["steps"].([]any)
	for _, of := range append(steps, all) {
		of, _ := of.(map[string]any)
		for _, name := range []string{"record", "becomes", "before", "after"} {
			if r, ok := of[name].(map[string]any); ok {
				maps.DeleteFunc(r, func(key string, _ any) bool { return key != "labels" })
			}
		}
	}
	short, err := json.Marshal(all)
	if err != nil {
		return e
	}
	return short
}

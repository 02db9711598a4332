package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/weir-run/weir/engine/api"
	"github.com/weir-run/weir/engine/service"
	"github.com/weir-run/weir/scripting/scripttest"
)

const (
	// maxRecordedCalls and maxRecordedSeconds limit a recording over the API.
	maxRecordedCalls   = 100
	maxRecordedSeconds = 60
	// maxRecordedBytes is the maximum size of the calls. The test has its own limit.
	maxRecordedBytes = 4 << 20
	// testSeconds is how long the test may take to run.
	testSeconds = 30
)

// RecordingRequest describes a recording. All fields are optional.
type RecordingRequest struct {
	Calls   int `json:"calls,omitempty"`   // that are recorded, from 1 to 100; 5 by default
	Seconds int `json:"seconds,omitempty"` // after which the recording ends, from 1 to 60; 10 by default
	// Where is an expression that selects records of the input.
	Where string `json:"where,omitempty"`
	// Mask are labels whose values are replaced by pseudonyms.
	Mask []string `json:"mask,omitempty"`
	// Script is a text that the script has instead of the one on disk.
	Script string `json:"script,omitempty"`
	// Metrics and Logs are the input of a call, in the text form of batches. With one of
	// them, nothing is recorded: the test has this call, without the state of the node.
	Metrics string `json:"metrics,omitempty"`
	Logs    string `json:"logs,omitempty"`
}

// RecordingResult is a test that was recorded. It has passed.
type RecordingResult struct {
	Name string `json:"name"` // for the file, in the folder of the script
	Text string `json:"text"`
	// Calls is the number of calls in the test.
	Calls int `json:"calls"`
	// Differ are the numbers of the calls for which the running node sent another output.
	// The test expects the output of the script when it was replayed.
	Differ []int    `json:"differ,omitempty"`
	Notes  []string `json:"notes,omitempty"` // such as the number of records that were left out
}

var recordOperation = api.Operation{
	ID: "record", Records: true, Effect: api.Nothing, Summary: "Records calls of a script and returns a test, as `weir record` writes it, or writes a test with given input.",
	Text: "The recording ends when there are enough calls, or after the time; then the test has the calls until then. Secrets are masked. " +
		"With `metrics` or `logs`, the test has one call with this input instead. " +
		"The test runs before it is returned, with the scripts on disk or the text `script`, and it passes. A request with PUT for `/api/v0/control/{node}/source` writes it to disk.",
	Body: RecordingRequest{},
	Answers: []api.Answer{
		api.OK("The test.", RecordingResult{}),
		api.Refused(http.StatusBadRequest, "The request is invalid."),
		api.NotFound,
		api.Refused(http.StatusConflict, "The node cannot be recorded: it does not run a script, its script is a source or a sink, has several outputs or contains an error, or the node is being recorded already."),
		api.Refused(http.StatusUnprocessableEntity, "There is no test: no call came within the time, the records are too large or invalid, or the output of the script differs from run to run."),
		api.Refused(http.StatusServiceUnavailable, "10 taps run already, or weir is starting."),
	},
}

// serveRecording records calls of a node and returns a test.
func (c *commandAPI) serveRecording(_ service.Host, w http.ResponseWriter, r *http.Request) {
	var req RecordingRequest
	err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 1<<20)).Decode(&req)
	if err != nil && err != io.EOF {
		http.Error(w, fmt.Sprintf("cannot read the request: %v", err), http.StatusBadRequest)
		return
	}
	res, err := c.record(r.Context(), r.PathValue("id"), req)
	if refused, ok := errors.AsType[*refusedError](err); ok {
		http.Error(w, refused.text, refused.status)
		return
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusUnprocessableEntity)
		return
	}
	answerJSON(w, res)
}

// record records a test. The error is a *refusedError if there is no recording.
func (c *commandAPI) record(ctx context.Context, node string, req RecordingRequest) (res RecordingResult, err error) {
	if err := req.complete(); err != nil {
		return res, &refusedError{http.StatusBadRequest, err.Error()}
	}
	n, err := c.node(ctx, node)
	if err != nil {
		return res, err
	}
	recording, err := recordingOf(n, req.Where, req.Mask)
	options := recordingOptions(c.scripts)
	if req.Script != "" {
		options.Edited = map[string]string{n.Name: req.Script}
	}
	if err == nil {
		err = scripttest.CheckRecording(options, "", recording)
	}
	if err != nil {
		return res, &refusedError{http.StatusConflict, err.Error()}
	}
	if req.Metrics+req.Logs != "" {
		now := time.Now()
		recording.Calls = []scripttest.RecordedCall{{Began: now, Ended: now, In: req.Metrics + req.Logs, Given: true}}
	} else if res.Notes, err = c.recordCalls(ctx, req, &recording); err != nil {
		return res, err
	}
	c.testing.Lock()
	defer c.testing.Unlock()
	ctx, stop := context.WithTimeoutCause(ctx, testSeconds*time.Second, fmt.Errorf("the test took longer than %d seconds", testSeconds))
	defer stop()
	test, err := scripttest.Record(ctx, options, "", recording)
	res.Name, res.Text, res.Calls, res.Differ = test.Name, test.Text, len(recording.Calls), test.Differ
	return res, err
}

// recordCalls adds live calls to a recording.
func (c *commandAPI) recordCalls(ctx context.Context, req RecordingRequest, r *scripttest.Recording) (notes []string, err error) {
	within := time.Duration(req.Seconds) * time.Second
	rec := recorder{calls: req.Calls, note: func(_, text string) { notes = append(notes, text) }}
	rec.get = func(ctx context.Context, path string) (io.ReadCloser, error) {
		a, err := c.getUpTo(ctx, path, maxRecordedBytes)
		if err != nil && !isRefused(err) {
			err = fmt.Errorf("the records are too large: %w; record fewer calls, or select fewer records with an expression", err)
		}
		return a, err
	}
	waiting, stop := context.WithTimeout(ctx, within)
	err = rec.record(waiting, r)
	ended := waiting.Err() != nil
	stop()
	if err != nil && ended && len(r.Calls) == 0 {
		err = fmt.Errorf("%w within %s%s", err, within, notesOf(notes))
	}
	return notes, err
}

func isRefused(err error) bool {
	_, ok := errors.AsType[*refusedError](err)
	return ok
}

func notesOf(notes []string) string {
	if len(notes) == 0 {
		return ""
	}
	return ": " + strings.Join(slices.Compact(notes), "; ")
}

// complete checks the request and sets defaults.
func (req *RecordingRequest) complete() error {
	if req.Calls == 0 {
		req.Calls = 5
	}
	if req.Seconds == 0 {
		req.Seconds = 10
	}
	switch {
	case req.Calls < 1 || req.Calls > maxRecordedCalls:
		return fmt.Errorf("calls must be a number from 1 to %d, not %d", maxRecordedCalls, req.Calls)
	case req.Seconds < 1 || req.Seconds > maxRecordedSeconds:
		return fmt.Errorf("seconds must be a number from 1 to %d, not %d", maxRecordedSeconds, req.Seconds)
	case req.Metrics != "" && req.Logs != "":
		return errors.New("set metrics or logs, not both: a call has records of one kind")
	case req.Script != "" && req.Metrics+req.Logs == "":
		return errors.New("script needs metrics or logs: the running node does not run this text")
	}
	return nil
}

// node returns the status of a node.
func (c *commandAPI) node(ctx context.Context, id string) (n statusNode, err error) {
	answer, err := c.get(ctx, "/api/v0/status?"+url.Values{"node": {id}}.Encode())
	if err != nil {
		return n, err
	}
	var status struct {
		Components []statusNode `json:"components"`
	}
	if err := json.NewDecoder(answer).Decode(&status); err != nil {
		return n, fmt.Errorf("cannot read the status: %w", err)
	}
	at := slices.IndexFunc(status.Components, func(n statusNode) bool { return n.ID == id })
	if at < 0 {
		return n, &refusedError{http.StatusNotFound, "there is no node " + id}
	}
	return status.Components[at], nil
}

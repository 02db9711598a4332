package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/weir-run/weir/engine/api"
	"github.com/weir-run/weir/engine/config"
	"github.com/weir-run/weir/engine/control"
	"github.com/weir-run/weir/engine/service"
	weirhttp "github.com/weir-run/weir/engine/service/http"
)

// commandAPI serves what commands print, for the web UI.
type commandAPI struct {
	storage string       // directory
	build   Build        // of this program
	handler http.Handler // of the control socket; set before the first request

	scripts    string     // folder of scripts; set before the first request
	inspecting sync.Mutex // held while journals are read
	testing    sync.Mutex // held while a test runs: the CPU time of several would delay the data
}

// routes returns the routes; none if c is nil.
func (c *commandAPI) routes() []weirhttp.Route {
	if c == nil {
		return nil
	}
	return []weirhttp.Route{
		{Route: api.Route{Pattern: "GET /api/v0/build", Access: api.Credential, Operation: api.Operation{
			ID: "getBuild", Summary: "Returns the version of weir and the flags with which it runs.",
			Answers: []api.Answer{api.OK("The version and the flags.", Build{})},
		}}, Handler: c.serveBuild},
		{Route: api.Route{Pattern: "GET /api/v0/journals", Access: api.Credential, Operation: api.Operation{
			ID: "getJournals", Summary: "Reads all journals of the storage directory, as `weir journal stats` does.",
			Text:    "This reads everything that waits to be sent. The journals of nodes that were removed are included.",
			Answers: []api.Answer{api.OK("The journals.", Journals{})},
		}}, Handler: c.serveJournals},
		{Route: api.Route{Pattern: "GET /api/v0/support-bundle", Access: api.Credential, Operation: api.Operation{
			ID: "getSupportBundle", Records: true, Summary: "Returns a ZIP file with everything that helps to find a problem, as `weir support-bundle` writes it.",
			Params: []api.Param{{Name: "seconds", Type: "integer", Doc: "For how long to measure CPU time, from 1 to 30; 5 by default."}},
			Answers: []api.Answer{
				{Status: http.StatusOK, Doc: "The file. If something is missing, errors.txt in it has the reason.", Types: []string{"application/zip"}},
				api.Refused(http.StatusBadRequest, "A parameter is invalid."),
			},
		}}, Handler: c.serveBundle},
		{Route: api.Route{Pattern: "POST /api/v0/recording/{id...}", Access: api.Credential, Operation: recordOperation}, Handler: c.serveRecording},
	}
}

func (c *commandAPI) serveBuild(_ service.Host, w http.ResponseWriter, _ *http.Request) {
	answerJSON(w, c.build)
}

// Journals are the journals of a storage directory.
type Journals struct {
	Journals []journalReport `json:"journals"`
	// Error is why they could not be read.
	Error string `json:"error,omitempty"`
}

func (c *commandAPI) serveJournals(_ service.Host, w http.ResponseWriter, _ *http.Request) {
	c.inspecting.Lock()
	defer c.inspecting.Unlock()
	reports, err := inspectJournals(c.storage)
	j := Journals{Journals: append([]journalReport{}, reports...)}
	if err != nil {
		j.Error = err.Error()
	}
	answerJSON(w, j)
}

func (c *commandAPI) serveBundle(_ service.Host, w http.ResponseWriter, r *http.Request) {
	seconds := bundleSeconds
	if text := r.URL.Query().Get("seconds"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > 30 {
			http.Error(w, fmt.Sprintf("seconds must be a number from 1 to 30, not %q", text), http.StatusBadRequest)
			return
		}
		seconds = n
	}
	w.Header().Set("Content-Type", "application/zip")
	w.Header().Set("Content-Disposition", `attachment; filename="`+bundleName(time.Now())+`"`)
	_, _ = writeBundle(r.Context(), w, c.get, seconds) // what is missing is in the file; other errors are the client's, which has gone
}

// get is a getter that asks this process.
func (c *commandAPI) get(ctx context.Context, path string) (io.ReadCloser, error) {
	return c.getUpTo(ctx, path, 0)
}

// getUpTo is get with a limit of the answer, in bytes.
func (c *commandAPI) getUpTo(ctx context.Context, path string, limit int) (io.ReadCloser, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, control.URL(path), nil)
	if err != nil {
		return nil, fmt.Errorf("cannot ask weir: %w", err)
	}
	req.Header.Set("Accept", "text/plain")
	a := askHandler(c.handler, req, limit)
	switch {
	case a.status >= 300:
		return nil, &refusedError{a.status, config.Printable(strings.TrimSpace(a.body.String()))}
	case a.cut:
		return nil, fmt.Errorf("cannot read more than %d MiB", limit>>20)
	}
	return io.NopCloser(&a.body), nil
}

func answerJSON(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	_ = e.Encode(v) // the client has gone
}

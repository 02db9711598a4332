package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"mime"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/pb33f/libopenapi"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/weir-run/weir/docs"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/engine/api"
	"github.com/weir-run/weir/engine/clock"
	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/journal"
	"github.com/weir-run/weir/engine/service"
	"github.com/weir-run/weir/natives"
	"github.com/weir-run/weir/scripting/registry"
	"github.com/weir-run/weir/scripting/versions"
)

// apiConfig is the config of the engine whose responses are compared with the OpenAPI
// document. my.mark has all that a script can have.
const apiConfig = `
http {
  auth {
    basic {
      username = "ops"
      password = "s3cret-password"
    }
    filter {
      paths                       = ["/nothing"]
      authenticate_matching_paths = true
    }
  }
}

test.source "in" {
  forward_to = [my.mark.default.receiver, my.plain.default.receiver]
}

my.mark "default" {
  forward_to = [test.sink.out.receiver]

  script {
    on_error = "quarantine"

    canary {
      share = 0.999999999
      for   = "1h"
    }
  }
}

my.plain "default" {
  forward_to = [test.sink.out.receiver]
}

foreach "each" {
  collection = ["a"]
  var        = "x"

  template {
    my.plain "inner" {
      forward_to = [test.sink.out.receiver]
    }
  }
}

prometheus.relabel "rules" {
  forward_to = [test.sink.out.receiver]
}

prometheus.exporter.static "s" {
  text = "a 1\n"
}

test.sink "out" { }
`

func markScript(version string) string {
	return `local weir = require "weir"
return weir.transform {
  state = { seen = weir.state.map { max = 10 }, jobs = weir.state.queue { max = 10 } },
  metrics = function(batch, ctx)
    ctx.state.seen:set("k", 1)
    batch:each(function(m) if m.name == "bad" then error("bad record") end end)
    batch:set_label("v", "` + version + `")
  end,
}
`
}

const plainScript = `local weir = require "weir"
return weir.transform { metrics = function(batch) batch:set_label("v", "1") end }
`

// apiWeir is a weir that runs with apiConfig.
type apiWeir struct {
	t       *testing.T
	dir     string
	storage string
	http    interface {
		Handler() http.Handler
		Token() string
		PageURL() string
	}
	base    string // of the TCP port
	history interface{ Take(host service.Host) }
	source  *reloadSource
	socket  *httptest.Server
	e       *engine.Engine
	run     func() // starts the engine, which runs until the test ends
}

// newAPIWeir returns a weir that is starting: run starts it.
func newAPIWeir(t *testing.T) *apiWeir {
	t.Helper()
	w := &apiWeir{t: t, dir: t.TempDir(), storage: t.TempDir(), source: &reloadSource{}}
	w.save("config/main.alloy", apiConfig)
	w.save("scripts/my/mark.lua", markScript("1"))
	w.save("scripts/my/plain.lua", plainScript)
	services, err := newServices(port{listen: "127.0.0.1:0", api: &commandAPI{storage: w.storage, scripts: filepath.Join(w.dir, "scripts"), build: newBuild(w.storage, []Setting{{Name: "--x", SetBy: "flag"}})}, check: newChecker(filepath.Join(w.dir, "scripts"), w.storage, os.LookupEnv), catalogs: func() []component.Catalog { return []component.Catalog{component.NewList(natives.All()...)} }}, "", io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	log := services.telemetry.Logger()
	use := scriptsUse{log: log, versions: versions.Open(w.storage, versions.DefaultLimits, log), compilers: registry.NewCompilers(0)}
	catalogs, err := use.catalogs(filepath.Join(w.dir, "scripts"))
	if err != nil {
		t.Fatal(err)
	}
	w.e, err = engine.New(engine.Options{
		Catalogs: append(catalogs, component.NewList((&reloadSink{}).registration(), w.source.registration())), Scripts: use.imported,
		Services: services.all(), Logger: log, Registerer: services.telemetry.Registerer(), StoragePath: w.storage, Version: version, NoWatch: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	w.http, w.history = services.http, services.history
	w.socket = httptest.NewServer(services.http.Handler())
	t.Cleanup(w.socket.Close)
	ctx, cancel := context.WithCancel(context.Background())
	w.run = func() {
		done := make(chan error, 1)
		go func() { done <- w.e.Run(ctx, filepath.Join(w.dir, "config")) }()
		w.await("the start", func(ev service.ReloadEvent) bool {
			return ev.Reload != nil && ev.Reload.Trigger.Kind == service.TriggerStart
		})
		w.base = services.http.URL()
		t.Cleanup(func() {
			cancel()
			if err := <-done; err != nil {
				t.Error(err)
			}
		})
	}
	return w
}

// await waits for an event of reloads, also an earlier one.
func (w *apiWeir) await(what string, is func(service.ReloadEvent) bool) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), reloadPatience)
	defer cancel()
	for {
		events, more := w.e.ReloadEvents(0)
		if slices.ContainsFunc(events, is) {
			return
		}
		select {
		case <-more:
		case <-ctx.Done():
			w.t.Fatalf("there is no event of %s", what)
		}
	}
}

func (w *apiWeir) save(path, text string) {
	w.t.Helper()
	path = filepath.Join(w.dir, filepath.FromSlash(path))
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		w.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		w.t.Fatal(err)
	}
}

// send sends samples through the graph.
func (w *apiWeir) send(text string) {
	w.t.Helper()
	if err := w.source.send(text); err != nil {
		w.t.Fatal(err)
	}
}

// apiDocument is the OpenAPI document as its readers see it.
type apiDocument struct {
	Paths      map[string]map[string]apiOperation
	Components struct {
		Responses map[string]apiResponse
	}
	compiler *jsonschema.Compiler
}

type apiOperation struct {
	OperationID string
	Security    []any
	Responses   map[string]apiResponse
}

type apiResponse struct {
	Ref     string `json:"$ref"`
	Content map[string]struct {
		Schema any
		Line   any            `json:"x-line"`
		Events map[string]any `json:"x-events"`
	}
}

// readAPIDocument returns the document. Its schemas allow no other fields than those
// that they name, so that a field without a description is noticed.
func readAPIDocument(t *testing.T) *apiDocument {
	t.Helper()
	d := &apiDocument{compiler: jsonschema.NewCompiler()}
	if err := json.Unmarshal(docs.OpenAPI(), d); err != nil {
		t.Fatal(err)
	}
	all, err := jsonschema.UnmarshalJSON(bytes.NewReader(docs.OpenAPI()))
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range all.(map[string]any)["components"].(map[string]any)["schemas"].(map[string]any) {
		s.(map[string]any)["additionalProperties"] = false
	}
	d.compiler.AssertFormat()
	if err := d.compiler.AddResource("weir.json", all); err != nil {
		t.Fatal(err)
	}
	return d
}

// check returns why a value does not match the schema at a JSON pointer.
func (d *apiDocument) check(pointer string, text []byte) error {
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return err
	}
	s, err := d.compiler.Compile("weir.json#" + pointer)
	if err != nil {
		return err
	}
	return s.Validate(v)
}

func pointer(parts ...string) string {
	var b strings.Builder
	for _, p := range parts {
		b.WriteString("/" + strings.NewReplacer("~", "~0", "/", "~1", "{", "%7B", "}", "%7D").Replace(p))
	}
	return b.String()
}

// apiCall is a request to a route, with the status that its response has.
type apiCall struct {
	route  string // method and path in the document
	path   string // with its parameters; "" for that of the route
	status int
	header map[string]string
	body   string
	via    string // the base URL; "" for the socket
	or     int    // another status that it may have
	// follow is called when the response has begun. next reads an event or a line, and
	// returns "" at the end; it is nil for other responses.
	follow func(next func() string)
}

// call makes a request, compares the response with the document, and returns its body.
func (d *apiDocument) call(t *testing.T, w *apiWeir, c apiCall) []byte {
	t.Helper()
	method, path, _ := strings.Cut(c.route, " ")
	base, target := c.via, c.path
	if base == "" {
		base = w.socket.URL
	}
	if target == "" {
		target = path
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, base+target, strings.NewReader(c.body))
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range c.header {
		req.Header.Set(name, value)
	}
	tr := &http.Transport{}
	defer tr.CloseIdleConnections()
	res, err := tr.RoundTrip(req)
	if err != nil {
		t.Errorf("%s: %v", c.route, err)
		return nil
	}
	defer res.Body.Close()
	id := fmt.Sprintf("%s %s: status %d", method, target, res.StatusCode)
	if res.StatusCode == c.or {
		c.status = c.or
	}
	if res.StatusCode != c.status {
		text, _ := io.ReadAll(io.LimitReader(res.Body, 4<<10))
		t.Errorf("%s, want %d: %s", id, c.status, text)
		return nil
	}
	at := pointer("paths", path, strings.ToLower(method), "responses", strconv.Itoa(c.status))
	described, ok := d.Paths[path][strings.ToLower(method)].Responses[strconv.Itoa(c.status)]
	if !ok {
		t.Errorf("%s is not in the document", id)
		return nil
	}
	if name, ok := strings.CutPrefix(described.Ref, "#/components/responses/"); ok {
		at, described = pointer("components", "responses", name), d.Components.Responses[name]
	}
	if len(described.Content) == 0 {
		if text, _ := io.ReadAll(res.Body); len(text) > 0 {
			t.Errorf("%s has the body %q, and the document describes none", id, text)
		}
		return nil
	}
	kind, _, err := mime.ParseMediaType(res.Header.Get("Content-Type"))
	if err != nil {
		t.Errorf("%s: Content-Type: %v", id, err)
		return nil
	}
	content, ok := described.Content[kind]
	if _, any := described.Content["*/*"]; !ok && !any {
		t.Errorf("%s is %s, and the document describes other media types", id, kind)
		return nil
	}
	at += pointer("content", kind)
	switch {
	case content.Events != nil:
		lines := bufio.NewScanner(res.Body)
		c.follow(func() string {
			name := ""
			for lines.Scan() {
				if n, ok := strings.CutPrefix(lines.Text(), "event: "); ok {
					name = n
				}
				if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
					if err := d.check(at+pointer("x-events", name), []byte(data)); err != nil {
						t.Errorf("%s: event %s: %v\n%s", id, name, err, data)
					}
					return name
				}
			}
			return ""
		})
		return nil
	case content.Line != nil:
		lines := bufio.NewScanner(res.Body)
		next := func() string {
			if !lines.Scan() {
				return ""
			}
			if err := d.check(at+pointer("x-line"), lines.Bytes()); err != nil {
				t.Errorf("%s: %v\n%s", id, err, lines.Bytes())
			}
			return lines.Text()
		}
		if c.follow != nil {
			c.follow(next)
		}
		for next() != "" {
		}
		return nil
	}
	if c.follow != nil {
		c.follow(nil)
	}
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Errorf("%s: %v", id, err)
	}
	if kind == api.JSON {
		if err := d.check(at+pointer("schema"), text); err != nil {
			t.Errorf("%s: %v\n%s", id, err, text)
		}
	}
	return text
}

// TestAPIDescribesAllRoutes: only the pages of the web UI, the profiles of Go and the
// prefix of the routes of components are not described.
func TestAPIDescribesAllRoutes(t *testing.T) {
	undescribed := []string{"GET /{$}", "GET /ui/{file}", "/api/v0/control/{path...}"}
	ids := map[string]string{}
	for _, r := range apiRoutes() {
		switch {
		case r.Summary != "" && r.ID == "":
			t.Errorf("%s has no operationId", r.Pattern)
		case r.Summary != "" && ids[r.ID] != "":
			t.Errorf("%s and %s have the operationId %s", r.Pattern, ids[r.ID], r.ID)
		case r.Summary != "" && (!strings.HasSuffix(r.Summary, ".") || len(r.Answers) == 0):
			t.Errorf("%s: its summary is no sentence, or it has no responses", r.Pattern)
		case r.Summary == "" && !slices.Contains(undescribed, r.Pattern) && !strings.Contains(r.Pattern, "/debug/pprof/"):
			t.Errorf("%s is not described", r.Pattern)
		}
		ids[r.ID] = r.Pattern
	}
}

// TestAPIEffects: requests that change something are audited and can be refused. Only these routes
// change nothing although their method is not GET, or change something although it is. Whoever
// adds a route to a list must be sure of it.
func TestAPIEffects(t *testing.T) {
	var harmless, changing, writing, records []string
	for _, r := range apiRoutes() {
		method, path := r.Split()
		get := method == http.MethodGet
		switch changes := r.Changes(method); {
		case method == "": // of components
		case changes && get:
			changing = append(changing, path)
		case !changes && !get:
			harmless = append(harmless, path)
		}
		if r.Writes {
			writing = append(writing, path)
		}
		if r.Records && get {
			records = append(records, path)
		}
	}
	f := func(what string, got []string, want ...string) {
		t.Helper()
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got)\n%s", what, diff)
		}
	}
	f("change nothing", harmless, "/-/reload/preview", "/api/v0/control/{node}/playground", "/api/v0/control/{node}/tests", "/api/v0/playground/{id...}", "/api/v0/recording/{id...}", "/debug/pprof/symbol")
	f("change something by GET", changing, "/-/page")
	f("write files", writing, "/api/v0/control/{node}/source")
	const control = "/api/v0/control/{node}/"
	f("show records", records, "/api/v0/batch/{id...}", control+"quarantine", control+"quarantine/{entry}", control+"state", control+"state-export", control+"state-export/{name}",
		control+"state/{name}", "/api/v0/log", "/api/v0/playground/{id...}", "/api/v0/support-bundle", "/api/v0/tap/{id...}", "/api/v0/why/{id...}")
}

// TestAPIDocument: another implementation of OpenAPI can read the document.
func TestAPIDocument(t *testing.T) {
	d, err := libopenapi.NewDocument(docs.OpenAPI())
	if err != nil {
		t.Fatal(err)
	}
	m, err := d.BuildV3Model()
	if err != nil {
		t.Fatal(err)
	}
	if n := m.Model.Paths.PathItems.Len(); n < 20 || !strings.HasPrefix(d.GetVersion(), "3.1") {
		t.Errorf("got version %s with %d paths", d.GetVersion(), n)
	}
}

// TestAPIConforms compares the responses of a running weir with the document, for every
// route and every status.
func TestAPIConforms(t *testing.T) {
	d, w := readAPIDocument(t), newAPIWeir(t)
	seen := map[string]bool{}
	call := func(c apiCall) []byte {
		t.Helper()
		seen[fmt.Sprint(c.route, " ", c.status)], seen[fmt.Sprint(c.route, " ", c.or)] = true, true
		return d.call(t, w, c)
	}
	concrete := func(path string) string {
		return strings.NewReplacer("{id}", "n", "{node}", "n", "{name}", "x", "{decision}", "promote", "{path}", "n/x").Replace(path)
	}
	json := map[string]string{"Accept": "application/json"}
	each := func(status int, f func(route, path string)) {
		for path, methods := range d.Paths {
			for method, op := range methods {
				if op.Responses[strconv.Itoa(status)].Ref != "" {
					f(strings.ToUpper(method)+" "+path, concrete(path))
				}
			}
		}
	}
	starting := []apiCall{}
	for _, route := range []string{"GET /api/v0/events", "GET /api/v0/reloads/events", "GET /api/v0/tap/{id}", "GET /api/v0/top", "GET /api/v0/why/{id}", "GET /api/v0/component/{path}", "POST /api/v0/component/{path}", "POST /-/reload", "POST /-/reload/preview", "POST /api/v0/recording/{id}", "GET /api/v0/config", "GET /api/v0/config/check", "GET /-/ready"} {
		_, path, _ := strings.Cut(route, " ")
		starting = append(starting, apiCall{route: route, path: concrete(path), status: 503})
	}
	// weir is starting.
	each(503, func(route, path string) {
		call(apiCall{route: route, path: path, status: 503})
		call(apiCall{route: route, path: path, status: 503, header: json})
	})
	for _, c := range starting {
		call(c)
	}
	w.run()

	// Callers without access.
	each(401, func(route, path string) {
		if d.reduced(route) {
			seen[route+" 401"] = true // only a login is refused with it, which the filter of paths exempts
			return
		}
		call(apiCall{route: route, path: path, status: 401, via: w.base})
		call(apiCall{route: route, path: path, status: 401, via: w.base, header: json})
	})
	each(403, func(route, path string) {
		h := map[string]string{"Accept": "application/json", "Origin": "http://evil.example", "Authorization": "Bearer " + w.http.Token()}
		call(apiCall{route: route, path: path, status: 403, via: w.base, header: h})
	})
	call(apiCall{route: "POST /api/v0/component/{path}", path: "/api/v0/component/n/x", status: 403, via: w.base, header: map[string]string{"Origin": "http://evil.example"}})
	call(apiCall{route: "GET /-/page", path: "/-/page?token=x", status: 401, via: w.base})
	seen["GET /-/page 403"] = true // needs a connection from another machine: TestPlaintext of engine/service/http
	for range 30 {
		req, _ := http.NewRequestWithContext(t.Context(), "GET", w.base+"/api/v0/reloads", nil)
		req.SetBasicAuth("ops", "wrong")
		res, err := http.DefaultTransport.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
	}
	http.DefaultTransport.(*http.Transport).CloseIdleConnections()
	each(429, func(route, path string) {
		if d.reduced(route) {
			seen[route+" 429"] = true // as above
			return
		}
		call(apiCall{route: route, path: path, status: 429, via: w.base, header: map[string]string{"Accept": "application/json", "Authorization": "Basic b3BzOndyb25n"}})
	})

	call(apiCall{route: "GET /-/healthy", status: 200})
	call(apiCall{route: "GET /-/healthy", status: 200, header: json})
	w.send("m 1\n")
	w.send("bad 1\n")
	w.apiCalls(d, call)
	seen["POST /api/v0/component/{path} 200"] = true // it is a response of a component
	seen["GET /api/v0/audit 404"] = true             // not with newServices: TestAudit of engine/service/http
	w.withoutPort(func() { call(apiCall{route: "POST /-/page", status: 404, header: json}) })

	for path, methods := range d.Paths {
		for method, op := range methods {
			for status := range op.Responses {
				if key := strings.ToUpper(method) + " " + path + " " + status; !seen[key] {
					t.Errorf("no request of this test has the response %s", key)
				}
			}
		}
	}
}

// reduced reports whether a route answers everyone.
func (d *apiDocument) reduced(route string) bool {
	method, path, _ := strings.Cut(route, " ")
	security := d.Paths[path][strings.ToLower(method)].Security
	return len(security) > 0 && len(security[0].(map[string]any)) == 0
}

// apiCalls makes a request for each response that does not follow from the access.
func (w *apiWeir) apiCalls(d *apiDocument, call func(apiCall) []byte) {
	json := map[string]string{"Accept": "application/json"}
	const mark = "/api/v0/control/my.mark.default"
	get := func(route, path string, statuses ...int) {
		w.t.Helper()
		for _, status := range statuses {
			call(apiCall{route: route, path: path, status: status})
			call(apiCall{route: route, path: path, status: status, header: json})
		}
	}
	get("GET /-/ready", "", 200)
	call(apiCall{route: "GET /metrics", status: 200})
	call(apiCall{route: "GET /metrics", status: 200, header: map[string]string{"Accept": "application/openmetrics-text"}})
	get("POST /-/page", "", 200)
	link := string(call(apiCall{route: "POST /-/page", status: 200}))
	_, token, _ := strings.Cut(strings.TrimSpace(link), "token=")
	call(apiCall{route: "GET /-/page", path: "/-/page?token=" + token, status: 303, via: w.base})
	w.session(func(base, cookie string) {
		call(apiCall{route: "GET /api/v0/status", status: 200, via: base, header: map[string]string{"Cookie": cookie}})
		call(apiCall{route: "GET /api/v0/component/{path}", path: "/api/v0/component/prometheus.exporter.static.s/metrics", status: 403, via: base, header: map[string]string{"Cookie": cookie}})
		call(apiCall{route: "POST /-/reload/preview", path: "/-/reload/preview?config=/etc", status: 403, via: base, header: map[string]string{"Cookie": cookie, "Accept": "application/json"}})
	})
	get("GET /api/v0/openapi.json", "", 200)
	get("GET /api/v0/status", "", 200)
	call(apiCall{route: "GET /api/v0/status", status: 200, via: w.base})
	get("GET /api/v0/status", "/api/v0/status?node=my.mark.default&node=http", 200)
	get("GET /api/v0/status", "/api/v0/status?"+strings.Repeat("node=x&", 101), 400)
	w.history.Take(w.e)
	w.history.Take(w.e)
	get("GET /api/v0/audit", "", 200)
	for _, of := range []string{"", "/check"} {
		text := call(apiCall{route: "GET /api/v0/config" + of, status: 200})
		if !bytes.Contains(text, []byte("my.mark")) || bytes.Contains(text, []byte("s3cret-password")) {
			w.t.Errorf("the config%s is not the text of the config without its secret: %s", of, text)
		}
	}
	call(apiCall{route: "GET /api/v0/config", status: 200, header: map[string]string{"Accept": "text/plain"}})
	get("GET /api/v0/log", "", 200)
	get("GET /api/v0/graph", "", 200)
	get("GET /api/v0/docs", "/api/v0/docs?search=journal", 200)
	get("GET /api/v0/docs/{page}", "/api/v0/docs/reference/components", 200)
	get("GET /api/v0/docs/{page}", "/api/v0/docs/nowhere", 404)
	get("GET /api/v0/manual/{name}", "/api/v0/manual/prometheus.scrape", 200)
	get("GET /api/v0/manual/{name}", "/api/v0/manual/no.such", 404)
	get("GET /api/v0/completions/{of}", "/api/v0/completions/js", 200)
	get("GET /api/v0/completions/{of}", "/api/v0/completions/no.such", 404)
	get("GET /api/v0/history", "/api/v0/history?node=my.mark.default", 200)
	get("GET /api/v0/history", "/api/v0/history?since=x", 400)
	get("GET /api/v0/history", "/api/v0/history?node=nowhere", 404)
	get("GET /api/v0/reloads", "", 200)
	get("GET /api/v0/build", "", 200)
	get("GET /api/v0/journals", "", 200) // there is no storage directory
	w.journal()
	if text := call(apiCall{route: "GET /api/v0/journals", status: 200}); !bytes.Contains(text, []byte(`"pending_samples": 0`)) {
		w.t.Errorf("got no journal: %s", text)
	}
	call(apiCall{route: "GET /api/v0/support-bundle", path: "/api/v0/support-bundle?seconds=1", status: 200})
	get("GET /api/v0/support-bundle", "/api/v0/support-bundle?seconds=60", 400)
	get("GET /api/v0/batch/{id}", "/api/v0/batch/my.mark.default?of=in", 200)
	get("GET /api/v0/batch/{id}", "/api/v0/batch/my.mark.default?of=up", 400)
	get("GET /api/v0/batch/{id}", "/api/v0/batch/nowhere", 404)
	get("GET /api/v0/playground/{id}", "/api/v0/playground/prometheus.relabel.rules", 200)
	get("GET /api/v0/playground/{id}", "/api/v0/playground/my.mark.default", 404)
	const playBlock, rules = "POST /api/v0/playground/{id}", "/api/v0/playground/prometheus.relabel.rules"
	call(apiCall{route: playBlock, path: rules, status: 200, body: `{"text":"prometheus.relabel \"rules\" { forward_to = [] }","metrics":"m 1\n"}`})
	call(apiCall{route: playBlock, path: rules, status: 200, body: `{"text":"prometheus.relabel \"rules\" {","metrics":"m 1\n"}`})
	call(apiCall{route: playBlock, path: rules, status: 400, body: "{", header: json})
	call(apiCall{route: playBlock, path: "/api/v0/playground/nowhere", status: 404, header: json})
	get("GET /api/v0/component/{path}", "/api/v0/component/prometheus.exporter.static.s/metrics", 200)
	get("GET /api/v0/component/{path}", "/api/v0/component/nowhere/metrics", 404)
	get("POST /api/v0/component/{path}", "/api/v0/component/nowhere/metrics", 404)

	// Streams.
	call(apiCall{route: "GET /api/v0/tap/{id}", path: "/api/v0/tap/my.mark.default?side=up", status: 400})
	call(apiCall{route: "GET /api/v0/tap/{id}", path: "/api/v0/tap/nowhere", status: 404, header: json})
	for _, side := range []string{"in", "diff"} {
		call(apiCall{route: "GET /api/v0/tap/{id}", path: "/api/v0/tap/my.mark.default?format=json&limit=1&side=" + side, status: 200, follow: func(func() string) {
			w.send("m 1\n")
		}})
	}
	call(apiCall{route: "GET /api/v0/tap/{id}", path: "/api/v0/tap/my.mark.default?limit=1&side=in", status: 200, follow: func(func() string) { w.send("m 1\n") }})
	call(apiCall{route: "GET /api/v0/events", status: 200, follow: func(next func() string) {
		for i, want := range []string{"status", "change"} {
			if name := next(); name != want {
				w.t.Errorf("got event %q, want %q", name, want)
			}
			if i == 0 {
				w.send("bad 1\n")
				w.history.Take(w.e)
			}
		}
	}})
	call(apiCall{route: "GET /api/v0/why/{id}", path: "/api/v0/why/my.mark.default?where=value", status: 400})
	call(apiCall{route: "GET /api/v0/why/{id}", path: "/api/v0/why/nowhere?where=true", status: 404, header: json})
	call(apiCall{route: "GET /api/v0/why/{id}", path: "/api/v0/why/*?where=true&targets=true", status: 200, follow: func(func() string) {}})
	call(apiCall{route: "GET /api/v0/why/{id}", path: "/api/v0/why/my.mark.default?where=true&limit=1", status: 200, follow: func(func() string) { w.send("m 1\n") }})
	w.recordings(call)
	get("GET /api/v0/top", "/api/v0/top?lines=1", 200)
	get("GET /api/v0/top", "/api/v0/top?interval=x", 400)
	call(apiCall{route: "GET /api/v0/reloads/events", status: 200, header: map[string]string{"Last-Event-ID": "0-0"}, follow: func(next func() string) {
		if name := next(); name != "reload" && name != "step" {
			w.t.Errorf("got event %q", name)
		}
	}})

	// State.
	get("GET /api/v0/control/{node}/state", mark+"/state", 200)
	get("GET /api/v0/control/{node}/state", "/api/v0/control/nowhere/state", 404)
	get("GET /api/v0/control/{node}/state/{name}", mark+"/state/seen", 200)
	get("GET /api/v0/control/{node}/state/{name}", mark+"/state/jobs?key=k", 400)
	get("GET /api/v0/control/{node}/state/{name}", mark+"/state/nothing", 404)
	get("GET /api/v0/control/{node}/state-export", mark+"/state-export", 200)
	get("GET /api/v0/control/{node}/state-export", "/api/v0/control/nowhere/state-export", 404)
	get("GET /api/v0/control/{node}/state-export/{name}", mark+"/state-export/seen", 200)
	get("GET /api/v0/control/{node}/state-export/{name}", mark+"/state-export/nothing", 404)
	get("PUT /api/v0/control/{node}/state/{name}", mark+"/state/seen?key=k&value=2", 200)
	get("PUT /api/v0/control/{node}/state/{name}", mark+"/state/seen?key=k&value=}", 400)
	get("PUT /api/v0/control/{node}/state/{name}", mark+"/state/nothing?key=k&value=1", 404)
	call(apiCall{route: "DELETE /api/v0/control/{node}/state/{name}", path: mark + "/state/seen?key=k", status: 200})
	get("DELETE /api/v0/control/{node}/state/{name}", mark+"/state/seen?key=gone", 404)

	// Quarantine.
	get("GET /api/v0/control/{node}/quarantine", mark+"/quarantine", 200)
	get("GET /api/v0/control/{node}/quarantine", "/api/v0/control/nowhere/quarantine", 404)
	get("GET /api/v0/control/{node}/quarantine/{entry}", mark+"/quarantine/1", 200)
	get("GET /api/v0/control/{node}/quarantine/{entry}", mark+"/quarantine/one", 400)
	get("GET /api/v0/control/{node}/quarantine/{entry}", mark+"/quarantine/99", 404)
	for _, what := range []string{"drop", "replay"} {
		route, path := "POST /api/v0/control/{node}/quarantine/"+what, mark+"/quarantine/"+what
		call(apiCall{route: route, path: path, status: 400, body: "{", header: json})
		call(apiCall{route: route, path: "/api/v0/control/nowhere/quarantine/" + what, status: 404, header: json})
	}
	const replay = "POST /api/v0/control/{node}/quarantine/replay"
	call(apiCall{route: replay, path: mark + "/quarantine/replay", status: 422, body: `{"with":{"Name":"x.lua","Source":"return ("}}`, header: json})
	call(apiCall{route: replay, path: mark + "/quarantine/replay", status: 200, body: `{}`})
	call(apiCall{route: "POST /api/v0/control/{node}/quarantine/drop", path: mark + "/quarantine/drop", status: 200, body: `{}`})

	// Versions.
	const plain = "/api/v0/control/my.plain.default"
	get("GET /api/v0/control/{node}/profile", mark+"/profile?seconds=0", 400)
	get("GET /api/v0/control/{node}/profile", "/api/v0/control/nowhere/profile", 404)
	w.profiles(d, call, mark+"/profile?seconds=1")
	get("GET /api/v0/control/{node}/profile", mark+"/profile?seconds=1&format=json", 200)
	w.runsTests(d, call, plain+"/tests")
	call(apiCall{route: "POST /api/v0/control/{node}/tests", path: "/api/v0/control/nowhere/tests", status: 404})
	w.debugs(call, mark+"/debug")
	get("POST /api/v0/control/{node}/debug", plain+"/debug", 200) // a client that disconnects at once
	get("POST /api/v0/control/{node}/debug", mark+"/debug?where=1+%2B", 400)
	get("POST /api/v0/control/{node}/debug", "/api/v0/control/nowhere/debug", 404)
	get("GET /api/v0/control/{node}/playground", mark+"/playground", 200)
	get("GET /api/v0/control/{node}/playground", "/api/v0/control/nowhere/playground", 404)
	const play = "POST /api/v0/control/{node}/playground"
	call(apiCall{route: play, path: plain + "/playground", status: 200, body: `{"text":"return (","metrics":"m 1\n"}`})
	call(apiCall{route: play, path: plain + "/playground", status: 400, body: "{", header: json})
	call(apiCall{route: play, path: "/api/v0/control/nowhere/playground", status: 404, header: json})
	const write, source = "PUT /api/v0/control/{node}/source", plain + "/source"
	call(apiCall{route: write, path: source, status: 400, body: "{", header: json})
	call(apiCall{route: write, path: "/api/v0/control/nowhere/source", status: 404, header: json})
	call(apiCall{route: write, path: source, status: 409, body: `{"text":"return 1","replaces":"x"}`})
	call(apiCall{route: write, path: source, status: 200, body: `{"text":"return 1","test":"plain_recorded_test.lua"}`})
	call(apiCall{route: write, path: source, status: 409, body: `{"text":"return 2","test":"plain_recorded_test.lua"}`})
	call(apiCall{route: write, path: source, status: 400, body: `{"text":"return 2","test":"../plain_test.lua"}`, header: json})
	call(apiCall{route: write, path: source, status: 403, via: w.base, header: map[string]string{"Authorization": "Bearer " + w.http.Token()}, body: `{"text":"return 1","replaces":"x"}`})
	call(apiCall{route: write, path: source, status: 200, body: fmt.Sprintf(`{"text":%q,"replaces":%q}`, plainScript, plainScript)})
	get("POST /-/reload", "", 200)
	w.save("scripts/my/plain.lua", strings.ReplaceAll(plainScript, `"1"`, `"2"`))
	call(apiCall{route: "POST /-/reload", status: 200, header: json})
	get("GET /api/v0/control/{node}/history", plain+"/history", 200)
	get("GET /api/v0/control/{node}/history", "/api/v0/control/nowhere/history", 404)
	get("GET /api/v0/control/{node}/history/diff", plain+"/history/diff", 200)
	get("GET /api/v0/control/{node}/history/diff", plain+"/history/diff?version=abcdef", 409)
	get("GET /api/v0/control/{node}/history/diff", "/api/v0/control/nowhere/history/diff", 404)
	get("POST /api/v0/control/{node}/unpin", plain+"/unpin", 409)
	get("POST /api/v0/control/{node}/unpin", "/api/v0/control/nowhere/unpin", 404)
	get("POST /api/v0/control/{node}/rollback", plain+"/rollback?version=abcdef", 409)
	get("POST /api/v0/control/{node}/rollback", "/api/v0/control/nowhere/rollback", 404)
	call(apiCall{route: "POST /api/v0/control/{node}/rollback", path: plain + "/rollback", status: 200})
	call(apiCall{route: "POST /api/v0/control/{node}/unpin", path: plain + "/unpin", status: 200})
	get("POST /api/v0/control/{node}/canary/{decision}", mark+"/canary/promote", 409)
	get("POST /api/v0/control/{node}/canary/{decision}", mark+"/canary/other", 404)
	w.save("scripts/my/mark.lua", markScript("2"))
	get("POST /-/reload/preview", "", 200)
	call(apiCall{route: "POST /-/reload", status: 200, header: json})
	w.await("a canary", func(ev service.ReloadEvent) bool { return ev.Trial != nil && ev.Trial.Step == component.StepCanary })
	// The event comes before the canary knows decisions.
	promote := apiCall{route: "POST /api/v0/control/{node}/canary/{decision}", path: mark + "/canary/promote", status: 200, or: 409}
	for text := call(promote); strings.HasPrefix(string(text), "there is no canary"); text = call(promote) {
		runtime.Gosched()
	}

	// Health, and refusals.
	w.save("scripts/my/plain.lua", "return (")
	get("POST /-/reload/preview", "/-/reload/preview?config="+filepath.Join(w.dir, "nothing"), 400)
	call(apiCall{route: "POST /-/reload", status: 200, header: json})
	get("GET /-/healthy", "", 503)
	get("GET /api/v0/status", "", 200)
	get("GET /api/v0/reloads", "", 200)
	w.save("config/main.alloy", "nonsense {")
	get("POST /-/reload", "", 400)
	get("GET /api/v0/status", "", 200)
}

// journal creates an empty journal in the storage directory.
func (w *apiWeir) journal() {
	w.t.Helper()
	j, err := journal.Open(filepath.Join(w.storage, "journal", "x"), journal.Options{Shards: 2, Owner: journal.Owner{Node: "loki.write.x"}, Clock: clock.System{}, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		w.t.Fatal(err)
	}
	if err := j.Close(); err != nil {
		w.t.Fatal(err)
	}
}

// recordings records calls of nodes.
func (w *apiWeir) recordings(call func(apiCall) []byte) {
	const route, plain = "POST /api/v0/recording/{id}", "/api/v0/recording/my.plain.default"
	refused := func(path string, status int, body, want string) {
		w.t.Helper()
		for _, header := range []map[string]string{nil, {"Accept": "application/json"}} {
			if text := call(apiCall{route: route, path: path, status: status, body: body, header: header}); !bytes.Contains(text, []byte(want)) {
				w.t.Errorf("got %s, want %q", text, want)
			}
		}
	}
	refused(plain, 400, "{", "cannot read the request")
	refused(plain, 400, `{"calls":101}`, "calls must be a number from 1 to 100, not 101")
	refused(plain, 400, `{"seconds":-1}`, "seconds must be a number from 1 to 60, not -1")
	refused(plain, 400, `{"where":"name =","seconds":1}`, "unexpected token")
	refused("/api/v0/recording/nowhere", 404, "", "there is no node nowhere")
	refused("/api/v0/recording/prometheus.relabel.rules", 409, "", "cannot record prometheus.relabel.rules: it does not run a script")
	refused(plain, 422, `{"seconds":1}`, "no call of my.plain.default was recorded within 1s")

	// The recorder sees calls from the moment at which there is a tap.
	sending := func(text string, do func()) {
		done, sent := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(sent)
			for {
				select {
				case <-done:
					return
				default:
					w.source.send(text) // a node that fails is another test
					runtime.Gosched()
				}
			}
		}()
		do()
		close(done)
		<-sent
	}
	var res RecordingResult
	sending("m 1\n", func() {
		text := call(apiCall{route: route, path: plain, status: 200, body: `{"calls":2}`})
		if err := json.Unmarshal(text, &res); err != nil || res.Calls != 2 || res.Name != "plain_recorded_test.lua" || !strings.Contains(res.Text, `m{v="1"} 1`) {
			w.t.Errorf("got the test %+v, %v", res, err)
		}
	})
	// In the playground.
	refused(plain, 400, `{"metrics":"m 1","logs":"{} x"}`, "set metrics or logs, not both")
	refused(plain, 400, `{"script":"return 1"}`, "script needs metrics or logs")
	refused(plain, 409, `{"script":"return (","metrics":"m 1"}`, "plain.lua:1")
	refused(plain, 422, `{"metrics":"m m m"}`, "cannot write a test of my.plain.default")
	edited, err := json.Marshal(RecordingRequest{Script: strings.ReplaceAll(plainScript, `"1"`, `"edited"`), Metrics: "m 1\n"})
	if err != nil {
		w.t.Fatal(err)
	}
	if text := call(apiCall{route: route, path: plain, status: 200, body: string(edited)}); !bytes.Contains(text, []byte(`m{v=\"edited\"} 1`)) {
		w.t.Errorf("got the test %s", text)
	}
	large := strings.Repeat("m 1\n", 1001)
	sending(large, func() { // the tap reports every second what it left out
		refused(plain, 422, `{"seconds":3}`, "records left out: ")
	})
}

// profiles profiles a node twice at the same time, of which one is refused.
func (w *apiWeir) profiles(d *apiDocument, call func(apiCall) []byte, path string) {
	w.twice(d, call, apiCall{route: "GET /api/v0/control/{node}/profile", path: path, status: 200, or: 409}, "somebody")
}

// runsTests runs the tests of a node twice at the same time, of which one is refused.
func (w *apiWeir) runsTests(d *apiDocument, call func(apiCall) []byte, path string) {
	const file = "scripts/my/plain_test.lua"
	w.save(file, `
local plain = weir.test.component("plain.lua")
it("sets v", function() assert.same({ "1" }, plain:metrics("up 1"):label_values("v")); print("set") end)
it("fails", function() assert.same(2, 1) end)
it("takes time", function() local t = 0; for i = 1, 2e6 do t = t + i end end)
`)
	w.twice(d, call, apiCall{route: "POST /api/v0/control/{node}/tests", path: path, status: 200, or: 409}, "the tests of")
	if audit := call(apiCall{route: "GET /api/v0/audit", status: 200}); bytes.Contains(audit, []byte("/tests")) {
		w.t.Errorf("a run of tests changes nothing and is audited: %s", audit)
	}
	if err := os.Remove(filepath.Join(w.dir, filepath.FromSlash(file))); err != nil { // a test fails
		w.t.Fatal(err)
	}
}

// twice makes a request twice at the same time, until one of them is refused with a text.
func (w *apiWeir) twice(d *apiDocument, call func(apiCall) []byte, c apiCall, refusal string) {
	refused := func(text []byte) bool { return bytes.HasPrefix(text, []byte(refusal)) }
	for {
		done := make(chan []byte, 1)
		go func() { done <- d.call(w.t, w, c) }()
		first := call(c)
		switch second := <-done; {
		case first == nil || second == nil:
			return // an error was reported
		case refused(first) != refused(second):
			return
		case refused(first):
			w.t.Errorf("%s: both are refused", c.route)
			return
		}
	}
}

// debugs begins a debug session of a node, so that another one is refused.
func (w *apiWeir) debugs(call func(apiCall) []byte, path string) {
	w.t.Helper()
	body, feed := io.Pipe()
	req, err := http.NewRequestWithContext(w.t.Context(), "POST", w.socket.URL+path, body)
	if err != nil {
		w.t.Fatal(err)
	}
	tr := &http.Transport{}
	defer tr.CloseIdleConnections()
	res, err := tr.RoundTrip(req)
	if err != nil {
		w.t.Fatal(err)
	}
	defer res.Body.Close()
	defer feed.Close()
	call(apiCall{route: "POST /api/v0/control/{node}/debug", path: path, status: 409})
}

// session starts a session and calls f with its base URL and its cookie.
func (w *apiWeir) session(f func(base, cookie string)) {
	w.t.Helper()
	req, err := http.NewRequestWithContext(w.t.Context(), "GET", w.http.PageURL(), nil)
	if err != nil {
		w.t.Fatal(err)
	}
	tr := &http.Transport{}
	defer tr.CloseIdleConnections()
	res, err := tr.RoundTrip(req)
	if err != nil {
		w.t.Fatal(err)
	}
	res.Body.Close()
	cookie, _, _ := strings.Cut(res.Header.Get("Set-Cookie"), ";")
	f(w.base+strings.TrimSuffix(res.Header.Get("Location"), "/"), cookie)
}

// withoutPort calls f while the socket is that of a weir that does not listen.
func (w *apiWeir) withoutPort(f func()) {
	w.t.Helper()
	services, err := newServices(port{}, "", io.Discard)
	if err != nil {
		w.t.Fatal(err)
	}
	if err := services.http.Update(services.http.Definition().NewConfig()); err != nil {
		w.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(w.t.Context())
	done := make(chan error, 1)
	go func() { done <- services.http.Run(ctx, w.e) }()
	handler, socket := services.http.Handler(), w.socket
	defer func() {
		w.socket = socket
		cancel()
		if err := <-done; err != nil {
			w.t.Error(err)
		}
	}()
	w.socket = httptest.NewServer(handler)
	defer w.socket.Close()
	for { // until the service knows the engine
		rec := httptest.NewRecorder()
		handler.ServeHTTP(rec, httptest.NewRequestWithContext(ctx, "GET", "/-/ready", nil))
		if rec.Body.String() != "weir is starting\n" {
			break
		}
		runtime.Gosched()
	}
	f()
}

package api_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-run/weir/engine/api"
)

type outer struct {
	inner
	Time  time.Time       `json:"time"`
	Next  *outer          `json:"next"`
	Maybe *int            `json:"maybe,omitempty"`
	Many  map[string]int  `json:"many"`
	Raw   json.RawMessage `json:"raw"`
	State state           `json:"state"`
	Any   any             `json:"any"`
	Left  string          `json:"-"`
	own   int
}

type inner struct {
	List []string `json:"list"`
}

type state int

func (state) MarshalText() ([]byte, error) { return nil, nil }

func comments(t reflect.Type) (string, map[string]string) {
	return "A " + t.Name() + ".", map[string]string{"List": "A list."}
}

// TestDocument: the schema of a type is what encoding/json writes of it.
func TestDocument(t *testing.T) {
	op := api.Operation{ID: "get", Summary: "Gets.", Params: []api.Param{{Name: "n", Type: "integer"}}, Answers: []api.Answer{api.OK("All.", outer{own: 1}), api.NotFound}}
	text, err := api.Document("Title", "v0", "Text.", []api.Route{{Pattern: "GET /x/{id...}", Access: api.Credential, Operation: op}, {Pattern: "GET /page"}}, comments)
	if err != nil {
		t.Fatal(err)
	}
	var d struct {
		Paths      map[string]map[string]struct{ Responses map[string]any }
		Components struct{ Schemas map[string]any }
	}
	if err := json.Unmarshal(text, &d); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"type": "object", "description": "A outer.",
		"properties": map[string]any{
			"list": map[string]any{"type": "array", "items": map[string]any{"type": "string"}, "description": "A list."},
			"time": map[string]any{"type": "string", "format": "date-time"},
			"next": map[string]any{"anyOf": []any{map[string]any{"$ref": "#/components/schemas/Outer"}, map[string]any{"type": "null"}}},
			"many": map[string]any{"type": "object", "additionalProperties": map[string]any{"type": "integer"}}, "maybe": map[string]any{"type": "integer"},
			"raw": map[string]any{}, "any": map[string]any{}, "state": map[string]any{"type": "string"},
		},
		"required": []any{"list", "time", "next", "many", "raw", "state", "any"},
	}
	if diff := cmp.Diff(want, d.Components.Schemas["Outer"]); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	responses := d.Paths["/x/{id}"]["get"].Responses
	for _, status := range []string{"200", "401", "403", "404", "429", "503"} {
		if responses[status] == nil {
			t.Errorf("there is no response %s", status)
		}
	}
	if len(d.Paths) != 1 || len(responses) != 6 {
		t.Errorf("got %v", d.Paths)
	}
	if _, err := api.Document("", "", "", []api.Route{{Pattern: "GET /x", Operation: op}, {Pattern: "GET /x", Operation: op}}, comments); err == nil || !strings.Contains(err.Error(), "get /x is described twice") {
		t.Errorf("got %v for a route that is described twice", err)
	}
	var page strings.Builder
	if err := api.WriteMarkdown(&page, text); err != nil || !strings.Contains(page.String(), "### GET /x/{id}\n\nGets. It needs credentials.") ||
		!strings.Contains(page.String(), "- `next`: [Outer](#outer) or null\n") || !strings.Contains(page.String(), "- `n` (integer)\n") {
		t.Errorf("%v\n%s", err, page.String())
	}
}

// TestChanges: a route whose declaration says nothing changes something, unless it is only read.
func TestChanges(t *testing.T) {
	f := func(e api.Effect, methods string, want bool) {
		t.Helper()
		for method := range strings.FieldsSeq(methods) {
			if got := (api.Operation{Effect: e}).Changes(method); got != want {
				t.Errorf("%v with effect %v: got %v, want %v", method, e, got, want)
			}
		}
	}
	f(api.ByMethod, "GET HEAD", false)
	f(api.ByMethod, "POST PUT DELETE PATCH OPTIONS MADEUP", true)
	f(api.Nothing, "GET HEAD POST PUT DELETE", false)
	f(api.Change, "GET POST", true)
	f(api.Change, "HEAD", false)
}

// TestMux: the description of a request is that of the route which serves it.
func TestMux(t *testing.T) {
	var m api.Mux
	for _, pattern := range []string{"GET /a", "POST /a/{x}", "/b/"} {
		m.Handle(pattern, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, pattern) }, api.Operation{Summary: pattern})
	}
	f := func(method, path, want string) {
		t.Helper()
		r, w := httptest.NewRequest(method, path, nil), httptest.NewRecorder()
		got := m.Operation(r).Summary
		if m.ServeHTTP(w, r); got != want || w.Code == 200 && w.Body.String() != want || (w.Code == 200) != (want != "") {
			t.Errorf("%s %s: got %q, and %d %s, want %q", method, path, got, w.Code, w.Body, want)
		}
	}
	f("GET", "/a", "GET /a")
	f("HEAD", "/a", "GET /a")
	f("POST", "/a/b%2Fc", "POST /a/{x}")
	f("POST", "/a", "")
	f("DELETE", "/b/x", "/b/")
	if n := len(m.Routes()); n != 3 || m.Routes()[1].Pattern != "POST /a/{x}" {
		t.Errorf("got %d routes", n)
	}
}

// TestConditions: the document says what the block ui has to allow.
func TestConditions(t *testing.T) {
	const records, edit, network = "live_data = true", "It needs `edit = true`", "over a network"
	f := func(pattern string, access api.Access, op api.Operation, want ...string) {
		t.Helper()
		op.ID, op.Summary, op.Answers = "x", "X.", []api.Answer{api.Plain("X.")}
		text, err := api.Document("", "", "", []api.Route{{Pattern: pattern, Access: access, Operation: op}}, comments)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range []string{records, edit, network} {
			if got := strings.Contains(string(text[:strings.Index(string(text), "components")]), s); got != slices.Contains(want, s) {
				t.Errorf("%s with %+v: %q is in it: %v", pattern, op, s, got)
			}
		}
	}
	f("GET /x", api.Credential, api.Operation{})
	f("GET /x", api.Credential, api.Operation{Records: true}, records)
	f("POST /x", api.Credential, api.Operation{}, network)
	f("POST /x", api.Credential, api.Operation{Effect: api.Nothing, Records: true}, records)
	f("PUT /x", api.Credential, api.Operation{Writes: true}, edit)
	f("POST /x", api.Socket, api.Operation{})
	f("GET /x", api.Anyone, api.Operation{Effect: api.Change})
}

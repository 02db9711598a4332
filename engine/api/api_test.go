package api_test

import (
	"encoding/json"
	"reflect"
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

package api

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// document is an OpenAPI document.
//
// Format: https://spec.openapis.org/oas/v3.1.1.html
type document struct {
	OpenAPI    string                           `json:"openapi"`
	Info       info                             `json:"info"`
	Paths      map[string]map[string]*operation `json:"paths"`
	Components components                       `json:"components"`
}

type info struct {
	Title       string `json:"title"`
	Version     string `json:"version"`
	Description string `json:"description,omitempty"`
}

type components struct {
	Schemas         map[string]*schema        `json:"schemas"`
	Responses       map[string]*response      `json:"responses"`
	SecuritySchemes map[string]securityScheme `json:"securitySchemes"`
}

type securityScheme struct {
	Type        string `json:"type"`
	Scheme      string `json:"scheme,omitempty"`
	In          string `json:"in,omitempty"`
	Name        string `json:"name,omitempty"`
	Description string `json:"description"`
}

type operation struct {
	OperationID string                `json:"operationId"`
	Summary     string                `json:"summary"`
	Description string                `json:"description,omitempty"`
	Parameters  []parameter           `json:"parameters,omitempty"`
	RequestBody *body                 `json:"requestBody,omitempty"`
	Responses   map[string]*response  `json:"responses"`
	Security    []map[string][]string `json:"security"`
}

type parameter struct {
	Name        string  `json:"name"`
	In          string  `json:"in"`
	Description string  `json:"description,omitempty"`
	Required    bool    `json:"required,omitempty"`
	Schema      *schema `json:"schema"`
}

type body struct {
	Required bool             `json:"required"`
	Content  map[string]media `json:"content"`
}

type response struct {
	Ref         string           `json:"$ref,omitempty"`
	Description string           `json:"description,omitempty"`
	Content     map[string]media `json:"content,omitempty"`
}

// media is a body. OpenAPI 3.1 has no schemas for parts of streams; those that follow
// are extensions with the schema of a line and of the data of each event.
type media struct {
	Schema *schema            `json:"schema,omitempty"`
	Line   *schema            `json:"x-line,omitempty"`
	Events map[string]*schema `json:"x-events,omitempty"`
}

// shared are the responses that follow from the access to a route, by their name in the
// document.
var shared = []struct {
	name   string
	status int
	doc    string
}{
	{"Unauthorized", http.StatusUnauthorized, "Credentials are required, or those of the request are wrong or have expired."},
	{"Forbidden", http.StatusForbidden, "The request comes from a page of another origin, sends credentials over a network in plaintext, or has an unknown Host; the block `ui` does not allow it; or the route is only for the control socket."},
	{"TooManyRequests", http.StatusTooManyRequests, "Too many failed logins from this address."},
	{"Unavailable", http.StatusServiceUnavailable, "weir is starting."},
}

// statuses are the shared responses for each kind of access.
var statuses = map[Access][]int{
	Anyone:     nil,
	Reduced:    {http.StatusUnauthorized, http.StatusForbidden, http.StatusTooManyRequests, http.StatusServiceUnavailable},
	Credential: {http.StatusUnauthorized, http.StatusForbidden, http.StatusTooManyRequests, http.StatusServiceUnavailable},
	Socket:     {http.StatusForbidden, http.StatusServiceUnavailable},
}

// Document returns the OpenAPI document of the routes that have a Summary, as indented
// JSON. Equal routes give equal bytes.
func Document(title, version, text string, routes []Route, comments Comments) ([]byte, error) {
	types := &schemas{comments: comments, names: map[reflect.Type]string{}, all: map[string]*schema{}}
	d := document{OpenAPI: "3.1.1", Info: info{title, version, text}, Paths: map[string]map[string]*operation{}}
	d.Components = components{Schemas: types.all, Responses: map[string]*response{}, SecuritySchemes: map[string]securityScheme{
		"token":   {Type: "http", Scheme: "bearer", Description: "The token in the file weir.token of the storage directory."},
		"login":   {Type: "http", Scheme: "basic", Description: "The name and the password of the block http."},
		"session": {Type: "apiKey", In: "cookie", Name: "weir_session", Description: "A session that a link of 'weir page' started. Its paths begin with /s/ and the ID of the session."},
	}}
	for _, s := range shared {
		d.Components.Responses[s.name] = types.response(Refused(s.status, s.doc))
	}
	for _, r := range routes {
		if r.Summary == "" {
			continue
		}
		method, pattern := r.Split()
		path := wildcard.ReplaceAllString(pattern, "{$1}")
		methods := []string{strings.ToLower(method)}
		if method == "" {
			methods = []string{"get", "post"}
		}
		for _, m := range methods {
			if d.Paths[path] == nil {
				d.Paths[path] = map[string]*operation{}
			}
			if d.Paths[path][m] != nil {
				return nil, fmt.Errorf("%s %s is described twice", m, path)
			}
			op := types.operation(r, pattern)
			if len(methods) > 1 && m != "get" {
				op.OperationID += exported(m)
			}
			d.Paths[path][m] = op
		}
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	err := e.Encode(d)
	return b.Bytes(), err
}

// wildcard is a wildcard of a pattern. One that ends with dots matches slashes.
var wildcard = regexp.MustCompile(`\{(\w+)(\.\.\.)?\}`)

func (s *schemas) operation(r Route, path string) *operation {
	op := &operation{OperationID: r.ID, Summary: r.Summary, Description: r.Text, Responses: map[string]*response{}, Security: []map[string][]string{}}
	op.Description = strings.TrimSpace(op.Description + " " + r.conditions())
	for _, m := range wildcard.FindAllStringSubmatch(path, -1) {
		p := parameter{Name: m[1], In: "path", Required: true, Schema: &schema{Type: "string"}}
		if i := slices.IndexFunc(r.Params, func(p Param) bool { return p.Name == m[1] }); i >= 0 {
			p.Description = r.Params[i].Doc
		} else if m[1] == "id" || m[1] == "node" {
			p.Description = "The ID of a node, as in the status. Slashes in it stay as they are."
		}
		op.Parameters = append(op.Parameters, p)
	}
	for _, p := range r.Params {
		if strings.Contains(path, "{"+p.Name) {
			continue
		}
		of := &schema{Type: p.Type, Enum: p.Enum}
		if p.Type == "" {
			of.Type = "string"
		}
		if p.Many {
			of = &schema{Type: "array", Items: of}
		}
		op.Parameters = append(op.Parameters, parameter{Name: p.Name, In: "query", Description: p.Doc, Required: p.Required, Schema: of})
	}
	if r.Body != nil {
		op.RequestBody = &body{true, map[string]media{JSON: {Schema: s.of(reflect.TypeOf(r.Body))}}}
	}
	for _, a := range r.Answers {
		op.Responses[strconv.Itoa(a.Status)] = s.response(a)
	}
	for _, status := range statuses[r.Access] {
		for _, sh := range shared {
			if key := strconv.Itoa(status); sh.status == status && op.Responses[key] == nil {
				op.Responses[key] = &response{Ref: "#/components/responses/" + sh.name}
			}
		}
	}
	switch r.Access {
	case Reduced:
		op.Security = append(op.Security, map[string][]string{})
		fallthrough
	case Credential:
		for _, name := range []string{"token", "login", "session"} {
			op.Security = append(op.Security, map[string][]string{name: {}})
		}
	}
	return op
}

// conditions is what the block ui has to allow, as sentences.
func (r Route) conditions() string {
	method, _ := r.Split()
	var all []string
	if r.Records {
		all = append(all, "It needs `live_data = true` in the block `ui`.")
	}
	switch {
	case r.Access != Credential:
	case r.Writes:
		all = append(all, "It needs `edit = true` in the block `ui`.")
	case r.Changes(method):
		all = append(all, "With a session or a login, it needs `edit = true` in the block `ui` over a network.")
	}
	return strings.Join(all, " ")
}

func (s *schemas) response(a Answer) *response {
	out := &response{Description: a.Doc}
	for _, t := range a.Types {
		if out.Content == nil {
			out.Content = map[string]media{}
		}
		var m media
		switch {
		case t == EventStream:
			m.Schema, m.Events = &schema{Type: "string"}, map[string]*schema{}
			for _, ev := range a.Events {
				of := s.of(reflect.TypeOf(ev.Value))
				of.Description = ev.Doc
				m.Events[ev.Name] = of
			}
		case t == Lines && a.Value != nil:
			m.Schema, m.Line = &schema{Type: "string"}, s.of(reflect.TypeOf(a.Value))
		case t == JSON && a.Reduced != nil:
			m.Schema = &schema{AnyOf: []*schema{s.of(reflect.TypeOf(a.Value)), s.of(reflect.TypeOf(a.Reduced))}}
		case t == JSON && a.Value != nil:
			m.Schema = s.of(reflect.TypeOf(a.Value))
		case t == JSON:
			m.Schema = &schema{}
		case strings.HasPrefix(t, "text/") || t == Lines:
			m.Schema = &schema{Type: "string"}
		}
		out.Content[t] = m
	}
	return out
}

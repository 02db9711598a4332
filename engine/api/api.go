// Package api describes the routes of weir's HTTP API, and writes the description as an
// OpenAPI document and as a page of the documentation.
//
// Code that serves a route describes it in the same table. The JSON schemas follow from
// the Go types of the requests and responses. The document is written when weir is built,
// by go generate in docs; a running weir only serves it.
package api

import (
	"net/http"
	"strings"
)

// Access is who may use a route.
type Access string

// The kinds of access.
const (
	Anyone     Access = "anyone"             // without credentials
	Reduced    Access = "anyone, reduced"    // everything only with credentials
	Credential Access = "credentials"        // only with credentials
	Socket     Access = "the control socket" // only over the control socket
)

// Route is a described route.
type Route struct {
	// Pattern is a pattern of http.ServeMux. A pattern without a method is described
	// as GET and POST.
	Pattern string
	Access  Access
	Operation
}

// Operation describes what a route does. An operation without a Summary is not a part of
// the API, such as a page of the web UI.
type Operation struct {
	// ID is the operationId, in camelCase.
	ID string
	// Summary is a sentence. Text is what else there is to know, as Markdown.
	Summary, Text string
	Params        []Param
	// Body is a value of the type of the request as JSON, or nil.
	Body any
	// Answers are the responses of the route itself, with the success first. Those that
	// follow from its Access are added.
	Answers []Answer
	// Effect is whether it changes something. Changes are audited, and the block ui can
	// refuse them.
	Effect Effect
	// Records is set if responses may contain records, or texts that quote them. The block
	// ui can refuse it.
	Records bool
	// Writes is set if it writes files of the user. The block ui can refuse it.
	Writes bool
}

// Effect is whether an operation changes something.
type Effect uint8

// The kinds of effect.
const (
	ByMethod Effect = iota // GET and HEAD change nothing, all other methods do
	Nothing                // no method changes anything
	Change                 // all methods but HEAD change something
)

// Changes reports whether a request with a method changes something.
func (o Operation) Changes(method string) bool {
	switch o.Effect {
	case Nothing:
		return false
	case Change:
		return method != http.MethodHead
	}
	return method != http.MethodGet && method != http.MethodHead
}

// Param is a parameter of the query or, if its name is in the pattern, of the path.
type Param struct {
	Name, Doc string
	// Type is string, integer or boolean; "" is string.
	Type string
	// Enum are the possible values, or nil.
	Enum []string
	// Many allows the parameter more than once.
	Many bool
	// Required is set for parameters of the query that must be given.
	Required bool
}

// Answer is a response.
type Answer struct {
	Status int
	Doc    string
	// Types are the media types. If there are none, the response has no body.
	Types []string
	// Value is a value of the type of the body as JSON, or of each line or of the data
	// of each event; nil for text and for JSON of any shape.
	Value any
	// Reduced is a value of the type of the body without credentials, if that differs.
	Reduced any
	// Events are the events of a response of type EventStream, by name.
	Events []Event
}

// Event is a server-sent event.
type Event struct {
	Name, Doc string
	Value     any // its data
}

// The media types of responses.
const (
	JSON        = "application/json"
	Lines       = "application/x-ndjson"
	EventStream = "text/event-stream"
	Text        = "text/plain"
)

// OK returns a successful response in JSON.
func OK(doc string, value any) Answer {
	return Answer{Status: http.StatusOK, Doc: doc, Types: []string{JSON}, Value: value}
}

// Plain returns a successful response of text.
func Plain(doc string) Answer {
	return Answer{Status: http.StatusOK, Doc: doc, Types: []string{Text}}
}

// Refused returns a response to a request that cannot be met: text, or an Error if the
// request accepts JSON.
func Refused(status int, doc string) Answer {
	return Answer{Status: status, Doc: doc, Types: []string{JSON, Text}, Value: Error{}}
}

// NotFound is the response to a request about a node that does not exist.
var NotFound = Refused(http.StatusNotFound, "There is no such node.")

// Error is the body of a response with a status of 400 or more, if the request accepts
// JSON.
type Error struct {
	Error ErrorDetail `json:"error"`
}

// ErrorDetail is what went wrong.
type ErrorDetail struct {
	Status  int    `json:"status"`  // of the response
	Message string `json:"message"` // for people; it may have several lines
}

// Split returns the method and the path of a pattern; the method is "" if the pattern is
// for all methods.
func (r Route) Split() (method, path string) {
	method, path, ok := strings.Cut(r.Pattern, " ")
	if !ok {
		method, path = "", r.Pattern
	}
	return method, strings.ReplaceAll(path, "{$}", "")
}

package api

import (
	"context"
	"net/http"
)

// Mux serves described routes. The zero value has none. Routes are added before it serves.
type Mux struct {
	mux        http.ServeMux
	routes     []Route
	operations map[string]Operation // by pattern
}

// Handle adds a route that needs credentials.
func (m *Mux) Handle(pattern string, h http.HandlerFunc, op Operation) {
	m.mux.HandleFunc(pattern, h)
	m.routes = append(m.routes, Route{Pattern: pattern, Access: Credential, Operation: op})
	if m.operations == nil {
		m.operations = map[string]Operation{}
	}
	m.operations[pattern] = op
}

// Routes returns the descriptions of the routes, in the order in which they were added.
func (m *Mux) Routes() []Route { return m.routes }

// Operation returns the description of the route that serves a request; zero if there is
// none.
func (m *Mux) Operation(r *http.Request) Operation {
	_, pattern := m.mux.Handler(r)
	return m.operations[pattern]
}

// ServeHTTP serves a request.
func (m *Mux) ServeHTTP(w http.ResponseWriter, r *http.Request) { m.mux.ServeHTTP(w, r) }

type hiddenKey struct{}

// HideRecords returns the context of a request whose response must not quote records.
func HideRecords(ctx context.Context) context.Context {
	return context.WithValue(ctx, hiddenKey{}, true)
}

// RecordsHidden reports whether the response to a request must not quote records. Only
// routes whose Operation has no Records get such requests.
func RecordsHidden(ctx context.Context) bool { return ctx.Value(hiddenKey{}) != nil }

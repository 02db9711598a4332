package node

import (
	"errors"
	"net/http"
	"net/url"

	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/scripting/host"
)

var _ component.Controller = (*Component)(nil)

// Control serves the data that the user may inspect and change.
func (c *Component) Control() http.Handler {
	m := http.NewServeMux()
	c.stateRoutes(m)
	c.quarantineRoutes(m)
	c.historyRoutes(m)
	m.HandleFunc("POST /canary/{decision}", c.serveCanary)
	m.HandleFunc("GET /profile", c.serveProfile)
	return m
}

// stateRoutes serves the requests of `weir state`.
func (c *Component) stateRoutes(m *http.ServeMux) {
	serve := func(do func(v *host.StateView, w http.ResponseWriter, r *http.Request) error) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Cache-Control", "no-store")
			v := &host.StateView{Node: c.opts.ID, Cols: c.state.collections(), Now: c.opts.Clock.Now().UnixMilli()}
			err := do(v, w, r)
			if _, ok := errors.AsType[*host.NoStateError](err); ok {
				http.Error(w, err.Error(), http.StatusNotFound)
			} else if err != nil {
				http.Error(w, err.Error(), http.StatusBadRequest)
			}
		}
	}
	get := serve(func(v *host.StateView, w http.ResponseWriter, r *http.Request) error {
		w.Header().Set("Content-Type", "application/json")
		return v.Get(w, r.PathValue("name"), queryParameter(r.URL.Query(), "key"))
	})
	export := serve(func(v *host.StateView, w http.ResponseWriter, r *http.Request) error {
		w.Header().Set("Content-Type", "application/x-ndjson")
		return v.Export(w, r.PathValue("name"))
	})
	m.HandleFunc("GET /state", get)
	m.HandleFunc("GET /state/{name}", get)
	m.HandleFunc("GET /state-export", export)
	m.HandleFunc("GET /state-export/{name}", export)
	m.HandleFunc("PUT /state/{name}", serve(func(v *host.StateView, _ http.ResponseWriter, r *http.Request) error {
		q := r.URL.Query()
		defer c.state.flush()
		return v.Set(r.PathValue("name"), queryParameter(q, "key"), queryParameter(q, "value"))
	}))
	m.HandleFunc("DELETE /state/{name}", serve(func(v *host.StateView, _ http.ResponseWriter, r *http.Request) error {
		defer c.state.flush()
		return v.Delete(r.PathValue("name"), queryParameter(r.URL.Query(), "key"))
	}))
}

// queryParameter returns a query parameter, or nil if it is missing.
func queryParameter(q url.Values, name string) *string {
	if !q.Has(name) {
		return nil
	}
	v := q.Get(name)
	return &v
}

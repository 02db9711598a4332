package node

import (
	"errors"
	"net/http"
	"net/url"

	"github.com/weir-run/weir/engine/api"
	"github.com/weir-run/weir/scripting/host"
)

// stateRoutes serves the requests of `weir state`.
func (c *Component) stateRoutes(m *api.Mux) {
	serve := func(do func(v *host.StateView, w http.ResponseWriter, r *http.Request) error) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Cache-Control", "no-store")
			v := c.stateView()
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
	m.Handle("GET /state", get, listStateOperation)
	m.Handle("GET /state/{name}", get, getStateOperation)
	m.Handle("GET /state-export", export, exportAllStateOperation)
	m.Handle("GET /state-export/{name}", export, exportStateOperation)
	m.Handle("PUT /state/{name}", serve(func(v *host.StateView, _ http.ResponseWriter, r *http.Request) error {
		q := r.URL.Query()
		defer c.state.flush()
		return v.Set(r.PathValue("name"), queryParameter(q, "key"), queryParameter(q, "value"))
	}), setStateOperation)
	m.Handle("DELETE /state/{name}", serve(func(v *host.StateView, _ http.ResponseWriter, r *http.Request) error {
		defer c.state.flush()
		return v.Delete(r.PathValue("name"), queryParameter(r.URL.Query(), "key"))
	}), deleteStateOperation)
}

// queryParameter returns a query parameter, or nil if it is missing.
func queryParameter(q url.Values, name string) *string {
	if !q.Has(name) {
		return nil
	}
	v := q.Get(name)
	return &v
}

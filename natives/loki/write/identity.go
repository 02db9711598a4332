package write

import "github.com/weir-run/weir/engine/outbox"

func (e *Endpoint) ref() outbox.Ref { return outbox.Ref{Name: e.Name, URL: e.URL} }

func (a *Arguments) refs() (all []outbox.Ref) {
	for _, e := range a.Endpoints {
		all = append(all, e.ref())
	}
	return all
}

func (e *Endpoint) tenant() string {
	return e.ref().Tenant(e.Headers, &e.Client, map[string]any{"tenant_id": e.TenantID})
}

package remotewrite

import "github.com/weir-run/weir/engine/outbox"

func (e *Endpoint) ref() outbox.Ref { return outbox.Ref{Name: e.Name, URL: e.URL} }

func (a *Arguments) refs() (all []outbox.Ref) {
	for _, e := range a.Endpoints {
		all = append(all, e.ref())
	}
	return all
}

func (e *Endpoint) tenant() string {
	more := map[string]any{}
	if s := e.SigV4; s != nil {
		more["sigv4"] = []string{s.AccessKey, s.Profile, s.RoleARN, s.ExternalID}
	}
	if e.AzureAD != nil {
		more["azuread"] = e.AzureAD.tenants()
	}
	if e.GoogleIAM != nil {
		more["google_iam"] = e.GoogleIAM
	}
	return e.ref().Tenant(e.Headers, &e.Client, more)
}

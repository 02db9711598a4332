package http

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	nethttp "net/http"
	"slices"

	"github.com/weir-run/weir/engine/api"
	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/history"
	"github.com/weir-run/weir/engine/service"
)

// hiddenMessage stands for a message that may quote records.
const hiddenMessage = "(hidden: live_data is off in the block ui)"

// quiet is a Host without the texts that may quote records, while hides returns true: the
// messages of nodes that are not healthy and of versions that were tried on live data.
type quiet struct {
	service.Host
	hides func() bool
}

// shown returns what a caller may see of a host.
func (s *Service) shown(host service.Host, r *nethttp.Request) service.Host {
	return quiet{host, func() bool { return !s.allowed(r).LiveData }}
}

// shownToAll is shown for what callers over TCP share.
func (s *Service) shownToAll(host service.Host) service.Host {
	return quiet{host, func() bool { return s.o.Allowed != nil && !s.o.Allowed().LiveData }}
}

// withoutRecords returns a request to a component, which notes that the caller may not see
// records.
func (s *Service) withoutRecords(r, inner *nethttp.Request) *nethttp.Request {
	if s.allowed(r).LiveData {
		return inner
	}
	return inner.WithContext(api.HideRecords(inner.Context()))
}

// ListComponents returns the nodes.
func (q quiet) ListComponents() []service.Info {
	infos := q.Host.ListComponents()
	if !q.hides() {
		return infos
	}
	infos = slices.Clone(infos)
	for i := range infos {
		quietInfo(&infos[i])
	}
	return infos
}

// Overview returns the state of weir as a whole. The messages of services do not quote records.
func (q quiet) Overview() service.Overview {
	o := q.Host.Overview()
	if q.hides() {
		o.Reload = quietReload(o.Reload)
	}
	return o
}

// Reloads returns the last changes.
func (q quiet) Reloads() []service.Reload { return q.reloads(q.Host.Reloads()) }

func (q quiet) reloads(rs []service.Reload) []service.Reload {
	if !q.hides() {
		return rs
	}
	out := make([]service.Reload, len(rs))
	for i, r := range rs {
		out[i] = quietReload(r)
	}
	return out
}

// ReloadEvents returns the events after an ID.
func (q quiet) ReloadEvents(after uint64) ([]service.ReloadEvent, <-chan struct{}) {
	events, more := q.Host.ReloadEvents(after)
	if !q.hides() {
		return events, more
	}
	events = slices.Clone(events)
	for i := range events {
		if r := events[i].Reload; r != nil {
			events[i].Reload = new(quietReload(*r))
		}
	}
	return events, more
}

// RequestReload reads the config again.
func (q quiet) RequestReload(ctx context.Context, canaries bool) ([]service.Reload, error) {
	rs, err := q.Host.RequestReload(ctx, canaries)
	return q.reloads(rs), err
}

// PreviewReload returns the changes that a reload would make.
func (q quiet) PreviewReload(ctx context.Context, path, scripts string) (service.Preview, error) {
	p, err := q.Host.PreviewReload(ctx, path, scripts)
	if !q.hides() {
		return p, err
	}
	p.Nodes = slices.Clone(p.Nodes)
	for i := range p.Nodes {
		n := &p.Nodes[i]
		if n.Shadow = nil; n.Action == "refused" {
			n.Why = hiddenMessage
		}
	}
	return p, err
}

// quietHealth hides the message of a node that is not healthy.
func quietHealth(h *component.Health) {
	if h.State > component.Healthy && h.Message != "" {
		h.Message = hiddenMessage
	}
}

func quietInfo(i *service.Info) {
	quietHealth(&i.Health)
	quietHealth(&i.LastError)
	i.Problems = slices.Clone(i.Problems)
	for k := range i.Problems {
		quietHealth(&i.Problems[k])
	}
	if debug := i.Debug; debug != nil {
		i.Debug = func() any { return quietDebug(debug()) }
	}
}

// quietReload returns a record without the messages of steps that process live data.
func quietReload(r service.Reload) service.Reload {
	nodes := slices.Clone(r.Nodes)
	for i := range nodes {
		n := &nodes[i]
		switch n.Step {
		case component.StepCompile, component.StepCheck, component.StepTest:
			continue
		}
		if n.Message != "" {
			n.Message, r.Message = hiddenMessage, hiddenMessage
		}
	}
	r.Nodes = nodes
	return r
}

// quoting are the names of fields of component.Debugger that may quote records.
var quoting = map[string]bool{"err": true, "error": true, "first_error": true, "last_error": true, "reports": true, "shadow": true}

// quietDebug returns debug information without the fields that may quote records.
func quietDebug(v any) any {
	text, err := json.Marshal(v)
	if err != nil {
		return v // which cannot be shown
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var shown any
	if err := d.Decode(&shown); err != nil {
		return hiddenMessage
	}
	return quietValue(shown)
}

func quietValue(v any) any {
	switch v := v.(type) {
	case []any:
		for i := range v {
			v[i] = quietValue(v[i])
		}
	case map[string]any:
		maps.DeleteFunc(v, func(name string, of any) bool { _, text := of.(string); return quoting[name] && !text })
		for name, of := range v {
			if text, ok := of.(string); ok && quoting[name] && text != "" {
				v[name] = hiddenMessage
				continue
			}
			v[name] = quietValue(of)
		}
	}
	return v
}

// quietHistory hides the messages of nodes that were not healthy.
func quietHistory(h *history.History) {
	for i := range h.Health {
		if e := &h.Health[i]; e.State > component.Healthy && e.Message != "" {
			e.Message = hiddenMessage
		}
	}
}

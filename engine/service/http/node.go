package http

import (
	"bytes"
	"encoding/json"
	"fmt"
	nethttp "net/http"
	"slices"
	"time"

	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/service"
)

// Limits for the shown part of a batch.
const (
	pageRows  = 200
	mostRows  = 10_000
	pageBytes = 256 << 10
	mostBytes = 8 << 20
)

// node serves the page of one node or service. It works without JavaScript.
func node(host service.Host, w nethttp.ResponseWriter, r *nethttp.Request) {
	i, kind, ok := find(host, r.PathValue("id"))
	if !ok {
		nethttp.Error(w, fmt.Sprintf("there is no node %s", r.PathValue("id")), nethttp.StatusNotFound)
		return
	}
	o := host.Overview()
	n := newNode(i)
	show(w, nethttp.StatusOK, nodeTemplate, func(nonce string) any {
		d := nodePage{Nonce: nonce, Base: callerOf(r).base, Node: n, Since: age(o.Time.Sub(n.Health.Time)), Links: links(host, i, kind)}
		if n.Health.State > component.Healthy {
			d.Error, d.Node.LastError = n.Health.Message, nil
		} else {
			d.Note = n.Health.Message
		}
		d.Version = component.ShortVersion(n.Version)
		if t := n.Trial; t != nil {
			d.Trial = fmt.Sprintf("%s: %s for %s", component.ShortVersion(t.Version), t.Step, age(o.Time.Sub(t.Since)))
		}
		d.Reports = reports(n.Debug)
		if !flows(d.Links, n) {
			d.Node.Samples, i.Stats = nil, nil
		}
		if i.Stats != nil {
			d.Batches = shownBatches(i.Stats)
			if len(d.Batches) == 0 {
				d.Batches = []excerpt{{Name: "last batch", Note: "none yet"}}
			}
		}
		for _, v := range []struct {
			name string
			raw  any
		}{{"arguments", n.Arguments}, {"exports", n.Exports}, {"debug", n.Debug}} {
			d.Values = append(d.Values, excerpt{Name: v.name, Text: pretty(v.raw)})
		}
		return d
	})
}

// nodePage is the data for node.html.
type nodePage struct {
	Nonce   string
	Base    string
	Node    Node
	Error   string
	Since   string
	Note    string // the message of a healthy node
	Version string // short
	Trial   string // the step of a new version that is in progress
	Reports []excerpt
	Links   []linked
	Batches []excerpt
	Values  []excerpt
}

// The directions of data flow.
const (
	getsFrom = "gets from"
	sendsTo  = "sends to"
)

// linked are nodes that are connected with this one.
type linked struct {
	Name string
	IDs  []string
}

// excerpt is a text with a head.
type excerpt struct{ Name, Note, Text string }

type kind uint8

const (
	aComponent kind = iota
	aService
)

func find(host service.Host, id string) (service.Info, kind, bool) {
	for _, i := range host.ListComponents() {
		if i.ID == id {
			return i, aComponent, true
		}
	}
	for _, i := range host.Overview().Services {
		if i.ID == id {
			return i, aService, true
		}
	}
	return service.Info{}, 0, false
}

// flows reports whether data can flow to or from a node, or has.
func flows(ls []linked, n Node) bool {
	return n.Samples != nil && (!n.Samples.isEmpty() || n.Lines != nil ||
		slices.ContainsFunc(ls, func(l linked) bool { return len(l.IDs) > 0 && (l.Name == getsFrom || l.Name == sendsTo) }))
}

func links(host service.Host, i service.Info, k kind) []linked {
	var from, by []string
	for _, o := range append(host.ListComponents(), host.Overview().Services...) {
		switch {
		case slices.Contains(o.SendsTo, i.ID):
			from = append(from, o.ID)
		case slices.Contains(o.DependsOn, i.ID):
			by = append(by, o.ID)
		}
	}
	if k == aService {
		by = append(by, host.GetServiceConsumers(i.ID)...)
	}
	refers := slices.DeleteFunc(slices.Clone(i.DependsOn), func(id string) bool { return slices.Contains(i.SendsTo, id) })
	return []linked{{getsFrom, from}, {sendsTo, i.SendsTo}, {"refers to", refers}, {"used by", by}}
}

// reports returns the reports in a component's debug info.
func reports(debug any) []excerpt {
	raw, _ := debug.(json.RawMessage)
	var d struct{ Reports []excerpt }
	_ = json.Unmarshal(raw, &d) // most components have none
	return d.Reports
}

// pretty formats JSON for people; it returns "" for nil.
func pretty(v any) string {
	raw, _ := v.(json.RawMessage)
	switch string(raw) {
	case "", "null", "{}", "[]":
		return ""
	}
	var b bytes.Buffer
	if json.Indent(&b, raw, "", "  ") != nil {
		return string(raw)
	}
	return b.String()
}

func age(d time.Duration) string {
	switch {
	case d < 90*time.Second:
		return fmt.Sprintf("%d s", max(0, int(d.Seconds())))
	case d < 90*time.Minute:
		return fmt.Sprintf("%d min", int(d.Minutes()))
	case d < 36*time.Hour:
		return fmt.Sprintf("%d h", int(d.Hours()))
	}
	return fmt.Sprintf("%d days", int(d.Hours()/24))
}

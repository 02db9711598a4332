package http

import (
	"bytes"
	"encoding/json"
	"fmt"
	nethttp "net/http"
	"slices"
	"strconv"
	"time"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/flow"
	"github.com/weir-run/weir/engine/service"
)

// How much of a batch is shown.
const (
	pageRows  = 200
	mostRows  = 10_000
	pageBytes = 256 << 10
	mostBytes = 8 << 20
)

// node is the page of one node or service. It works without JavaScript.
func (s *Service) node(host service.Host, w nethttp.ResponseWriter, r *nethttp.Request) {
	i, kind, ok := find(host, r.PathValue("id"))
	if !ok {
		nethttp.Error(w, fmt.Sprintf("there is no node %s", r.PathValue("id")), nethttp.StatusNotFound)
		return
	}
	o := host.Overview()
	n := newNode(i)
	show(w, nodeTemplate, func(nonce string) any {
		d := nodePage{Nonce: nonce, Node: n, Since: age(o.Time.Sub(n.Health.Time)), Links: links(host, i, kind)}
		if n.Health.State > component.Healthy {
			d.Error, d.Node.LastError = n.Health.Message, nil
		}
		if !flows(d.Links, n.Samples) {
			d.Node.Samples, i.Stats = nil, nil
		}
		switch {
		case i.Stats == nil:
		case s.check(r, local) == nil || trusted(r):
			d.Batches = append(d.Batches, shownBatch("last batch in", i.Stats.LastIn()),
				shownBatch("last batch out", i.Stats.LastOut()))
			d.Batches = slices.DeleteFunc(d.Batches, func(b excerpt) bool { return b.Text == "" })
			if len(d.Batches) == 0 {
				d.Batches = []excerpt{{Name: "last batch", Note: "none yet"}}
			}
		default:
			d.Batches = []excerpt{{Name: "last batch", Note: "is shown on the machine that weir runs on only"}}
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

// nodePage is what node.html shows.
type nodePage struct {
	Nonce   string
	Node    Node
	Error   string
	Since   string
	Links   []linked
	Batches []excerpt
	Values  []excerpt
}

// The ways of samples.
const (
	getsFrom = "gets from"
	sendsTo  = "sends to"
)

// linked are nodes that have to do with this one.
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

// flows reports whether samples can come to a node or from it, or have.
func flows(ls []linked, n *Samples) bool {
	return n != nil && (n.In > 0 || n.Out > 0 || len(n.Dropped) > 0 ||
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

func shownBatch(name string, b *batch.Metrics) excerpt {
	if b == nil {
		return excerpt{}
	}
	text, rows := batchText(b, pageRows, pageBytes)
	note := fmt.Sprintf("%d rows", b.Len())
	if b.Len() == 1 {
		note = "1 row"
	}
	if rows < b.Len() {
		note += fmt.Sprintf(", the first %d are shown", rows)
	}
	return excerpt{name, note, string(text)}
}

// batchText returns the first rows of a batch as text, and how many they are.
func batchText(b *batch.Metrics, rows, bytes int) (text []byte, n int) {
	for n < b.Len() && n < rows {
		// A few at a time: rows may be long.
		end := min(n+100, rows, b.Len())
		part := b.Rows(span(n, end))
		if text = batch.AppendText(text, part); len(text) > bytes {
			text = append(cutLine(text[:bytes]), "# the rest is left out\n"...)
			return text, n
		}
		n = end
	}
	return text, n
}

func span(from, to int) []int {
	rows := make([]int, 0, to-from)
	for i := from; i < to; i++ {
		rows = append(rows, i)
	}
	return rows
}

// cutLine takes the unfinished last line off.
func cutLine(text []byte) []byte { return text[:bytes.LastIndexByte(text, '\n')+1] }

// lastBatch is the last batch of a node as text: ?of=in or out, ?rows=N.
func lastBatch(host service.Host, w nethttp.ResponseWriter, r *nethttp.Request) {
	i, _, ok := find(host, r.PathValue("id"))
	if !ok || i.Stats == nil {
		nethttp.Error(w, fmt.Sprintf("there is no node %s", r.PathValue("id")), nethttp.StatusNotFound)
		return
	}
	last, err := pick(r.URL.Query().Get("of"), i.Stats)
	rows := pageRows
	if text := r.URL.Query().Get("rows"); text != "" && err == nil {
		if rows, err = strconv.Atoi(text); err != nil || rows < 1 || rows > mostRows {
			err = fmt.Errorf("rows must be a number from 1 to %d, not %q", mostRows, text)
		}
	}
	if err != nil {
		nethttp.Error(w, err.Error(), nethttp.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	if last == nil {
		return
	}
	text, n := batchText(last, rows, mostBytes)
	if n < last.Len() {
		text = fmt.Appendf(text, "# %d of %d rows\n", n, last.Len())
	}
	w.Write(text) // an error is the client's: it went away
}

func pick(of string, s *flow.Stats) (*batch.Metrics, error) {
	switch in, out := s.LastIn(), s.LastOut(); {
	case of == "in":
		return in, nil
	case of == "out", of == "" && out != nil:
		return out, nil
	case of == "":
		return in, nil
	}
	return nil, fmt.Errorf("of must be in or out, not %q", of)
}

// pretty returns JSON for people; "" for nothing.
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

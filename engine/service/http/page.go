package http

import (
	"bytes"
	"crypto/rand"
	_ "embed"
	"html/template"
	nethttp "net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/weir-run/weir/engine/flow"
	"github.com/weir-run/weir/engine/flowchart"
	"github.com/weir-run/weir/engine/service"
)

var (
	//go:embed style.html
	styleText string
	//go:embed page.html
	pageText string
	//go:embed node.html
	nodeText string
	//go:embed docs.html
	docsText string
	//go:embed refused.html
	refusedText string

	pages        = template.Must(template.New("style").Funcs(template.FuncMap{"page": nodePath}).Parse(styleText))
	pageTemplate = template.Must(template.Must(pages.Clone()).New("page").Parse(pageText))
	nodeTemplate = template.Must(template.Must(pages.Clone()).New("node").Parse(nodeText))

	docsTemplate    = template.Must(template.Must(pages.Clone()).New("docs").Parse(docsText))
	refusedTemplate = template.Must(template.Must(pages.Clone()).New("refused").Parse(refusedText))
)

// page serves the list of nodes. It contains the initial data, also for
// browsers without JavaScript, and updates it from the status API.
func page(host service.Host, w nethttp.ResponseWriter, r *nethttp.Request) {
	base := callerOf(r).base
	show(w, nethttp.StatusOK, pageTemplate, func(nonce string) any {
		return struct {
			Nonce, Base string
			Status      Status
			Graph       template.HTML
		}{nonce, base, newStatus(host), template.HTML(drawing(host, base))}
	})
}

// refusedPage is the data for refused.html.
type refusedPage struct {
	Nonce, Text string
	Continue    bool // repeat the request from this page
}

// graph serves the drawing in the page, if it has changed.
func graph(host service.Host, w nethttp.ResponseWriter, r *nethttp.Request) {
	h := w.Header()
	h.Set("Content-Type", "image/svg+xml")
	h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
	w.Write([]byte(drawing(host, callerOf(r).base)))
}

// show writes a page that may load no other resources.
func show(w nethttp.ResponseWriter, status int, t *template.Template, data func(nonce string) any) {
	nonce := rand.Text()
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Security-Policy", "default-src 'none'; connect-src 'self'; img-src data:; style-src 'nonce-"+nonce+
		"'; script-src 'nonce-"+nonce+"'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'")
	w.WriteHeader(status)
	t.Execute(w, data(nonce)) // an error is the client's: it went away
}

// drawing returns the graph as SVG, with links to the nodes' pages below base.
func drawing(host service.Host, base string) string {
	nodes := host.ListComponents()
	c := flowchart.Of(nodes, host.Overview().Services)
	stats := map[string]*flow.Stats{}
	for _, i := range nodes {
		stats[i.ID] = i.Stats
	}
	for i := range c.Nodes {
		n := &c.Nodes[i]
		n.Href, n.Rates = base+nodePath(n.ID), totals(stats[n.ID])
	}
	var b bytes.Buffer
	c.WriteSVG(&b, flowchart.SVGOptions{Inline: true, Rates: true}) // a buffer takes everything
	return b.String()
}

// nodePath returns the path of a node's page.
func nodePath(id string) string {
	parts := strings.Split(id, "/")
	for i, p := range parts {
		parts[i] = url.PathEscape(p)
	}
	return "/node/" + strings.Join(parts, "/")
}

// totals returns the text that a node shows before rates are known.
func totals(s *flow.Stats) string {
	if s == nil {
		return ""
	}
	var out []string
	for _, c := range []struct {
		n    uint64
		what string
	}{{s.In.Load() + s.LinesIn.Load(), " in"}, {s.Out.Load() + s.LinesOut.Load(), " out"}} {
		if c.n > 0 {
			out = append(out, short(c.n)+c.what)
		}
	}
	return strings.Join(out, " · ")
}

// short formats a count in few characters.
func short(n uint64) string {
	switch {
	case n >= 1e9:
		return strconv.FormatFloat(float64(n)/1e9, 'f', 1, 64) + "G"
	case n >= 1e6:
		return strconv.FormatFloat(float64(n)/1e6, 'f', 1, 64) + "M"
	case n >= 1e4:
		return strconv.FormatFloat(float64(n)/1e3, 'f', 1, 64) + "k"
	}
	return strconv.FormatUint(n, 10)
}

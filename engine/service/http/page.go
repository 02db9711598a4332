package http

import (
	"crypto/rand"
	_ "embed"
	"html/template"
	nethttp "net/http"

	"github.com/weir-run/weir/engine/service"
)

//go:embed page.html
var pageText string

var pageTemplate = template.Must(template.New("page").Parse(pageText))

// page shows the nodes. What it shows first is in it; it asks the status API
// for more.
func page(host service.Host, w nethttp.ResponseWriter, _ *nethttp.Request) {
	nonce := rand.Text()
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Content-Security-Policy", "default-src 'none'; connect-src 'self'; img-src data:; style-src 'nonce-"+nonce+
		"'; script-src 'nonce-"+nonce+"'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'")
	// An error is the client's: it went away.
	pageTemplate.Execute(w, struct {
		Nonce  string
		Status Status
	}{nonce, newStatus(host)})
}

package http

import (
	"crypto/rand"
	_ "embed"
	"html/template"
	nethttp "net/http"
	"strings"
)

var (
	//go:embed refused.html
	refusedText     string
	refusedTemplate = template.Must(template.New("refused").Parse(refusedText))
)

// refusedPage is the data for refused.html.
type refusedPage struct {
	Nonce, Text string
	Continue    bool // repeat the request from this page
}

// showRefused writes the page that explains a refusal in a browser. It loads no other resources.
func showRefused(w nethttp.ResponseWriter, e *refusal) {
	nonce := rand.Text()
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Security-Policy", "default-src 'none'; img-src data:; style-src 'nonce-"+nonce+"'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'")
	explain(w, e.text)
	w.WriteHeader(e.status)
	text := e.text
	if e.status == nethttp.StatusUnauthorized {
		text, _, _ = strings.Cut(text, ":") // the page says what to do
	}
	refusedTemplate.Execute(w, refusedPage{Nonce: nonce, Text: text, Continue: e == errContinue}) // an error is the client's: it went away
}

package http

import (
	"html/template"
	nethttp "net/http"
)

// Doc is a page of the documentation.
type Doc struct {
	Title string
	HTML  string // the content, which loads no other resources
}

// docsPage is the data for docs.html.
type docsPage struct {
	Nonce, Base, Title string
	Body               template.HTML
}

// showDocs serves a page of the documentation. The page without a name is the
// table of contents.
func (s *Service) showDocs(w nethttp.ResponseWriter, r *nethttp.Request) {
	var d Doc
	var ok bool
	if s.o.Docs != nil {
		d, ok = s.o.Docs(r.PathValue("page"))
	}
	if !ok {
		nethttp.Error(w, "the documentation has no page with this name", nethttp.StatusNotFound)
		return
	}
	show(w, nethttp.StatusOK, docsTemplate, func(nonce string) any {
		return docsPage{nonce, callerOf(r).base, d.Title, template.HTML(d.HTML)}
	})
}

package http

import (
	"fmt"
	nethttp "net/http"

	"github.com/weir-run/weir/engine/service"
)

// Docs is the documentation that the web UI shows.
type Docs struct {
	// Pages are all pages in reading order.
	Pages []DocPage
	// HTML returns the content of a page, which loads no other resources. Links to other pages
	// are relative URLs without an ending. The page "index" lists all pages.
	HTML func(name string) (Doc, bool)
	// Search returns the sections that contain all words of a query.
	Search func(query string) []DocSection
}

// DocPage is an entry in the table of contents.
type DocPage struct {
	Name    string `json:"name"`
	Title   string `json:"title"`
	Summary string `json:"summary"`
}

// Doc is a page of the documentation.
type Doc struct {
	Name  string `json:"name"`
	Title string `json:"title"`
	HTML  string `json:"html"`
}

// DocSection is a part of a page.
type DocSection struct {
	Page    string `json:"page"`    // name
	Title   string `json:"title"`   // of the page
	Heading string `json:"heading"` // "" for the beginning of the page
	Anchor  string `json:"anchor"`  // of the heading
	Text    string `json:"text"`    // an excerpt
}

// DocList is the response of /api/v0/docs.
type DocList struct {
	Pages []DocPage `json:"pages"`
	// Found are the sections that the parameter search selects; it is missing without the parameter.
	Found []DocSection `json:"found,omitzero"`
}

// listDocs serves the table of contents, and with the parameter search also what was found.
func (s *Service) listDocs(_ service.Host, w nethttp.ResponseWriter, r *nethttp.Request) {
	l := DocList{Pages: append([]DocPage{}, s.o.Docs.Pages...)}
	if query := r.URL.Query().Get("search"); query != "" && s.o.Docs.Search != nil {
		l.Found = append([]DocSection{}, s.o.Docs.Search(query)...)
	}
	writeJSON(w, l)
}

// serveDoc serves a page of the documentation.
func (s *Service) serveDoc(_ service.Host, w nethttp.ResponseWriter, r *nethttp.Request) {
	var d Doc
	var ok bool
	if s.o.Docs.HTML != nil {
		d, ok = s.o.Docs.HTML(r.PathValue("page"))
	}
	if !ok {
		nethttp.Error(w, "the documentation has no page with this name", nethttp.StatusNotFound)
		return
	}
	writeJSON(w, d)
}

// Manual is the response of /api/v0/manual/NAME.
type Manual struct {
	Name string `json:"name"`
	Text string `json:"text"` // as `weir components NAME` prints it
}

// Completions is the response of /api/v0/completions/OF.
type Completions struct {
	Names []Completion `json:"names"`
}

// Completion is a name that an editor can complete.
type Completion struct {
	Name string `json:"name"`
	// Of is the type or module of a name of scripts, such as batch or ctx.log, or the block
	// that contains an argument; "" at the top.
	Of   string `json:"of"`
	Call string `json:"call"` // how a function is called, or the type of an argument
	Doc  string `json:"doc"`  // a sentence
	// Function and Block report what kind of a name it is.
	Function bool `json:"function,omitempty"`
	Block    bool `json:"block,omitempty"`
}

// serveCompletions serves the names that an editor can complete.
func (s *Service) serveCompletions(_ service.Host, w nethttp.ResponseWriter, r *nethttp.Request) {
	of := r.PathValue("of")
	var c Completions
	var ok bool
	if s.o.Completions != nil {
		c.Names, ok = s.o.Completions(of)
	}
	if !ok {
		nethttp.Error(w, fmt.Sprintf("there are no completions for %s: use a language of scripts or the name of a component", of), nethttp.StatusNotFound)
		return
	}
	writeJSON(w, c)
}

// serveManual serves the manual of a component.
func (s *Service) serveManual(_ service.Host, w nethttp.ResponseWriter, r *nethttp.Request) {
	m := Manual{Name: r.PathValue("name")}
	var ok bool
	if s.o.Manual != nil {
		m.Text, ok = s.o.Manual(m.Name)
	}
	if !ok {
		nethttp.Error(w, fmt.Sprintf("there is no manual of %s", m.Name), nethttp.StatusNotFound)
		return
	}
	writeJSON(w, m)
}

package http

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io/fs"
	"mime"
	nethttp "net/http"
	"path"
	"strings"
	"sync"
)

// uiPolicy lets the web UI load its own files and call the API, and nothing else.
const uiPolicy = "default-src 'none'; connect-src 'self'; img-src 'self' data:; style-src 'self'; script-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// asset is a file of the web UI.
type asset struct {
	kind             string
	text, compressed []byte
}

// assets returns the files of the web UI by path. They are compressed when the web UI is opened
// for the first time.
func assets(files fs.FS) func() (map[string]asset, error) {
	return sync.OnceValues(func() (map[string]asset, error) {
		out := map[string]asset{}
		err := fs.WalkDir(files, ".", func(p string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			text, err := fs.ReadFile(files, p)
			if err != nil {
				return err
			}
			var b bytes.Buffer
			w := gzip.NewWriter(&b)
			if _, err = w.Write(text); err == nil {
				err = w.Close()
			}
			out[p] = asset{mime.TypeByExtension(path.Ext(p)), text, b.Bytes()}
			return err
		})
		return out, err
	})
}

// showUI serves a file of the web UI: index.html for the path /.
func (s *Service) showUI(w nethttp.ResponseWriter, r *nethttp.Request) {
	name := strings.TrimPrefix(r.URL.Path, "/")
	if name == "" {
		name = "index.html"
	}
	all, err := s.ui()
	a, ok := all[name]
	switch {
	case err != nil:
		nethttp.Error(w, fmt.Sprintf("cannot read the web UI: %v", err), nethttp.StatusInternalServerError)
		return
	case !ok:
		nethttp.Error(w, "this weir has no web UI, or the web UI has no file "+name, nethttp.StatusNotFound)
		return
	}
	h := w.Header()
	h.Set("Content-Type", a.kind)
	h.Set("Content-Security-Policy", uiPolicy)
	h.Set("Vary", "Accept-Encoding")
	text := a.text
	if strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		h.Set("Content-Encoding", "gzip")
		text = a.compressed
	}
	w.Write(text) // an error is the client's: it went away
}

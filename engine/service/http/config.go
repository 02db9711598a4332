package http

import (
	"fmt"
	"maps"
	nethttp "net/http"
	"slices"
	"strings"

	"github.com/weir-run/weir/engine/config"
	"github.com/weir-run/weir/engine/service"
)

// RunningConfig is the response of /api/v0/config.
type RunningConfig struct {
	Path  string       `json:"path"` // of the config: a file or a directory
	Files []ConfigFile `json:"files"`
}

// ConfigFile is a file of a config, without secrets.
type ConfigFile struct {
	Path string `json:"path"`
	Text string `json:"text"`
	// Formatted is the text as weir fmt formats it, if the config was checked. It is
	// missing if there is a syntax error in the file.
	Formatted string `json:"formatted,omitempty"`
}

// CheckedConfig is the response of /api/v0/config/check.
type CheckedConfig struct {
	Path        string       `json:"path"` // of the config: a file or a directory
	Files       []ConfigFile `json:"files"`
	Diagnostics []Diagnostic `json:"diagnostics"` // sorted by position
	// Mistakes is the number of errors: the config can run if it is 0.
	Mistakes int `json:"mistakes"`
}

// Diagnostic is an error or a warning about a config or about a script that it uses.
type Diagnostic struct {
	Severity string `json:"severity"` // error or warning
	File     string `json:"file"`
	Line     int    `json:"line,omitempty"`   // starts at 1; it is missing if it is not known
	Column   int    `json:"column,omitempty"` // starts at 1, in bytes; it is missing if it is not known
	Message  string `json:"message"`
	Hint     string `json:"hint,omitempty"`   // what to do
	Detail   string `json:"detail,omitempty"` // more lines
}

func configFiles(texts map[string]string) []ConfigFile {
	files := []ConfigFile{}
	for _, path := range slices.Sorted(maps.Keys(texts)) {
		files = append(files, ConfigFile{Path: path, Text: texts[path]})
	}
	return files
}

// serveConfig serves the text of the config that runs.
func serveConfig(host service.Host, w nethttp.ResponseWriter, r *nethttp.Request) {
	texts, err := host.RunningConfig(r.Context())
	if err != nil {
		nethttp.Error(w, err.Error(), nethttp.StatusServiceUnavailable)
		return
	}
	files := configFiles(texts)
	if !strings.Contains(r.Header.Get("Accept"), "text/plain") || acceptsJSON(r) {
		writeJSON(w, RunningConfig{host.Overview().Config, files})
		return
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	for _, f := range files {
		fmt.Fprintf(w, "// %s\n\n%s\n", f.Path, f.Text)
	}
}

// checkConfig serves the files of the config on disk and what is wrong with them. Checks
// compile scripts, so there is one at a time.
func (s *Service) checkConfig(host service.Host, w nethttp.ResponseWriter, _ *nethttp.Request) {
	c := CheckedConfig{Path: host.Overview().Config, Files: []ConfigFile{}, Diagnostics: []Diagnostic{}}
	if s.o.Check != nil {
		s.checking.Lock()
		texts, ds, err := s.o.Check(c.Path)
		s.checking.Unlock()
		if err != nil {
			nethttp.Error(w, err.Error(), nethttp.StatusServiceUnavailable)
			return
		}
		c.Files = configFiles(texts)
		for i := range c.Files {
			f := &c.Files[i]
			f.Formatted, _ = config.Format(f.Path, f.Text) // the mistakes are among ds
		}
		for _, d := range ds {
			c.Diagnostics = append(c.Diagnostics, Diagnostic{d.Severity.String(), d.File, d.Line, d.Col, d.Msg, d.Hint, d.Detail})
			if d.Severity == config.Error {
				c.Mistakes++
			}
		}
	}
	writeJSON(w, c)
}

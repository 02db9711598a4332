package node

import (
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/weir-run/weir/engine/config"
	"github.com/weir-run/weir/engine/tap"
	"github.com/weir-run/weir/scripting/quarantine"
)

const (
	// maxListed is the most entries in a list, and maxShown the most bytes of an entry's
	// data.
	maxListed = 200
	maxShown  = 256 << 10
)

// QuarantineList is the quarantine of a node.
type QuarantineList struct {
	Total   int               `json:"total"`               // number of entries
	Entries []QuarantineEntry `json:"entries"`             // the newest 200, the newest first
	Aside   []string          `json:"set_aside,omitempty"` // files that cannot be read, with the reasons
}

// QuarantineEntry describes a batch, or some of its records, on which the script failed.
type QuarantineEntry struct {
	ID      uint64    `json:"id"`
	Time    time.Time `json:"time"`
	Signal  string    `json:"signal"` // metrics or logs
	Records int       `json:"records"`
	Version string    `json:"version"` // of the script
	Error   string    `json:"error"`
}

// QuarantineData is an entry with its data.
type QuarantineData struct {
	QuarantineEntry
	Data string `json:"data"`          // in text form, with masked secrets; at most the first 256 KiB
	Cut  bool   `json:"cut,omitempty"` // the data is longer
}

func (c *Component) serveQuarantine(w http.ResponseWriter, _ *http.Request) {
	l, err := c.mem.quarantine.store.List()
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	list := QuarantineList{Total: len(l.Entries), Entries: []QuarantineEntry{}, Aside: l.Aside}
	for _, e := range slices.Backward(l.Entries[max(0, len(l.Entries)-maxListed):]) {
		list.Entries = append(list.Entries, c.shown(e))
	}
	writeJSON(w, list)
}

func (c *Component) serveQuarantined(w http.ResponseWriter, r *http.Request) {
	id, err := strconv.ParseUint(r.PathValue("entry"), 10, 64)
	if err != nil {
		http.Error(w, fmt.Sprintf("cannot use %q as an entry: it must be a number", r.PathValue("entry")), http.StatusBadRequest)
		return
	}
	e, data, err := c.mem.quarantine.store.Read(id)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		http.Error(w, err.Error(), http.StatusNotFound)
		return
	case err != nil:
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	text := c.mask(string(data))
	writeJSON(w, QuarantineData{QuarantineEntry: c.shown(e), Data: text[:min(len(text), maxShown)], Cut: len(text) > maxShown})
}

func (c *Component) shown(e quarantine.Entry) QuarantineEntry {
	return QuarantineEntry{ID: e.ID, Time: e.Time, Signal: e.Signal, Records: e.Records, Version: e.Version, Error: c.mask(e.Text)}
}

// mask masks the secrets of the arguments in a text in which values may be quoted.
func (c *Component) mask(text string) string {
	secrets := c.secrets()
	for _, s := range secrets {
		quoted := strconv.Quote(s)
		secrets = append(secrets, quoted[1:len(quoted)-1])
	}
	return tap.MaskText(text, secrets)
}

// secrets returns the secrets in the arguments.
func (c *Component) secrets() (found []string) {
	config.Secrets(c.args, func(s string) { found = append(found, s) })
	return found
}

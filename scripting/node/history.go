package node

import (
	"encoding/json"
	"net/http"

	"github.com/weir-run/weir/scripting/versions"
)

// History has the versions of a script, which its catalog keeps.
type History struct {
	// Record returns what is known of the script.
	Record func() versions.Record
}

// historyRoutes serves what `weir history` asks for.
func (c *Component) historyRoutes(m *http.ServeMux) {
	m.HandleFunc("GET /history", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Cache-Control", "no-store")
		if c.script.History == nil {
			http.Error(w, c.noHistory(), http.StatusNotFound)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(c.history()) // an error is the client's: it went away
	})
}

// noHistory says why the versions of the script are not kept.
func (c *Component) noHistory() string {
	return c.script.Name + " ships with weir and has one version; copy it to the folder of scripts to change it"
}

func (c *Component) history() versions.History {
	return c.script.History.Record().History(c.opts.ID, c.script.File.Name, c.script.Version)
}

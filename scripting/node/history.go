package node

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/weir-run/weir/engine/api"
	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/scripting/versions"
)

// History has the versions of a script, which its catalog keeps.
type History struct {
	// Record returns what is known of the script.
	Record func() versions.Record
	// Files returns what a version is made of.
	Files func(v versions.Version) ([]versions.File, error)
	// Pin has a node run a version instead of the running one. It returns before the
	// node runs it.
	Pin func(node string, v versions.Version, running string) error
	// Unpin has a node run the version on disk again, which it returns; "" if that
	// cannot be used.
	Unpin func(node string) string
}

// historyRoutes serves what `weir history`, diff, rollback and unpin ask for.
func (c *Component) historyRoutes(m *api.Mux) {
	serve := func(do func(r *http.Request) (any, error)) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Cache-Control", "no-store")
			if c.script.History == nil {
				http.Error(w, c.script.Name+" ships with weir and has one version; copy it to the folder of scripts to change it", http.StatusNotFound)
				return
			}
			answer, err := do(r)
			if err != nil {
				http.Error(w, err.Error(), http.StatusConflict)
				return
			}
			w.Header().Set("Content-Type", "application/json")
			_ = json.NewEncoder(w).Encode(answer) // an error is the client's: it went away
		}
	}
	m.Handle("GET /history", serve(func(r *http.Request) (any, error) {
		h := c.script.History.Record().History(c.opts.ID, c.script.File.Name, c.script.Version)
		if api.RecordsHidden(r.Context()) {
			h = withoutReasons(h)
		}
		return h, nil
	}), historyOperation)
	m.Handle("GET /history/diff", serve(func(r *http.Request) (any, error) { return c.compare(r.URL.Query().Get("version")) }), diffOperation)
	m.Handle("POST /rollback", serve(func(r *http.Request) (any, error) { return c.rollBack(r.Context(), r.URL.Query().Get("version")) }), rollbackOperation)
	m.Handle("POST /unpin", serve(func(*http.Request) (any, error) { return c.unpin() }), unpinOperation)
}

// withoutReasons returns a history without the reasons that may quote records.
func withoutReasons(h versions.History) versions.History {
	h.Refused = slices.Clone(h.Refused)
	for i := range h.Refused {
		if f := &h.Refused[i]; f.Step == component.StepShadow || f.Step == component.StepCanary {
			f.Reason = "(hidden: live_data is off in the block ui)"
		}
	}
	return h
}

// Comparison are two versions of a script.
type Comparison struct {
	Old   string             `json:"old"`   // ID
	New   string             `json:"new"`   // ID of the running one
	Files [2][]versions.File `json:"files"` // of the old and the new one
}

// compare returns a version and the one that runs.
func (c *Component) compare(prefix string) (*Comparison, error) {
	v, err := c.version(prefix)
	if err != nil {
		return nil, err
	}
	d := &Comparison{Old: v.ID, New: c.script.Version}
	running := c.script.History.Record().Find(c.script.Version)
	if len(running) == 0 {
		return nil, fmt.Errorf("version %s, which runs, is not in the history of %s; its log says why", component.ShortVersion(c.script.Version), c.opts.ID)
	}
	for i, v := range []versions.Version{v, running[0]} {
		if d.Files[i], err = c.script.History.Files(v); err != nil {
			return nil, err
		}
	}
	return d, nil
}

// Switch is the answer to `weir rollback` and `weir unpin`: the node is about to run a
// version.
type Switch struct {
	From string `json:"from"` // ID of the version that runs
	To   string `json:"to"`   // ID; "" if the version on disk cannot be used
	// Canary says what was done instead: a canary was rolled back.
	Canary string `json:"canary,omitempty"`
}

// rollBack has the node run an older version. Without a prefix of its ID, it ends the
// canary or, if there is none, the node runs the version that was active before.
func (c *Component) rollBack(ctx context.Context, prefix string) (*Switch, error) {
	if prefix == "" {
		did, err := c.endCanary(ctx, false)
		if !errors.Is(err, errNoCanary) {
			return &Switch{From: c.script.Version, To: c.script.Version, Canary: did}, err
		}
	}
	v, err := c.version(prefix)
	if err != nil {
		return nil, err
	}
	if v.ID == c.script.Version {
		return nil, fmt.Errorf("%s runs version %s already", c.opts.ID, component.ShortVersion(v.ID))
	}
	return &Switch{From: c.script.Version, To: v.ID}, c.script.History.Pin(c.opts.ID, v, c.script.Version)
}

func (c *Component) unpin() (*Switch, error) {
	if _, pinned := c.script.History.Record().Pinned(c.opts.ID); !pinned {
		return nil, fmt.Errorf("%s is not pinned to a version", c.opts.ID)
	}
	return &Switch{From: c.script.Version, To: c.script.History.Unpin(c.opts.ID)}, nil
}

// version returns the version whose ID begins with prefix. If prefix is empty,
// it returns the version that was active before the running one.
func (c *Component) version(prefix string) (v versions.Version, err error) {
	id, record := c.opts.ID, c.script.History.Record()
	if prefix == "" {
		v, ok := record.Before(id, c.script.Version)
		if !ok {
			return v, fmt.Errorf("no version was active on %s before version %s; 'weir history %s' lists them", id, component.ShortVersion(c.script.Version), id)
		}
		return v, nil
	}
	switch found := record.Find(prefix); len(found) {
	case 0:
		return v, fmt.Errorf("there is no version %s in the history of %s; 'weir history %s' lists them", prefix, id, id)
	case 1:
		return found[0], nil
	default:
		var ids []string
		for _, v := range found {
			ids = append(ids, v.ID)
		}
		return v, fmt.Errorf("version %s is not unique in the history of %s; write more characters of %s", prefix, id, strings.Join(ids, " or "))
	}
}

package versions

import (
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// History is the history of a node, for people.
type History struct {
	Node    string `json:"node"`
	Script  string `json:"script"`  // the component's name
	File    string `json:"file"`    // as shown to people
	Running string `json:"running"` // ID of the version that runs, or that was active last
	Stopped bool   `json:"stopped"` // no weir runs
	Pinned  *Pin   `json:"pinned"`  // null: it follows its files
	// Versions are the versions that were active on the node, or on others if none was,
	// the newest first.
	Versions []Entry `json:"versions"`
	// Refused are the versions of the script that did not become or stay active, the
	// newest first.
	Refused []Refusal `json:"refused"`
}

// Entry is a version in a History.
type Entry struct {
	ID     string     `json:"id"`
	Active time.Time  `json:"active"`           // since when, or when it was active last
	Passed *time.Time `json:"passed,omitempty"` // its tests; null if it did not run them
	Nodes  []string   `json:"nodes"`            // on which it was active, by name
	Files  []string   `json:"files"`            // that it is made of, the script first
}

// History returns the history of a node that runs a version.
func (r Record) History(node, file, running string) History {
	h := History{Node: node, Script: r.Script, File: file, Running: running, Versions: []Entry{}, Refused: []Refusal{}}
	if p, ok := r.Pinned(node); ok {
		h.Pinned = &p
	}
	for _, v := range slices.Backward(r.Of(node)) {
		e := Entry{ID: v.ID}
		e.Active, _ = v.Since(node)
		if !v.Passed.IsZero() {
			e.Passed = &v.Passed
		}
		for _, a := range v.Nodes {
			e.Nodes = append(e.Nodes, a.Node)
		}
		slices.Sort(e.Nodes)
		for _, src := range v.Sources {
			e.Files = append(e.Files, src.Path)
		}
		h.Versions = append(h.Versions, e)
	}
	for _, f := range slices.Backward(r.Refused) {
		if f.Node == "" || f.Node == node {
			f.Limits = "" // they are in the config
			h.Refused = append(h.Refused, f)
		}
	}
	return h
}

// Histories returns the histories of all nodes in the store, by name, while no weir runs.
// A node that has used several scripts has the history of the last one.
func (s *Store) Histories() (all []History) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.readAll()
	newest := map[string]History{}
	for _, r := range s.records {
		for _, v := range r.Versions {
			for _, a := range v.Nodes {
				last := r.LastGood(a.Node, "")
				if last == nil {
					continue
				}
				h := r.History(a.Node, filepath.Join(r.Dir, filepath.FromSlash(last.Sources[0].Path)), last.ID)
				h.Stopped = true
				if o, ok := newest[a.Node]; !ok || o.Versions[0].Active.Before(h.Versions[0].Active) {
					newest[a.Node] = h
				}
			}
		}
	}
	for _, h := range newest {
		all = append(all, h)
	}
	slices.SortFunc(all, func(a, b History) int { return strings.Compare(a.Node, b.Node) })
	return all
}

package versions

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
	"time"
)

const (
	// maxRefusals bounds the refusals of a script that are kept for a node, and those that
	// are for all nodes. maxAllRefusals bounds all of them, maxNodes the nodes that are
	// kept of a version, and maxReason the bytes of a reason.
	maxRefusals    = 20
	maxAllRefusals = 1000
	maxNodes       = 200
	maxReason      = 4 << 10
)

// Source is a file that a version is made of.
type Source struct {
	Path string `json:"path"` // below the folder of scripts, with slashes
	Hash string `json:"hash"` // of the text
	Size int64  `json:"size"` // of the text, in bytes
}

// File is a source with its text.
type File struct {
	Path string `json:"path"` // below the folder of scripts, with slashes
	Text string `json:"text"`
}

// Version is a version that was active.
type Version struct {
	ID      string    `json:"id"`             // of its content
	Sources []Source  `json:"sources"`        // the script, the files it imports, its test file
	Test    string    `json:"test,omitempty"` // path of the test file; "" without one
	Passed  time.Time `json:"passed,omitzero"`
	// Nodes are the nodes on which it was active, by the time it became active.
	Nodes []Activation `json:"nodes"`
}

// Activation says when a version became active on a node.
type Activation struct {
	Node string    `json:"node"`
	Time time.Time `json:"time"`
}

// Since returns when the version became active last; on any node if it was not
// active on this one, and then ok is false.
func (v Version) Since(node string) (t time.Time, ok bool) {
	for _, a := range v.Nodes {
		switch {
		case a.Node == node:
			return a.Time, true
		case a.Time.After(t):
			t = a.Time
		}
	}
	return t, false
}

// Refusal says why a version did not become or stay active.
type Refusal struct {
	ID     string    `json:"id"`
	Time   time.Time `json:"time"`
	Step   string    `json:"step"`           // component.StepTest and others, or StepRollback
	Node   string    `json:"node,omitempty"` // "" if it is for all nodes
	Reason string    `json:"reason"`
	// Limits are the settings of the step, as text. The refusal is in force as long as the
	// block has the same. "" for a step without settings.
	Limits string `json:"limits,omitempty"`
}

// StepRollback is the step of a Refusal by the user, who rolled a version back.
const StepRollback = "rollback"

// Pin says that a node runs a version although its files have another one.
type Pin struct {
	Node string    `json:"node"`
	ID   string    `json:"id"`
	Time time.Time `json:"time"`
	// Over is the Content that the files had; the pin ends when they have another.
	// "" if they could not be used.
	Over string `json:"over"`
}

// Record is what is known of a script.
type Record struct {
	Script   string    `json:"script"`   // the component's name
	Dir      string    `json:"dir"`      // its folder of scripts, absolute
	Versions []Version `json:"versions"` // by the time they became active last
	Refused  []Refusal `json:"refused,omitempty"`
	Pins     []Pin     `json:"pins,omitempty"`
}

// Passed returns the newest version that passed its tests and was not rolled back
// since; nil if there is none.
func (r Record) Passed() *Version {
	for i := len(r.Versions) - 1; i >= 0; i-- {
		if v := &r.Versions[i]; !v.Passed.IsZero() && !r.rolledBack(*v) {
			return v
		}
	}
	return nil
}

// LastGood returns the version that a node runs if the one on disk cannot be used: the
// pinned version, or the newest one that was not rolled back; nil if there is none.
// disk is the ID of the version on disk, which is left out; it may be empty.
func (r Record) LastGood(node, disk string) *Version {
	if p, ok := r.Pinned(node); ok {
		if i := slices.IndexFunc(r.Versions, func(v Version) bool { return v.ID == p.ID }); i >= 0 {
			return &r.Versions[i]
		}
	}
	for _, v := range slices.Backward(r.Of(node)) {
		if v.ID != disk && !r.rolledBack(v) {
			return &v
		}
	}
	return nil
}

// Refusal returns why a step with these limits refused a version for a node; nil if it
// did not, or if the version has become active there since.
func (r Record) Refusal(node, id, step, limits string) *Refusal {
	for i := range r.Refused {
		if f := &r.Refused[i]; f.ID == id && f.Step == step && f.Node == node && f.Limits == limits && r.inForce(*f) {
			return f
		}
	}
	return nil
}

// inForce reports whether a version has not become active since it was refused for a
// node.
func (r Record) inForce(f Refusal) bool {
	i := slices.IndexFunc(r.Versions, func(v Version) bool { return v.ID == f.ID })
	if i < 0 {
		return true
	}
	at, was := r.Versions[i].Since(f.Node)
	return !was || f.Time.After(at)
}

// rolledBack reports whether the user rolled a version back after it became active.
func (r Record) rolledBack(v Version) bool {
	f := r.Rejected(v.ID, StepRollback)
	return f != nil && f.Time.After(v.last())
}

// Rejected returns how a version failed its tests last; nil if it did not, or has
// passed since.
func (r Record) Rejected(id, step string) *Refusal {
	for i := len(r.Refused) - 1; i >= 0; i-- {
		if f := &r.Refused[i]; f.ID == id && f.Step == step {
			return f
		}
	}
	return nil
}

// Of returns the versions that were active on a node, by the time they became active
// there; all versions if none of them was.
func (r Record) Of(node string) []Version {
	own := slices.DeleteFunc(slices.Clone(r.Versions), func(v Version) bool { _, ok := v.Since(node); return !ok })
	slices.SortStableFunc(own, func(a, b Version) int {
		at, _ := a.Since(node)
		bt, _ := b.Since(node)
		return at.Compare(bt)
	})
	if len(own) == 0 {
		return r.Versions
	}
	return own
}

// Before returns the version that was active on a node before another; ok is false
// if there is none.
func (r Record) Before(node, id string) (v Version, ok bool) {
	all := r.Of(node)
	i := slices.IndexFunc(all, func(v Version) bool { return v.ID == id })
	if i < 0 {
		i = len(all)
	}
	if i == 0 {
		return v, false
	}
	return all[i-1], true
}

// Find returns the versions whose ID begins with a prefix.
func (r Record) Find(prefix string) (found []Version) {
	for _, v := range r.Versions {
		if strings.HasPrefix(v.ID, prefix) {
			found = append(found, v)
		}
	}
	return found
}

// Pinned returns the pin of a node; ok is false if it has none.
func (r Record) Pinned(node string) (p Pin, ok bool) {
	if i := slices.IndexFunc(r.Pins, func(p Pin) bool { return p.Node == node }); i >= 0 {
		return r.Pins[i], true
	}
	return p, false
}

func (r *Record) unpin(node string) {
	r.Pins = slices.DeleteFunc(r.Pins, func(p Pin) bool { return p.Node == node })
}

func (r Record) clone() Record {
	r.Versions, r.Refused, r.Pins = slices.Clone(r.Versions), slices.Clone(r.Refused), slices.Clone(r.Pins)
	for i, v := range r.Versions {
		r.Versions[i].Nodes = slices.Clone(v.Nodes)
	}
	return r
}

// refuse adds a refusal in place of the one with the same version, step and node. It
// reports whether the record changed. It does not change if it says the same already.
func (r *Record) refuse(f Refusal) bool {
	same := func(o Refusal) bool { return o.ID == f.ID && o.Step == f.Step && o.Node == f.Node }
	if i := slices.IndexFunc(r.Refused, same); i >= 0 && f.Step != StepRollback {
		if o := r.Refused[i]; o.Reason == f.Reason && o.Limits == f.Limits && (f.Node == "" || r.inForce(o)) {
			return false
		}
	}
	r.Refused = append(slices.DeleteFunc(r.Refused, same), f)
	ofNode := func(o Refusal) bool { return o.Node == f.Node }
	n := 0
	for _, o := range r.Refused {
		if ofNode(o) {
			n++
		}
	}
	if n > maxRefusals {
		i := slices.IndexFunc(r.Refused, ofNode)
		r.Refused = slices.Delete(r.Refused, i, i+1)
	}
	r.Refused = r.Refused[max(0, len(r.Refused)-maxAllRefusals):]
	return true
}

// activate notes that a version became active on a node, and reports whether the
// record changed. It does not change if the version was the last to become active there
// and was not refused since.
func (r *Record) activate(v Version, node string, at time.Time) bool {
	of := r.Of(node)
	i := slices.IndexFunc(r.Versions, func(o Version) bool { return o.ID == v.ID })
	if i < 0 {
		r.Versions = append(r.Versions, v)
		i = len(r.Versions) - 1
	} else {
		_, was := r.Versions[i].Since(node)
		refused := slices.ContainsFunc(r.Refused, func(f Refusal) bool { return f.ID == v.ID && f.Node == node && r.inForce(f) })
		if was && !refused && of[len(of)-1].ID == v.ID && (v.Passed.IsZero() || !r.Versions[i].Passed.IsZero() && r.Rejected(v.ID, stepTest) == nil) {
			return false
		}
		r.Versions[i].Sources, r.Versions[i].Test = v.Sources, v.Test
	}
	own := &r.Versions[i]
	if own.Passed.IsZero() {
		own.Passed = v.Passed
	}
	if !v.Passed.IsZero() {
		r.Refused = slices.DeleteFunc(r.Refused, func(f Refusal) bool { return f.ID == v.ID && f.Step == stepTest })
	}
	own.Nodes = slices.DeleteFunc(own.Nodes, func(a Activation) bool { return a.Node == node })
	own.Nodes = append(own.Nodes, Activation{node, at})
	slices.SortStableFunc(own.Nodes, func(a, b Activation) int { return a.Time.Compare(b.Time) })
	own.Nodes = own.Nodes[max(0, len(own.Nodes)-maxNodes):]
	slices.SortStableFunc(r.Versions, func(a, b Version) int { return a.last().Compare(b.last()) })
	return true
}

// stepTest is component.StepTest.
const stepTest = "test"

func (v Version) last() time.Time {
	if len(v.Nodes) == 0 {
		return time.Time{}
	}
	return v.Nodes[len(v.Nodes)-1].Time
}

// needed reports whether a version must be kept whatever the limits: it is the newest,
// the newest that passed its tests, or pinned.
func (r *Record) needed(i int) bool {
	v := &r.Versions[i]
	return i == len(r.Versions)-1 || v == r.Passed() || slices.ContainsFunc(r.Pins, func(p Pin) bool { return p.ID == v.ID })
}

// Content returns a hash of the files of a version without its test file, whose path
// may be empty.
func Content(files []File, test string) string {
	h := sha256.New()
	for _, f := range slices.SortedFunc(slices.Values(files), func(a, b File) int { return cmp.Compare(a.Path, b.Path) }) {
		if f.Path != test {
			h.Write([]byte(f.Path + "\x00" + hash(f.Text) + "\n"))
		}
	}
	return hex.EncodeToString(h.Sum(nil)[:12])
}

// hash names a text.
func hash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

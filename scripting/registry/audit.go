package registry

import (
	"crypto/sha256"
	"encoding/hex"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/weir-run/weir/engine/config"
	"github.com/weir-run/weir/scripting"
	"github.com/weir-run/weir/scripting/block"
)

// Audit describes a script for a review before it is trusted: its files, its
// abilities and its needs. It is the Registration.About of a scripted
// component.
type Audit struct {
	Name     string      `json:"name"`
	Kind     string      `json:"kind"`
	Language string      `json:"language"`
	Version  string      `json:"version"` // changes with its files, and with weir
	Files    []AuditFile `json:"files"`   // its own file first, then the modules that it requires
	Hooks    []string    `json:"hooks"`
	Needs    []string    `json:"needs"` // as text, such as `http https://geo.internal/*`
	State    []string    `json:"state"` // as text, such as `seen set(max 10000, persistent)`

	script *entry
}

// AuditFile is a file of a script.
type AuditFile struct {
	Name   string `json:"name"`   // as shown to people
	SHA256 string `json:"sha256"` // of its content, in hexadecimal digits
	// Shipped means that it ships with weir.
	Shipped bool `json:"ships_with_weir"`
	// Path is its absolute path, or "" for a shipped file.
	Path string `json:"-"`
}

// AuditBlock describes a block of a script.
type AuditBlock struct {
	Allow       AuditAllow        `json:"allow"`
	Missing     []string          `json:"missing"`  // what is needed and not granted
	Unneeded    []string          `json:"unneeded"` // what is granted and not needed
	Concurrency block.Concurrency `json:"concurrency"`
	OnError     scripting.OnError `json:"on_error"`
	OnReload    block.OnReload    `json:"on_reload"` // "": depends on whether it has tests
	Limits      map[string]any    `json:"limits"`    // as in the block script.limits, with the defaults
}

// AuditAllow contains the grants of a block as patterns.
type AuditAllow struct {
	HTTP []string `json:"http"`
	Env  []string `json:"env"`
	Read []string `json:"read"`
	Exec []string `json:"exec"`
}

// List returns the grants as text, like Audit.Needs.
func (a AuditAllow) List() (out []string) {
	for _, kind := range scripting.NeedKinds {
		for _, p := range map[string][]string{"http": a.HTTP, "env": a.Env, "read": a.Read, "exec": a.Exec}[kind] {
			out = append(out, kind+" "+p)
		}
	}
	return out
}

// audit describes the script. lang is its language, files are the files that it
// requires.
func (s *entry) audit(lang scripting.Language, files []scripting.File) *Audit {
	a := &Audit{
		Name: s.Name, Kind: string(s.Definition.Kind), Language: lang.Name(), Version: s.Version,
		Hooks: nonNil(s.Definition.Hooks), Needs: nonNil(s.Definition.Needs.List()), script: s,
	}
	for _, st := range s.Definition.State {
		a.State = append(a.State, st.Name+" "+st.String())
	}
	a.State = nonNil(a.State)
	for _, f := range append([]scripting.File{s.File}, files...) {
		sum := sha256.Sum256([]byte(f.Text))
		a.Files = append(a.Files, AuditFile{Name: f.Name, SHA256: hex.EncodeToString(sum[:]), Shipped: f.Path == "", Path: f.Path})
	}
	return a
}

// Block describes the arguments of a block of the script, a value from its
// registration's NewArgs.
func (a *Audit) Block(args any) AuditBlock {
	own := block.ArgumentsOf(a.script.Definition, args).Script
	b := AuditBlock{
		Allow:       AuditAllow{HTTP: nonNil(own.Allow.HTTP), Env: nonNil(own.Allow.Env), Read: nonNil(own.Allow.Read), Exec: nonNil(own.Allow.Exec)},
		Missing:     []string{},
		Unneeded:    []string{},
		Concurrency: own.Concurrency, OnError: own.OnError, OnReload: own.OnReload,
	}
	b.Limits, _ = config.Redact(own.Limits).(map[string]any)
	if own.Limits.State == 0 {
		delete(b.Limits, "state") // that of all nodes together
	}
	if g, err := own.Allow.Grants(); err == nil {
		for _, l := range block.MissingGrants(a.script.Definition.Needs, g) {
			b.Missing = append(b.Missing, l.What)
		}
	}
	unneeded := block.UnneededGrants(a.script.Definition.Needs, &own.Allow)
	for _, kind := range scripting.NeedKinds {
		for _, p := range unneeded[kind] {
			b.Unneeded = append(b.Unneeded, kind+" "+p)
		}
	}
	return b
}

// Paths returns the files of a script that do not ship with weir, and the
// folders that contain them, up to the folder of scripts. Anyone who can write
// to one of them can change the script. The paths are absolute and sorted.
func (a *Audit) Paths() []string {
	var out []string
	for _, f := range a.Files {
		if f.Shipped {
			continue
		}
		out = append(out, f.Path)
		for dir := filepath.Dir(f.Path); strings.HasPrefix(dir, a.script.dir); dir = filepath.Dir(dir) {
			out = append(out, dir)
			if dir == a.script.dir {
				break
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// Shown returns a path in the form in which the names of the script's files are
// shown.
func (a *Audit) Shown(p string) string {
	for _, f := range a.Files {
		for name, full := f.Name, f.Path; full != "" && name != "." && name != "/"; name, full = path.Dir(name), filepath.Dir(full) {
			if full == p {
				return name
			}
		}
	}
	return p
}

// nonNil makes JSON write a list.
func nonNil(list []string) []string {
	if list == nil {
		return []string{}
	}
	return list
}

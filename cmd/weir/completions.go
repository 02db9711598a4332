package main

import (
	"strings"

	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/config"
	"github.com/weir-run/weir/engine/service/http"
	"github.com/weir-run/weir/scripting"
	"github.com/weir-run/weir/scripting/api"
	"github.com/weir-run/weir/stdlib"
)

// completions returns a function that lists the names that an editor completes: those that
// scripts in a language use, or the arguments of a component of the catalogs.
func completions(catalogs func() []component.Catalog) func(of string) ([]http.Completion, bool) {
	return func(of string) ([]http.Completion, bool) {
		if of == "ts" {
			of = string(api.JS) // the names are the same
		}
		if of == string(api.Lua) || of == string(api.JS) {
			return scriptCompletions(api.Lang(of)), true
		}
		r, ok := lookup(catalogs(), of)
		if !ok || r.Err != nil {
			return nil, false
		}
		return blockCompletions(r), true
	}
}

// scriptCompletions returns the entries of the manual of a language, and the fields of
// types.
func scriptCompletions(lang api.Lang) []http.Completion {
	out := []http.Completion{}
	for _, e := range api.NewBook(stdlib.Modules()).Entries() {
		if !e.Has(lang) {
			continue
		}
		call, owner := e.Head, e.Name
		if lang == api.JS {
			call, owner = strings.Trim(e.JS, `"`), strings.TrimPrefix(e.Name, "weir.")
		}
		if e.Area {
			for _, f := range e.Fields {
				name := f.Name
				if lang == api.JS {
					name = scripting.CamelCase(name)
				}
				out = append(out, http.Completion{Name: name, Of: owner, Call: name, Doc: firstSentence(f.Doc)})
			}
		}
		path, _, called := strings.Cut(call, "(")
		if strings.Contains(path, " ") {
			continue // a field that is described as an entry
		}
		c := http.Completion{Name: path[strings.LastIndexAny(path, ".:")+1:], Call: call, Doc: firstSentence(e.Doc), Function: called}
		if i := strings.LastIndex(owner, "."); i >= 0 {
			c.Of = owner[:i]
		}
		out = append(out, c)
	}
	return out
}

// blockCompletions returns the arguments of a component.
func blockCompletions(r component.Registration) []http.Completion {
	out := []http.Completion{}
	if r.NewArgs == nil {
		return out
	}
	var blocks []string // that contain arguments; their names may have dots
	for _, f := range config.Describe(r.NewArgs()) {
		c := http.Completion{Name: f.Path, Call: f.Type, Doc: firstSentence(r.Doc.Args[f.Path]), Block: f.Block}
		for _, b := range blocks {
			if rest, ok := strings.CutPrefix(f.Path, b+"."); ok && len(b) > len(c.Of) {
				c.Name, c.Of = rest, b
			}
		}
		if f.Block && !strings.HasSuffix(f.Path, ".*") {
			blocks = append(blocks, f.Path)
		}
		out = append(out, c)
	}
	return out
}

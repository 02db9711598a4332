// Package docs contains the manual of every native component. It is generated
// from the source code: the first paragraph of a component's package comment is
// its summary, the comments on the fields of its Arguments and Exports are their
// manuals, and example.alloy in its directory is its example.
//
// It is data only and imports no component. Package natives adds the manual to
// each registration with Of. After changing a comment, run `go generate
// ./natives/docs`; a test of this package checks it.
package docs

import "github.com/weir-run/weir/engine/component"

//go:generate go run ./gen

// Of returns the registration with its manual. An existing summary stays;
// components have one if their package comment is only for programmers.
func Of(r component.Registration) component.Registration {
	own := r.Doc.Summary
	r.Doc = byName[r.Name]
	if own != "" {
		r.Doc.Summary = own
	}
	return r
}

// Package ui is the web UI of weir: a bundle of the TypeScript in src, which the
// service http serves. It consumes the HTTP API only.
//
// 'go generate ./ui' writes dist. It needs npm, while building weir does not,
// because dist is committed.
package ui

//go:generate npm ci --silent
//go:generate go run ./bundle

import (
	"embed"
	"io/fs"
)

//go:embed dist
var dist embed.FS

// Files returns the files of the web UI: index.html and the files that it loads from the
// folder ui.
func Files() fs.FS {
	f, err := fs.Sub(dist, "dist")
	if err != nil {
		panic("BUG: " + err.Error()) // the name is constant
	}
	return f
}

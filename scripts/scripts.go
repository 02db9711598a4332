// Package scripts embeds the scripted components that ship with weir, in the
// layout of a user's scripts folder: demo/tidy.lua is demo.tidy. A user's file
// of the same name replaces one.
package scripts

import "embed"

// FS has the scripts, and the modules they share below lib.
//
//go:embed demo discovery enrich http lib logs metrics sink source
var FS embed.FS

package node

import (
	"github.com/weir-run/weir/scripting"
	"github.com/weir-run/weir/scripting/host"
)

// Script is a compiled script, as its components need it.
type Script struct {
	Name       string // of the block
	Version    string // changes with the files that it is made of
	File       scripting.File
	Program    scripting.Program
	Definition *scripting.Definition
	NewArgs    func() any // arguments with the defaults filled in
	Outside    host.Outside
	Modules    []*scripting.Module                   // the standard library
	Recompile  func(scripting.File) (*Script, error) // the same component from another text
	History    *History                              // nil: its versions are not kept
}

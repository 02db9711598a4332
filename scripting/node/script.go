package node

import (
	"context"

	"github.com/weir-run/weir/scripting"
	"github.com/weir-run/weir/scripting/host"
)

// Script is a compiled script with the data that its components need.
type Script struct {
	Name       string // name of the block
	Version    string // changes with the files of the script
	File       scripting.File
	Folder     string // absolute, the folder of scripts that contains the file; "" without
	Program    scripting.Program
	Definition *scripting.Definition
	NewArgs    func() any // creates arguments with their defaults
	Outside    host.Outside
	Modules    []*scripting.Module                   // the standard library
	Recompile  func(scripting.File) (*Script, error) // compiles another text as the same component
	// Debug compiles the script again, with a debugger.
	Debug func(*scripting.Debug) (scripting.Program, error)
	// Tests runs the tests of the script as it is on disk; nil: it ships with weir.
	Tests   func(context.Context) (*TestReport, error)
	History *History // nil if its versions are not kept
}

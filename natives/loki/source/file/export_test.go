package file

import (
	"os"

	"github.com/weir-run/weir/engine/component"
)

// SetOpen makes c, which does not run yet, open files by open.
func SetOpen(c component.Component, open func(path string) (*os.File, error)) {
	c.(*Component).openFile = open
}

// Open opens a file as a component does.
func Open(path string) (*os.File, error) { return openFile(path) }

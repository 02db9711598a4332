package file

import (
	"os"

	"github.com/weir-run/weir/engine/component"
)

// SetOpen makes c, which does not run yet, open files by open.
func SetOpen(c component.Component, open func(path string) (*os.File, error)) {
	c.(*Component).openFile = open
}

// SetBoot makes c, which does not run yet, believe in a life of the machine.
func SetBoot(c component.Component, boot string) {
	c.(*Component).boot = func() string { return boot }
}

// SetMaxRotated makes c, which does not run yet, keep fewer rotated files open.
func SetMaxRotated(c component.Component, n int64) { c.(*Component).maxRotated = n }

// HideWriters makes c, which does not run yet, unable to tell which files have
// writers.
func HideWriters(c component.Component) {
	c.(*Component).writersOf = func(*os.File) writers { return unknownWriter }
}

// Open opens a file as a component does.
func Open(path string) (*os.File, error) { return openFile(path) }

package file

import (
	"os"

	"github.com/weir-run/weir/engine/component"
)

// SetOpen makes c open files with open. c must not run yet.
func SetOpen(c component.Component, open func(path string) (*os.File, error)) {
	c.(*Component).openFile = open
}

// SetBoot sets the boot ID that c uses. c must not run yet.
func SetBoot(c component.Component, boot string) {
	c.(*Component).boot = func() string { return boot }
}

// SetMaxRotated sets the number of rotated files that c keeps open. c must not
// run yet.
func SetMaxRotated(c component.Component, n int64) { c.(*Component).maxRotated = n }

// HideWriters prevents c from finding out which files have writers. c must not
// run yet.
func HideWriters(c component.Component) {
	c.(*Component).writersOf = func(*os.File) writers { return unknownWriter }
}

// Open opens a file like a component.
func Open(path string) (*os.File, error) { return openFile(path) }

//go:build !linux

package file

import "os"

// writersOf returns noWriter, because there is no way to find other writers: an
// idle rotated file is considered to have none.
func writersOf(*os.File) writers { return noWriter }

// currentPath returns "", because the path of an open file is unknown.
func currentPath(*os.File, identity) string { return "" }

//go:build !unix

package files

import "io/fs"

// keepOwner does nothing on this system.
func keepOwner(string, fs.FileInfo) error { return nil }

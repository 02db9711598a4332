//go:build !unix

package main

import "io/fs"

// keepOwner does nothing on this system.
func keepOwner(string, fs.FileInfo) error { return nil }

// writableBy returns "" on systems without Unix permissions.
func writableBy(string) string { return "" }

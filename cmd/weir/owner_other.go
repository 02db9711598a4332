//go:build !unix

package main

import "io/fs"

// keepOwner does nothing here.
func keepOwner(string, fs.FileInfo) error { return nil }

// writableBy says nothing where permissions are not Unix's.
func writableBy(string) string { return "" }

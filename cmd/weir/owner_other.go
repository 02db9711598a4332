//go:build !unix

package main

// writableBy returns "" on systems without Unix permissions.
func writableBy(string) string { return "" }

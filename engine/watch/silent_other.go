//go:build !linux

package watch

// silentFileSystem knows no file system here.
func silentFileSystem(string) string { return "" }

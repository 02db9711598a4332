//go:build !linux

package files

// mountOf returns "/", because mount points are not known on this platform.
func mountOf(string) string { return "/" }

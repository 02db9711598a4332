//go:build !unix

package template

import "os"

// owner returns -1: Validate refuses owners on other systems.
func owner(string, string) (uid, gid int, err error) { return -1, -1, nil }

func owned(os.FileInfo, int, int) bool { return true }

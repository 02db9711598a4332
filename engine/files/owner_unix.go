//go:build unix

package files

import (
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// keepOwner gives a new file the owner and group of the file that it replaces. If
// root writes a file, its owner must still be able to read it.
func keepOwner(path string, old fs.FileInfo) error {
	fi, err := os.Stat(path)
	if err != nil {
		return err
	}
	want, ok := old.Sys().(*syscall.Stat_t)
	if !ok {
		return nil
	}
	if have, ok := fi.Sys().(*syscall.Stat_t); ok && have.Uid == want.Uid && have.Gid == want.Gid {
		return nil
	}
	if err := os.Chown(path, int(want.Uid), int(want.Gid)); err != nil {
		return fmt.Errorf("it would no longer belong to user %d and group %d: %w", want.Uid, want.Gid, err)
	}
	return nil
}

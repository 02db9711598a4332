//go:build unix

package main

import (
	"fmt"
	"io/fs"
	"os"
	"strings"
	"syscall"
)

// keepOwner gives a new file the owner and group of the file that it replaces. If
// root formats a file, its owner must still be able to read it.
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

// writableBy returns the reasons why users other than root and the current user can
// change a file or folder, or "" if there are none. In a folder with the sticky bit,
// such as /tmp, users cannot replace files of other users.
func writableBy(path string) string {
	fi, err := os.Stat(path)
	if err != nil {
		return fmt.Sprintf("cannot be looked at: %v", err)
	}
	mode := fi.Mode()
	var who []string
	if st, ok := fi.Sys().(*syscall.Stat_t); ok && st.Uid != 0 && int(st.Uid) != os.Geteuid() {
		who = append(who, fmt.Sprintf("belongs to user %d", st.Uid))
	}
	switch sticky := fi.IsDir() && mode&fs.ModeSticky != 0; {
	case sticky:
	case mode.Perm()&0o002 != 0:
		who = append(who, "can be written by everybody")
	case mode.Perm()&0o020 != 0:
		who = append(who, "can be written by its group")
	}
	if len(who) == 0 {
		return ""
	}
	return fmt.Sprintf("%s (mode %04o)", strings.Join(who, " and "), mode.Perm())
}

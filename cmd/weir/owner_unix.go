//go:build unix

package main

import (
	"fmt"
	"io/fs"
	"os"
	"strings"
	"syscall"
)

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

//go:build unix

package template

import (
	"fmt"
	"os"
	"os/user"
	"strconv"
	"syscall"
)

// owner returns the numbers of a user and a group; -1 for "".
func owner(name, group string) (uid, gid int, err error) {
	uid, gid = -1, -1
	if name != "" {
		if uid, err = strconv.Atoi(name); err != nil {
			u, err := user.Lookup(name)
			if err != nil {
				return 0, 0, fmt.Errorf("cannot find the owner: %w", err)
			}
			uid, _ = strconv.Atoi(u.Uid) // a number on Unix
		}
	}
	if group != "" {
		if gid, err = strconv.Atoi(group); err != nil {
			g, err := user.LookupGroup(group)
			if err != nil {
				return 0, 0, fmt.Errorf("cannot find the group: %w", err)
			}
			gid, _ = strconv.Atoi(g.Gid)
		}
	}
	return uid, gid, nil
}

// owned reports whether a file has the owner and the group; -1 is any.
func owned(fi os.FileInfo, uid, gid int) bool {
	s, ok := fi.Sys().(*syscall.Stat_t)
	return !ok || (uid < 0 || int(s.Uid) == uid) && (gid < 0 || int(s.Gid) == gid)
}

//go:build darwin || freebsd

package file

import (
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// creationTime returns when f was created, or the zero time if it is not known.
func creationTime(f *os.File) time.Time {
	var st unix.Stat_t
	if unix.Fstat(int(f.Fd()), &st) != nil {
		return time.Time{}
	}
	return time.Unix(st.Btim.Unix())
}

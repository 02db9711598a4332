package file

import (
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// creationTime returns when f was created, or the zero time if it is not known.
func creationTime(f *os.File) time.Time {
	var st unix.Statx_t
	err := unix.Statx(int(f.Fd()), "", unix.AT_EMPTY_PATH, unix.STATX_BTIME, &st)
	if err != nil || st.Mask&unix.STATX_BTIME == 0 {
		return time.Time{}
	}
	return time.Unix(st.Btime.Sec, int64(st.Btime.Nsec))
}

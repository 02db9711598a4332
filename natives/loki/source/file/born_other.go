//go:build unix && !linux && !darwin && !freebsd

package file

import (
	"os"
	"time"
)

// creationTime returns the zero time: the creation time is not known on this
// system.
func creationTime(*os.File) time.Time { return time.Time{} }

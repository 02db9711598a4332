package files

import (
	"os"
	"slices"
	"strings"
	"sync"
	"time"
)

// mounts caches the mount points for a short time, because many hanging calls
// may need them.
var mounts struct {
	mu     sync.Mutex
	read   time.Time
	points []string // longest first
}

// mountsFor is how long the list of mount points is used.
const mountsFor = time.Second

// mountOf returns the mount point of the file system with the absolute path.
func mountOf(path string) string {
	mounts.mu.Lock()
	defer mounts.mu.Unlock()
	if age := time.Since(mounts.read); age < 0 || age >= mountsFor {
		mounts.read, mounts.points = time.Now(), mountPoints()
	}
	for _, point := range mounts.points {
		if isBelow(point, path) {
			return point
		}
	}
	return "/"
}

// mountPoints returns all mount points, longest first.
func mountPoints() (points []string) {
	// https://man7.org/linux/man-pages/man5/proc_pid_mountinfo.5.html: the fifth
	// field is the mount point, with escapes such as \040 for a space.
	table, _ := os.ReadFile("/proc/self/mountinfo") // on error, everything is on the root
	for line := range strings.Lines(string(table)) {
		if fields := strings.Fields(line); len(fields) >= 5 {
			points = append(points, unescape.Replace(fields[4]))
		}
	}
	slices.SortFunc(points, func(a, b string) int { return len(b) - len(a) })
	return points
}

var unescape = strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`)

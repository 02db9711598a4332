package file

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/files"
	"github.com/weir-run/weir/engine/glob"
)

// target is a path with the labels of its lines.
type target struct {
	path   string
	labels []batch.Label // sorted, without empty values
	key    string        // of all labels except filename, in Alloy's format
}

// id identifies a target within a component.
func (t *target) id() string { return t.path + "\x00" + t.key }

// newTarget returns the target of a path with the labels of a set.
func newTarget(path string, set map[string]string) target {
	t := target{path: path}
	var key strings.Builder
	for _, name := range slices.Sorted(maps.Keys(set)) {
		v := set[name]
		if v == "" || strings.HasPrefix(name, "__") {
			continue
		}
		if key.Len() > 0 {
			key.WriteString(", ")
		}
		fmt.Fprintf(&key, "%s=%q", name, v)
		if name != filenameLabel {
			t.labels = append(t.labels, batch.Label{Name: name, Value: v})
		}
	}
	t.key = "{" + key.String() + "}"
	t.labels = append(t.labels, batch.Label{Name: filenameLabel, Value: path})
	slices.SortFunc(t.labels, func(a, b batch.Label) int { return strings.Compare(a.Name, b.Name) })
	return t
}

// resolveTargets returns the targets of the arguments without duplicates, the
// problems with them, and the file system lookup. It skips the files in storage,
// weir's storage directory.
func resolveTargets(a *Arguments, storage string, now time.Time) (ts []target, troubles []string, look *glob.Look) {
	seen := map[string]bool{}
	add := func(path string, set map[string]string) {
		if t := newTarget(path, set); !seen[t.id()] {
			seen[t.id()] = true
			ts = append(ts, t)
		}
	}
	look = glob.NewLook(storage)
	var oldest time.Time
	if a.FileMatch.IgnoreOlderThan > 0 {
		oldest = now.Add(-a.FileMatch.IgnoreOlderThan)
	}
	for i, set := range a.Targets {
		path := set[pathLabel]
		switch {
		case path == "":
			troubles = append(troubles, fmt.Sprintf("targets[%d] has no label %s", i, pathLabel))
		case !a.FileMatch.Enabled:
			if !look.IsOwn(files.Absolute(path)) {
				add(path, set)
			}
		default:
			for _, found := range look.Find(path, set[excludeLabel], oldest) {
				add(found, set)
			}
		}
	}
	return ts, append(troubles, look.Troubles()...), look
}

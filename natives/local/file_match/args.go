package filematch

import (
	"errors"
	"fmt"
	"time"

	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/glob"
)

// Labels of targets that have a meaning for the component.
const (
	pathLabel    = "__path__"
	excludeLabel = "__path_exclude__"
)

// Arguments of local.file_match.
type Arguments struct {
	// Targets whose label __path__ is a pattern (*, ?, [a-z], {a,b}, and ** for any
	// number of directories). Files that match the pattern in the optional label
	// __path_exclude__ are skipped. A relative path is relative to the working directory
	// of weir. Targets without __path__ match nothing. Files in weir's storage directory
	// are skipped.
	PathTargets []map[string]string `alloy:"path_targets,attr"`
	// Interval between two searches of the file system.
	SyncPeriod time.Duration `alloy:"sync_period,attr,optional"`
	// Files that have not been written to for longer than this are skipped; 0s disables
	// the limit.
	IgnoreOlderThan time.Duration `alloy:"ignore_older_than,attr,optional"`
}

// SetToDefault sets the defaults of Alloy.
func (a *Arguments) SetToDefault() { *a = Arguments{SyncPeriod: 10 * time.Second} }

// Validate returns all errors in the arguments, joined.
func (a *Arguments) Validate() error {
	var errs []error
	for i, t := range a.PathTargets {
		for _, label := range []string{pathLabel, excludeLabel} {
			if !glob.Valid(t[label]) {
				errs = append(errs, fmt.Errorf("path_targets[%d]: %s %q is no pattern: a bracket is not closed, or a range ends before it begins", i, label, t[label]))
			}
		}
	}
	if a.SyncPeriod <= 0 {
		errs = append(errs, fmt.Errorf("sync_period is %s, must be greater than 0", a.SyncPeriod))
	}
	if a.IgnoreOlderThan < 0 {
		errs = append(errs, fmt.Errorf("ignore_older_than is %s, must not be negative", a.IgnoreOlderThan))
	}
	return errors.Join(errs...)
}

var _ component.StorageChecker = (*Arguments)(nil)

// CheckStorage warns about patterns that match weir's own files.
func (a *Arguments) CheckStorage(dir string) []*component.ArgumentError {
	return glob.CheckStorage("path_targets", a.PathTargets, true, dir)
}

// Exports of local.file_match.
type Exports struct {
	// One target per file, in the order of path_targets and then of paths. A target has
	// the labels of the first pattern that matched it, with the absolute path of the
	// file as __path__.
	Targets []map[string]string `alloy:"targets,attr"`
}

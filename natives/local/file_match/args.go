package filematch

import (
	"errors"
	"fmt"
	"time"

	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/glob"
)

// The labels with a meaning here.
const (
	pathLabel    = "__path__"
	excludeLabel = "__path_exclude__"
)

// Arguments of local.file_match.
type Arguments struct {
	// Targets whose label __path__ is a pattern (*, ?, [a-z], {a,b}, and ** for
	// any number of directories); files that match the pattern in the label
	// __path_exclude__, if there is one, are left out. A relative path starts
	// where weir was started. Targets without __path__ match nothing. Files in
	// weir's storage directory are left out.
	PathTargets []map[string]string `alloy:"path_targets,attr"`
	// How often the file system is looked at.
	SyncPeriod time.Duration `alloy:"sync_period,attr,optional"`
	// Files that were not written to for so long are left out; 0s leaves none
	// out.
	IgnoreOlderThan time.Duration `alloy:"ignore_older_than,attr,optional"`
}

// SetToDefault sets the defaults of Alloy.
func (a *Arguments) SetToDefault() { *a = Arguments{SyncPeriod: 10 * time.Second} }

// Validate returns all that is wrong with the arguments, joined.
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
	// A target for each file, in the order of path_targets and then of paths:
	// the labels of the one that it matched, with the file's absolute path as
	// __path__.
	Targets []map[string]string `alloy:"targets,attr"`
}

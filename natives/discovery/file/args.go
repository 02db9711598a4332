package file

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"
)

// Arguments of discovery.file.
type Arguments struct {
	// Files with targets in the format of Prometheus's file service discovery. Their
	// names end in .json, .yml or .yaml, and the last element of a path may be a
	// pattern, such as /etc/targets/*.json. A relative path is relative to the working
	// directory of weir. Each file must be a regular file of at most 32 MiB. weir reads
	// a file as soon as it changes.
	Files []string `alloy:"files,attr"`
	// How often the files are read even if no change was reported, for file systems
	// without change notifications.
	RefreshInterval time.Duration `alloy:"refresh_interval,attr,optional"`
}

// SetToDefault sets the defaults of Alloy.
func (a *Arguments) SetToDefault() {
	*a = Arguments{RefreshInterval: 5 * time.Minute}
}

// Validate returns all errors in the arguments, joined.
func (a *Arguments) Validate() error {
	var errs []error
	add := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if len(a.Files) == 0 {
		add("files must not be empty")
	}
	for _, f := range a.Files {
		switch strings.ToLower(filepath.Ext(f)) {
		case ".json", ".yml", ".yaml":
		default:
			add("files: %q must end in .json, .yml or .yaml", f)
		}
		if dir := filepath.Dir(f); strings.Contains(dir, "*") {
			add("files: %q may have a * only behind the last /", f)
		}
		if _, err := filepath.Match(f, ""); err != nil {
			add("files: %q is no pattern: %w", f, err)
		}
	}
	if a.RefreshInterval <= 0 {
		add("refresh_interval is %s, must be greater than 0", a.RefreshInterval)
	}
	return errors.Join(errs...)
}

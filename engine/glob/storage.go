package glob

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/files"
)

// IsOwn reports whether a file is in the storage directory of weir, which
// writes to its files when it reads lines. Symbolic links on the path to either
// are resolved.
func (s *Look) IsOwn(file string) bool {
	if s.storage == "" {
		return false
	}
	own := inside(s.storage, s.real(filepath.Dir(file)))
	if fi, err := callWithDeadline(s, file, "looking at", os.Lstat); !own && err == nil && fi.Mode()&fs.ModeSymlink != 0 {
		resolved, err := callWithDeadline(s, file, "following", filepath.EvalSymlinks)
		own = err == nil && inside(s.storage, resolved)
	}
	if own {
		s.own = file
	}
	return own
}

// Own returns one of the excluded files in the storage directory, or "".
func (s *Look) Own() string { return s.own }

// inside reports whether path is dir or below it. Both are clean.
func inside(dir, path string) bool {
	rest, ok := strings.CutPrefix(path, dir)
	return ok && (rest == "" || os.IsPathSeparator(rest[0]) || os.IsPathSeparator(dir[len(dir)-1]))
}

// CheckStorage returns warnings about the targets in attribute attr that name
// files in storage, weir's storage directory: these are not read. The label
// __path__ is a pattern if patterns is true. There is no warning for files that
// __path_exclude__ excludes.
func CheckStorage(attr string, targets []map[string]string, patterns bool, storage string) (es []*component.ArgumentError) {
	warn := func(err error, detail string) {
		es = append(es, &component.ArgumentError{Path: attr, Err: err, Detail: detail, Warning: true})
	}
	look := newLook(storage, true)
	for i, t := range targets {
		switch path := t["__path__"]; {
		case path == "":
		case !patterns:
			if look.IsOwn(files.Absolute(path)) {
				warn(fmt.Errorf("%s[%d]: __path__ %q is in weir's storage directory %s and is not read", attr, i, path, storage), "")
			}
		case Valid(path) && look.reaches(path, storage) && !leavesOut(t["__path_exclude__"], storage):
			warn(fmt.Errorf("%s[%d]: __path__ %q also matches files in weir's storage directory %s, which are not read", attr, i, path, storage),
				fmt.Sprintf("use a narrower pattern, or leave the directory out: __path_exclude__ = %q", filepath.ToSlash(filepath.Join(storage, "**"))))
		}
	}
	return es
}

// leavesOut reports whether an exclude pattern matches weir's files below dir,
// by absolute path or relative to the working directory.
func leavesOut(exclude, dir string) bool {
	file := filepath.Join(dir, "node", "positions.log")
	rel, err := filepath.Rel(files.Absolute("."), file)
	return excluded(exclude, file) || err == nil && excluded(exclude, rel)
}

// reaches reports whether a valid pattern can match files below dir, which is
// absolute, even if there are none. A part of a pattern with braces around a
// slash matches nothing here.
func (s *Look) reaches(pattern, dir string) bool {
	base, rest := doublestar.SplitPattern(filepath.ToSlash(filepath.Clean(pattern)))
	base = files.Absolute(filepath.FromSlash(base))
	for _, base := range []string{base, s.real(base)} {
		for _, dir := range []string{dir, s.real(dir)} {
			if inside(dir, base) {
				return true
			}
			if below, err := filepath.Rel(base, dir); err == nil && inside(base, dir) &&
				leads(strings.Split(rest, "/"), strings.Split(filepath.ToSlash(below), "/")) {
				return true
			}
		}
	}
	return false
}

// leads reports whether the elements of a pattern can match those of a path
// below a directory.
func leads(pattern, dir []string) bool {
	switch {
	case len(dir) == 0:
		return len(pattern) > 0
	case len(pattern) == 0:
		return false
	case pattern[0] == "**":
		return leads(pattern[1:], dir) || leads(pattern, dir[1:])
	}
	ok, err := doublestar.Match(pattern[0], dir[0])
	return ok && err == nil && leads(pattern[1:], dir[1:])
}

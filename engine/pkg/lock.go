package pkg

import (
	"cmp"
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/weir-run/weir/engine/files"
)

// lockVersion is the version of the format of weir.lock.
const lockVersion = 1

// lockHead is the beginning of weir.lock.
const lockHead = `# Written by 'weir pkg lock'. Keep this file under version control, with the config.
`

// Lock lists the packages that a config imports, with the digests that its owner
// has accepted.
type Lock struct {
	// Packages are sorted by path.
	Packages []Locked
}

// Locked is a package in a lock file.
type Locked struct {
	// Path is the folder of the package, relative to the folder of the lock file,
	// with slashes. It may be outside of this folder.
	Path string `toml:"path"`
	// Name and Version are those of the manifest.
	Name    string `toml:"name"`
	Version string `toml:"version"`
	// Digest is Sums.Digest of the package.
	Digest string `toml:"digest"`
}

// lockFile is the format of weir.lock.
type lockFile struct {
	Version  int      `toml:"version"`
	Packages []Locked `toml:"package"`
}

// LockPath returns the path of the lock file of a config, which is a file or a
// directory: it is next to the file or in the directory.
func LockPath(config string) string {
	if files.IsDir(config) {
		return filepath.Join(config, LockName)
	}
	return filepath.Join(filepath.Dir(config), LockName)
}

var digest = regexp.MustCompile(`^sha256:[0-9a-f]{64}$`)

// ReadLock reads a lock file. If there is none, the error wraps fs.ErrNotExist.
func ReadLock(file string) (*Lock, error) {
	text, err := files.Read(file, maxText)
	if err != nil {
		return nil, fmt.Errorf("cannot read the lock file: %w", err)
	}
	var f lockFile
	if err := decode(file, text, &f); err != nil {
		return nil, err
	}
	if f.Version != lockVersion {
		return nil, fmt.Errorf("%s: the lock file has version %d, and this weir reads version %d: use the version of weir that wrote it, or delete the file and run 'weir pkg lock'", file, f.Version, lockVersion)
	}
	l := &Lock{}
	var errs []error
	for i, p := range f.Packages {
		switch {
		case p.Path == "" || p.Path != path.Clean(p.Path):
			errs = append(errs, fmt.Errorf("%s: package %d has the path %q, must be a clean path with slashes", file, i+1, p.Path))
		case !digest.MatchString(p.Digest):
			errs = append(errs, fmt.Errorf("%s: %s has the digest %q, must be sha256: and 64 hexadecimal digits", file, p.Path, p.Digest))
		case l.Package(p.Path) != nil:
			errs = append(errs, fmt.Errorf("%s: %s occurs twice", file, p.Path))
		default:
			errs = append(errs, CheckName(p.Name), CheckVersion(p.Version))
		}
		l.Packages = append(l.Packages, p)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	l.sort()
	return l, nil
}

func (l *Lock) sort() {
	slices.SortFunc(l.Packages, func(a, b Locked) int { return cmp.Compare(a.Path, b.Path) })
}

// Package returns the entry of the package in a folder, or nil. The path is that
// of Locked.
func (l *Lock) Package(path string) *Locked {
	for i := range l.Packages {
		if l.Packages[i].Path == path {
			return &l.Packages[i]
		}
	}
	return nil
}

// Text returns the lock file, which depends only on the packages and not on their
// order. The error is that a path cannot be written.
func (l *Lock) Text() (string, error) {
	sorted := &Lock{Packages: slices.Clone(l.Packages)}
	sorted.sort()
	var b strings.Builder
	fmt.Fprintf(&b, "%sversion = %d\n", lockHead, lockVersion)
	for _, p := range sorted.Packages {
		if hasControl(p.Path) || !utf8.ValidString(p.Path) {
			return "", fmt.Errorf("cannot write %q into the lock file: rename the folder, without control characters", p.Path)
		}
		fmt.Fprintf(&b, "\n[[package]]\npath = %s\nname = %s\nversion = %s\ndigest = %s\n", quote(p.Path), quote(p.Name), quote(p.Version), quote(p.Digest))
	}
	return b.String(), nil
}

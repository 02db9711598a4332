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
	// Packages are sorted by path and source.
	Packages []Locked
}

// Locked is a local package or the content of a remote source in a lock file.
type Locked struct {
	// Path is the folder of a local package, relative to the folder of the lock file,
	// with slashes. It may be outside of this folder.
	Path string `toml:"path"`
	// Source is where remote content is, as in "https://host/acme.tar.gz". Either Path or
	// Source is empty.
	Source string `toml:"source"`
	// Name and Version are those of the manifest. They are empty for remote content that
	// is not a package.
	Name    string `toml:"name"`
	Version string `toml:"version"`
	// Revision is the commit or the digest of the manifest of remote content. It is empty
	// if the source has neither.
	Revision string `toml:"revision"`
	// Digest is Sums.Digest of the package.
	Digest string `toml:"digest"`
}

// Where returns the path or the source.
func (p Locked) Where() string { return cmp.Or(p.Source, p.Path) }

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
		case p.Source == "" && (p.Path == "" || p.Path != path.Clean(p.Path)):
			errs = append(errs, fmt.Errorf("%s: package %d has the path %q, must be a clean path with slashes", file, i+1, p.Path))
		case p.Source != "" && p.Path != "":
			errs = append(errs, fmt.Errorf("%s: package %d has a path and a source, must have one of them", file, i+1))
		case !digest.MatchString(p.Digest):
			errs = append(errs, fmt.Errorf("%s: %s has the digest %q, must be sha256: and 64 hexadecimal digits", file, p.Where(), p.Digest))
		case l.find(p.Path, p.Source) != nil:
			errs = append(errs, fmt.Errorf("%s: %s occurs twice", file, p.Where()))
		case p.Source != "" && p.Name == "" && p.Version == "": // not a package
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
	slices.SortFunc(l.Packages, func(a, b Locked) int {
		return cmp.Or(cmp.Compare(a.Path, b.Path), cmp.Compare(a.Source, b.Source))
	})
}

// Package returns the entry of the package in a folder, or nil. The path is that
// of Locked.
func (l *Lock) Package(path string) *Locked { return l.find(path, "") }

// Source returns the entry of a remote source, or nil.
func (l *Lock) Source(source string) *Locked { return l.find("", source) }

// Set adds the entry of a remote source, or replaces it.
func (l *Lock) Set(p Locked) {
	if old := l.Source(p.Source); old != nil {
		*old = p
		return
	}
	l.Packages = append(l.Packages, p)
	l.sort()
}

// Find returns the entry with the path and the source of p, or nil.
func (l *Lock) Find(p Locked) *Locked { return l.find(p.Path, p.Source) }

func (l *Lock) find(path, source string) *Locked {
	for i := range l.Packages {
		if l.Packages[i].Path == path && l.Packages[i].Source == source {
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
		if where := p.Where(); hasControl(where) || !utf8.ValidString(where) {
			return "", fmt.Errorf("cannot write %q into the lock file: rename it, without control characters", where)
		}
		b.WriteString("\n[[package]]\n")
		for _, f := range [][2]string{{"path", p.Path}, {"source", p.Source}, {"name", p.Name}, {"version", p.Version}, {"revision", p.Revision}, {"digest", p.Digest}} {
			if f[1] != "" {
				fmt.Fprintf(&b, "%s = %s\n", f[0], quote(f[1]))
			}
		}
	}
	return b.String(), nil
}

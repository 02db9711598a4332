package pkg

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/weir-run/weir/engine/files"
)

// Limits of a package.
const (
	MaxFile  = 16 << 20  // bytes of one file
	MaxBytes = 128 << 20 // bytes of all files
	MaxFiles = 10_000    // files, and entries of a folder
	MaxDepth = 16        // nesting of folders
)

// Sums are the checksums of all files of a package, sorted by path. The checksums
// themselves, their signature, and files and folders whose names begin with a dot, do
// not belong to the package.
type Sums []Sum

// Sum is the checksum of a file.
type Sum struct {
	Path   string // below the folder of the package, with slashes
	SHA256 string // of the content, as 64 hexadecimal digits
}

// Compute computes the checksums of the files in dir. Links and special files are
// errors, because they could lead to files that do not belong to the package.
func Compute(dir string) (Sums, error) {
	var s Sums
	total := 0
	var walk func(rel string, depth int) error
	walk = func(rel string, depth int) error {
		if depth > MaxDepth {
			return fmt.Errorf("cannot use %s in a package: folders are nested deeper than %d", rel, MaxDepth)
		}
		entries, err := files.List(filepath.Join(dir, filepath.FromSlash(rel)), MaxFiles)
		if err != nil {
			return fmt.Errorf("cannot read the folder of a package: %w", err)
		}
		for _, e := range entries {
			name := path.Join(rel, e.Name())
			switch {
			case strings.HasPrefix(e.Name(), ".") || name == SumsName || name == SignatureName:
				continue
			case !validPath(name):
				return badPath(name)
			case e.IsDir():
				if err := walk(name, depth+1); err != nil {
					return err
				}
				continue
			case e.Type() != 0:
				return fmt.Errorf("cannot use %s in a package: it is %s; a package consists of regular files", name, files.Kind(e.Type()))
			case len(s) == MaxFiles:
				return fmt.Errorf("cannot use %s as a package: it has more than %d files", dir, MaxFiles)
			}
			content, err := files.ReadIn(dir, name, MaxFile)
			if err != nil {
				return fmt.Errorf("cannot read a file of a package: %w", err)
			}
			if total += len(content); total > MaxBytes {
				return fmt.Errorf("cannot use %s as a package: its files have more than %d MiB", dir, MaxBytes>>20)
			}
			sum := sha256.Sum256(content)
			s = append(s, Sum{name, hex.EncodeToString(sum[:])})
		}
		return nil
	}
	if err := walk("", 0); err != nil {
		return nil, err
	}
	s.sort()
	return s, nil
}

func validPath(name string) bool {
	return utf8.ValidString(name) && !hasControl(name) && !strings.Contains(name, `\`)
}

func badPath(name string) error {
	return fmt.Errorf("cannot use %q in a package: rename it, without control characters and backslashes", name)
}

// CheckPath returns an error if a file with this path, with slashes, cannot belong
// to a package.
func CheckPath(name string) error {
	switch {
	case !validPath(name):
		return badPath(name)
	case name != path.Clean(name) || !filepath.IsLocal(filepath.FromSlash(name)):
		return fmt.Errorf("cannot use %q in a package: the path leads out of it", name)
	case strings.Count(name, "/") > MaxDepth:
		return fmt.Errorf("cannot use %s in a package: folders are nested deeper than %d", name, MaxDepth)
	}
	return nil
}

// Belongs reports whether a file with this path, with slashes, belongs to a
// package: its name and the names of its folders do not begin with a dot, and it
// contains neither the checksums nor their signature.
func Belongs(name string) bool {
	return name != SumsName && name != SignatureName && !strings.HasPrefix(name, ".") && !strings.Contains(name, "/.")
}

// SumsOf returns the checksums of files by their paths. All of them must belong to
// the package.
func SumsOf(files map[string][]byte) Sums {
	s := make(Sums, 0, len(files))
	for name, content := range files {
		sum := sha256.Sum256(content)
		s = append(s, Sum{name, hex.EncodeToString(sum[:])})
	}
	s.sort()
	return s
}

func (s Sums) sort() { slices.SortFunc(s, func(a, b Sum) int { return cmp.Compare(a.Path, b.Path) }) }

var sumLine = regexp.MustCompile(`^([0-9a-f]{64})  (.+)$`)

// ReadSums reads the checksums of the package in dir from its file. If there is no
// such file, the error wraps fs.ErrNotExist.
func ReadSums(dir string) (Sums, error) {
	file := filepath.Join(dir, SumsName)
	text, err := files.Read(file, maxText)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s has no checksums: %w", dir, err)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read the checksums of a package: %w", err)
	}
	return ParseSums(file, text)
}

// ParseSums parses checksums; file is the name in errors.
func ParseSums(file string, text []byte) (Sums, error) {
	var s Sums
	seen := map[string]bool{}
	n := 0
	for line := range strings.Lines(string(text)) {
		n++
		m := sumLine.FindStringSubmatch(strings.TrimRight(line, "\r\n"))
		switch {
		case m == nil:
			return nil, fmt.Errorf("%s:%d: not a checksum: want 64 hexadecimal digits, two spaces and a path", file, n)
		case m[2] != path.Clean(m[2]) || !filepath.IsLocal(filepath.FromSlash(m[2])):
			return nil, fmt.Errorf("%s:%d: the path %q leads out of the package", file, n, m[2])
		case seen[m[2]]:
			return nil, fmt.Errorf("%s:%d: the path %q occurs twice", file, n, m[2])
		}
		seen[m[2]] = true
		s = append(s, Sum{m[2], m[1]})
	}
	s.sort()
	return s, nil
}

// Text returns the checksums in the format of sha256sum, which can verify them:
//
//	sha256sum --check weir-package.sum
func (s Sums) Text() string {
	var b strings.Builder
	for _, f := range s {
		fmt.Fprintf(&b, "%s  %s\n", f.SHA256, f.Path)
	}
	return b.String()
}

// Digest returns the digest of the package: "sha256:" and the SHA-256 of Text as
// 64 hexadecimal digits.
func (s Sums) Digest() string {
	sum := sha256.Sum256([]byte(s.Text()))
	return "sha256:" + hex.EncodeToString(sum[:])
}

// Change is the difference between two checksums of a file. A checksum is "" if
// the file does not exist.
type Change struct{ Path, Want, Got string }

// String describes the change with both checksums.
func (c Change) String() string {
	switch {
	case c.Got == "":
		return c.Path + " is missing"
	case c.Want == "":
		return c.Path + " is not in the checksums"
	}
	return fmt.Sprintf("%s was changed: expected sha256:%s, got sha256:%s", c.Path, c.Want, c.Got)
}

// Changes returns the files that differ between the expected checksums want and
// the checksums s, sorted by path.
func (s Sums) Changes(want Sums) []Change {
	got, expected := map[string]string{}, map[string]string{}
	for _, f := range s {
		got[f.Path] = f.SHA256
	}
	for _, f := range want {
		expected[f.Path] = f.SHA256
	}
	var out []Change
	for _, f := range want {
		if got[f.Path] != f.SHA256 {
			out = append(out, Change{f.Path, f.SHA256, got[f.Path]})
		}
	}
	for _, f := range s {
		if expected[f.Path] == "" {
			out = append(out, Change{f.Path, "", f.SHA256})
		}
	}
	slices.SortFunc(out, func(a, b Change) int { return cmp.Compare(a.Path, b.Path) })
	return out
}

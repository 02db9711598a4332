package grant

import (
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// File is a pattern of files: /etc/weir/*, /etc/weir/geo/**/*.json. Create it
// with ParseFile.
type File struct {
	text  string
	dir   string   // absolute, without stars, with forward slashes
	parts []string // below dir
}

// ParseFile parses a pattern of files: an absolute path in which a star stands
// for any text within a name and ** for any number of folders. The first folder
// must not contain a star.
func ParseFile(text string) (File, error) {
	f, err := parseFile(text)
	if err != nil {
		return File{}, fmt.Errorf("cannot use %q as a pattern of files: %w", text, err)
	}
	return f, nil
}

func parseFile(text string) (f File, err error) {
	p, err := cleanPath(text)
	if err != nil {
		return f, err
	}
	volume := filepath.VolumeName(filepath.FromSlash(p))
	parts := strings.Split(strings.TrimPrefix(p[len(volume):], "/"), "/")
	fixed := slices.IndexFunc(parts, func(s string) bool { return strings.Contains(s, "*") })
	if fixed < 0 {
		fixed = len(parts) - 1
	}
	deep := 0
	for _, s := range parts[fixed:] {
		if s == "**" {
			deep++
		} else if strings.Contains(s, "**") {
			return f, errors.New("** must be a part of its own: write /etc/weir/**")
		}
	}
	if deep > 1 {
		return f, errors.New("it contains ** twice")
	}
	if fixed == 0 {
		return f, errors.New("it names no folder: scripts cannot have what lies at the root, or everything")
	}
	f = File{text: text, dir: volume + "/" + strings.Join(parts[:fixed], "/"), parts: parts[fixed:]}
	return f, nil
}

// cleanPath returns an absolute path with forward slashes. It refuses a path
// that is not in its simplest form, because with symbolic links, .. may lead
// elsewhere.
func cleanPath(text string) (string, error) {
	p := filepath.ToSlash(text)
	switch {
	case text == "":
		return "", errors.New("it is empty")
	case len(text) > maxPattern:
		return "", fmt.Errorf("it is longer than %d bytes", maxPattern)
	case strings.IndexByte(text, 0) >= 0:
		return "", errors.New("it has a zero byte")
	case !filepath.IsAbs(text):
		return "", errors.New("it must be an absolute path")
	case p != path.Clean(p):
		return "", fmt.Errorf("write it as %s: there must be no . or .., no // and no slash at its end", path.Clean(p))
	}
	return p, nil
}

// String returns the pattern as written.
func (p File) String() string { return p.text }

// Plain reports whether the pattern is the path of one file.
func (p File) Plain() bool { return !strings.Contains(strings.Join(p.parts, "/"), "*") }

// Watched returns a path that can be watched for changes: the pattern itself if
// only its last part contains stars. Otherwise, ok is false.
func (p File) Watched() (path string, ok bool) {
	if len(p.parts) != 1 || p.parts[0] == "**" {
		return "", false
	}
	return filepath.FromSlash(p.dir + "/" + p.parts[0]), true
}

// Match reports whether the pattern matches a path. It returns the folder that
// the file must not leave through a symbolic link, and the file's path below
// it. The error describes an error in the path itself.
func (p File) Match(name string) (dir, rel string, ok bool, err error) {
	clean, err := cleanPath(name)
	if err != nil {
		return "", "", false, fmt.Errorf("cannot read %q: %w", name, err)
	}
	below, in := strings.CutPrefix(fold(clean), fold(p.dir)+"/")
	if !in {
		return "", "", false, nil
	}
	rel = clean[len(clean)-len(below):]
	if !matchParts(p.parts, strings.Split(rel, "/")) {
		return "", "", false, nil
	}
	return filepath.FromSlash(p.dir), filepath.FromSlash(rel), true, nil
}

// Covers reports whether the pattern matches everything that q matches. It may
// return false in complicated cases.
func (p File) Covers(q File) bool {
	below, in := strings.CutPrefix(fold(q.dir+"/"+strings.Join(q.parts, "/")), fold(p.dir)+"/")
	return in && matchParts(p.parts, strings.Split(below, "/"))
}

func matchParts(pattern, parts []string) bool {
	for i, p := range pattern {
		if p == "**" {
			for j := range len(parts) + 1 {
				if j == len(parts) && i+1 == len(pattern) {
					return len(parts) > 0 // ** at the end matches the content of the folder
				}
				if matchParts(pattern[i+1:], parts[j:]) {
					return true
				}
			}
			return false
		}
		if i >= len(parts) || !glob(fold(p), fold(parts[i])) || parts[i] == "**" {
			return false
		}
	}
	return len(parts) == len(pattern)
}

// fold returns a path in the form in which it is compared: Windows ignores
// case.
func fold(s string) string {
	if runtime.GOOS == "windows" {
		return strings.ToLower(s)
	}
	return s
}

package file

import (
	"cmp"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// maxEntries is the maximum number of files of a directory that are examined.
const maxEntries = 10_000

// maxSearches is the maximum number of searches for a copy while files are being
// renamed.
const maxSearches = 3

// rotatedRest matches what rotation adds to a name: a number, a date, a word.
var rotatedRest = regexp.MustCompile(`^([-._]?(\d+|[-:.T+Z_\d]*\d[-:.T+Z_\d]*|old|bak|prev|orig|save))+$`)

// isRotatedName reports whether rotation could have given the file base this
// name: app.log.1, app.log-20250101, app-2025-01-01T10-00-00.log, app.1.log, and
// these and app.log compressed.
func isRotatedName(base, name string) bool {
	if name == base+".gz" {
		return true
	}
	name = strings.TrimSuffix(name, ".gz")
	if rest, ok := strings.CutPrefix(name, base); ok {
		return rest != "" && rotatedRest.MatchString(rest)
	}
	ext := filepath.Ext(base)
	stem := strings.TrimSuffix(base, ext)
	rest, ok := strings.CutPrefix(name, stem)
	if !ok || stem == "" || !strings.HasSuffix(rest, ext) {
		return false
	}
	rest = strings.TrimSuffix(rest, ext)
	return rest != "" && rotatedRest.MatchString(rest)
}

// listed is a regular file of a directory.
type listed struct {
	path string
	id   identity
	fi   fs.FileInfo
}

// directory is a listing of the directory of a file, in which rotation puts the
// old files.
type directory struct {
	open  func(path string) (*os.File, error)
	base  []string // the names of the file itself
	files []listed
	dirs  []fs.FileInfo // as they were before they were listed
	paths []string      // of dirs
}

// listDirectories lists the directories of paths.
func (c *Component) listDirectories(paths ...string) *directory {
	d := &directory{open: c.openFile}
	var seen []string
	for _, path := range paths {
		if path == "" {
			continue
		}
		d.base = append(d.base, filepath.Base(path))
		dir := filepath.Dir(path)
		if slices.Contains(seen, dir) {
			continue
		}
		seen = append(seen, dir)
		if fi, err := os.Stat(dir); err == nil {
			d.dirs, d.paths = append(d.dirs, fi), append(d.paths, dir)
		}
		entries, err := os.ReadDir(dir)
		if err != nil {
			continue // nothing can be found there; the caller reports missing files
		}
		for _, e := range entries {
			if len(d.files) == maxEntries {
				break
			}
			if !e.Type().IsRegular() {
				continue
			}
			d.add(filepath.Join(dir, e.Name()))
		}
	}
	return d
}

// add adds the file at path, if it exists.
func (d *directory) add(path string) {
	if path == "" {
		return
	}
	if id, fi, err := statPath(path); err == nil {
		d.files = append(d.files, listed{path, id, fi})
	}
}

// targetOf returns the path of a target with those labels that leads to a file,
// or "": patterns may match the directory to which rotated files are moved.
func (c *Component) targetOf(key string, id identity) string {
	c.mu.Lock()
	places := c.places
	c.mu.Unlock()
	return places()[owned{key, id}] // called without mu, because a file system may hang
}

// placesOf returns the files to which the targets with those IDs lead.
func placesOf(ids map[string]bool) map[owned]string {
	places := make(map[owned]string, len(ids))
	for t := range ids {
		path, key, _ := strings.Cut(t, "\x00")
		if id, _, err := statPath(path); err == nil {
			places[owned{key, id}] = path
		}
	}
	return places
}

// moved reports whether files were added, removed or renamed since d was listed,
// as when app.log.1 becomes app.log.2. If so, the listing may have missed one.
func (d *directory) moved() bool {
	for i, before := range d.dirs {
		if fi, err := os.Stat(d.paths[i]); err != nil || !fi.ModTime().Equal(before.ModTime()) {
			return true
		}
	}
	return false
}

func (d *directory) inFamily(l listed) bool {
	return slices.ContainsFunc(d.base, func(base string) bool { return isRotatedName(base, filepath.Base(l.path)) })
}

// find opens the content that p is the position of: the file with its identity, a
// copy of the file, or the compressed file that replaced it. skip excludes files.
// find returns nil if the content does not exist.
//
// If opening the file with its identity fails, find returns an error, which may
// be temporary.
func (d *directory) find(p *position, c *coding, format Format, skip func(identity) bool) (*logFile, error) {
	var failed error
	try := func(l listed, format Format) *logFile {
		if skip(l.id) {
			return nil
		}
		f, err := d.open(l.path)
		if err != nil {
			if l.id == p.id && !isMissing(err) || isStarved(err) {
				failed = fmt.Errorf("cannot open %s, which holds lines that were not read: %w", l.path, err)
			}
			return nil
		}
		if fi, err := f.Stat(); err == nil && fi.Mode().IsRegular() {
			lf := newLogFile(f, fi, l.path, c, format)
			if ok, err := lf.hasMarks(p.head, p.tail, p.read); ok && err == nil {
				return lf
			}
		}
		f.Close()
		return nil
	}
	for _, l := range d.files {
		if l.id == p.id {
			if lf := try(l, format); lf != nil {
				return lf, nil
			}
		}
	}
	if p.head.n == 0 {
		return nil, failed // the file is empty
	}
	for _, l := range d.files {
		if l.id != p.id && d.inFamily(l) && !strings.HasSuffix(l.path, ".gz") && l.fi.Size() >= p.read {
			if lf := try(l, format); lf != nil {
				return lf, nil
			}
		}
	}
	for _, l := range d.files {
		if format == "" && d.inFamily(l) && strings.HasSuffix(l.path, ".gz") {
			if lf := try(l, gz); lf != nil {
				return lf, nil
			}
		}
	}
	return nil, failed
}

// rotatedSince returns the files that appeared after one that was last written to
// at since, oldest first: rotations that happened between two checks. skip
// excludes files.
func (d *directory) rotatedSince(since time.Time, skip func(listed) bool) (out []listed) {
	for _, l := range d.files {
		if d.inFamily(l) && !strings.HasSuffix(l.path, ".gz") && !l.fi.ModTime().Before(since) && !skip(l) {
			out = append(out, l)
		}
	}
	slices.SortStableFunc(out, func(a, b listed) int {
		if c := a.fi.ModTime().Compare(b.fi.ModTime()); c != 0 {
			return c
		}
		// File system clocks are coarse: app.log.2 existed before app.log.1.
		return cmp.Compare(rotationNumber(b.path), rotationNumber(a.path))
	})
	return out
}

// rotationNumber returns the number at the end of a name, or 0.
func rotationNumber(path string) int {
	n, _ := strconv.Atoi(strings.TrimPrefix(filepath.Ext(path), "."))
	return n
}

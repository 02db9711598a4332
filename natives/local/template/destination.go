package template

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/weir-run/weir/engine/files"
)

// unfinished begins the name of a new file that does not yet replace the old one.
const unfinished = ".weir-template-"

// destination is the file to write.
type destination struct {
	path     string // after links
	old      []byte
	exists   bool
	mode     os.FileMode
	uid, gid int  // -1: as it is
	changed  bool // its permissions or owner are not what they must be
}

// look reads the existing file.
func look(path string, a *Arguments) (*destination, error) {
	d := &destination{path: path, mode: a.mode(0)}
	var err error
	if d.uid, d.gid, err = owner(a.Owner, a.Group); err != nil {
		return nil, err
	}
	if real, err := files.Real(path); err == nil {
		d.path = real
	}
	fi, err := files.Do(d.path, "looking at", func() (os.FileInfo, error) { return os.Stat(d.path) })
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return d, nil
	case err != nil:
		return nil, fmt.Errorf("cannot read the file: %w", err)
	case !fi.Mode().IsRegular():
		return nil, fmt.Errorf("cannot write %s: it is %s", files.Name(d.path), files.Kind(fi.Mode()))
	}
	d.exists, d.mode = true, a.mode(fi.Mode().Perm())
	d.changed = d.mode != fi.Mode().Perm() || !owned(fi, d.uid, d.gid)
	if fi.Size() > maxOutput {
		d.changed = true
		return d, nil
	}
	if d.old, err = files.Read(d.path, maxOutput); err != nil {
		return nil, fmt.Errorf("cannot read the file: %w", err)
	}
	return d, nil
}

// same reports whether the file needs no change.
func (d *destination) same(text []byte) bool {
	return d.exists && !d.changed && bytes.Equal(d.old, text)
}

// stage writes the new file next to the old one, with its mode and owner.
func (d *destination) stage(text []byte) (string, error) {
	return files.Do(d.path, "writing", func() (path string, err error) {
		f, err := os.CreateTemp(filepath.Dir(d.path), unfinished)
		if err != nil {
			return "", fmt.Errorf("cannot write the file: %w", err)
		}
		defer func() {
			if err = errors.Join(err, f.Close()); err != nil {
				err = errors.Join(fmt.Errorf("cannot write the file: %w", err), os.Remove(f.Name()))
			}
		}()
		if d.uid >= 0 || d.gid >= 0 {
			if err := f.Chown(d.uid, d.gid); err != nil {
				return "", err
			}
		}
		if err := f.Chmod(d.mode); err != nil {
			return "", err
		}
		if _, err := f.Write(text); err != nil {
			return "", err
		}
		return f.Name(), f.Sync()
	})
}

// replace replaces the file by the new one.
func (d *destination) replace(stage string) error {
	_, err := files.Do(d.path, "replacing", func() (struct{}, error) { return struct{}{}, os.Rename(stage, d.path) })
	if err != nil {
		return fmt.Errorf("cannot replace the file: %w", err)
	}
	return nil
}

// discard removes a new file that was not used.
func discard(stage string) {
	_, _ = files.Do(stage, "removing", func() (struct{}, error) { return struct{}{}, os.Remove(stage) })
}

// marker is a file in weir's storage directory that says that a content was written
// and its reload has not finished.
type marker struct{ dir, sum string }

func (m marker) path() string { return filepath.Join(m.dir, "reload") }

func (m marker) exists() bool {
	text, err := files.Read(m.path(), 1<<10)
	return err == nil && string(text) == m.sum
}

func (m marker) create() error {
	if err := os.MkdirAll(m.dir, 0o700); err != nil {
		return fmt.Errorf("cannot remember the reload: %w", err)
	}
	if err := files.Replace(m.path(), []byte(m.sum), true); err != nil {
		return fmt.Errorf("cannot remember the reload: %w", err)
	}
	return nil
}

func (m marker) remove() error {
	if err := os.Remove(m.path()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("cannot forget the reload: %w", err)
	}
	return nil
}

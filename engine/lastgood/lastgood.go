// Package lastgood keeps, under the storage path, the files of the last config that
// weir accepted, so that a start with a broken config can run it. It knows files and
// their text. It parses nothing.
//
// The copy contains the secrets that are written in the config, so only weir's user
// can read it. There is one copy for each storage path, and it belongs to one config.
package lastgood

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/weir-run/weir/engine/files"
)

const name = "last-good-config" // under the storage path

// format is that of the copy. A config of maximum size and a few modules fit.
var format = files.Record{Magic: "weirconf", Version: 1, Limit: 32 << 20}

// Copy is a copy of a config and of the modules that it imports.
type Copy struct {
	// Config is the absolute path of the config, a file or a directory.
	Config string `json:"config"`
	// Time is when weir accepted the config.
	Time time.Time `json:"time"`
	// Trees are the config and its modules by absolute path.
	Trees map[string]Tree `json:"trees"`
}

// Tree contains the texts of the files of a directory by name, or that of a single
// file under the name "".
type Tree map[string]string

// NewTree returns the Tree of texts that are given by path: that of a file, which is
// path itself, or those of files in the directory path.
func NewTree(path string, texts map[string]string) Tree {
	t := Tree{}
	for file, text := range texts {
		if file == path {
			t[""] = text
		} else {
			t[filepath.Base(file)] = text
		}
	}
	return t
}

// Texts is the inverse of NewTree.
func (t Tree) Texts(path string) map[string]string {
	texts := map[string]string{}
	for name, text := range t {
		if name == "" {
			texts[path] = text
		} else {
			texts[filepath.Join(path, name)] = text
		}
	}
	return texts
}

// Keepable reports whether a config at an absolute path can be kept. A pipe can be read
// only once, and a path below /dev or /proc belongs to the process.
func Keepable(config string) bool {
	for _, dir := range []string{"/dev/", "/proc/"} {
		if strings.HasPrefix(filepath.ToSlash(config), dir) {
			return false
		}
	}
	fi, err := files.Stat(config)
	return err != nil || fi.IsDir() || fi.Mode().IsRegular()
}

// Keep replaces the copy under a storage path.
func Keep(storage string, c Copy) error {
	return format.Replace(filepath.Join(storage, name), c)
}

// Get returns the copy of the config at an absolute path. The error is fs.ErrNotExist
// if there is none.
func Get(storage, config string) (c Copy, err error) {
	path := filepath.Join(storage, name)
	if err := format.Read(path, &c); errors.Is(err, fs.ErrNotExist) {
		return Copy{}, err
	} else if err != nil {
		return Copy{}, fmt.Errorf("cannot use %s: %w", path, err)
	}
	if c.Config != config {
		return Copy{}, fs.ErrNotExist
	}
	return c, nil
}

// IsDir reports whether the config of the copy is a directory.
func (c Copy) IsDir() bool {
	_, file := c.Trees[c.Config][""]
	return c.Config != "" && !file
}

// Remove removes the copy under a storage path, if there is one.
func Remove(storage string) error {
	if err := os.Remove(filepath.Join(storage, name)); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

package registry

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"sync"

	"github.com/weir-run/weir/engine/files"
	"github.com/weir-run/weir/scripting"
)

// Limits for walking a folder of scripts, which may have been configured by
// mistake.
const (
	maxDepth = 8      // nesting of folders
	maxFound = 20_000 // files and folders
)

// libraries is the folder of modules, which are not components.
const libraries = "lib"

// ErrTooManyFiles means that the rest of a folder is ignored.
var ErrTooManyFiles = fmt.Errorf("there are more than %d files and folders", maxFound)

// walk visits the files of a tree, except private files and files called skip.
// It follows symbolic links, because a mounted ConfigMap consists of them, but
// not to a folder that contains the link. Links come last, because they may
// lead to a file system that hangs or is very large. Unreadable folders are
// skipped.
func walk(tree fs.FS, skip string, visit func(rel string)) error {
	type place struct {
		rel   string
		mode  fs.FileMode
		above []fs.FileInfo // the folders that it is in
	}
	todo, links := []place{{rel: ".", mode: fs.ModeDir}}, []place(nil)
	for seen := 0; len(todo)+len(links) > 0; {
		if len(todo) == 0 {
			todo, links = links[:1:1], links[1:]
			info, err := fs.Stat(tree, todo[0].rel)
			if err != nil {
				todo = nil
				continue
			}
			todo[0].mode = info.Mode()
		}
		p := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if !p.mode.IsDir() {
			visit(p.rel) // what is no file either is refused when it is read
			continue
		}
		info, err := fs.Stat(tree, p.rel)
		if err != nil || len(p.above) > maxDepth || slices.ContainsFunc(p.above, func(a fs.FileInfo) bool { return os.SameFile(a, info) }) {
			continue
		}
		above := append(p.above[:len(p.above):len(p.above)], info)
		entries, _ := fs.ReadDir(tree, p.rel)
		for _, e := range entries {
			if seen++; seen > maxFound {
				return ErrTooManyFiles
			}
			in := place{path.Join(p.rel, e.Name()), e.Type(), above}
			switch {
			case private(e.Name()) || in.rel == skip:
			case e.Type()&fs.ModeSymlink != 0:
				links = append(links, in)
			default:
				todo = append(todo, in)
			}
		}
	}
	return nil
}

// list returns the user's files. Those that cannot be listed now because the file
// system hangs are those of before, which fail when they are read.
func (c *catalog) list() []string {
	if c.dir == "" {
		return nil
	}
	ask := files.Do[struct{}]
	if changed := c.onChange(); changed != nil {
		ask = func(path, doing string, fn func() (struct{}, error)) (struct{}, error) {
			return files.Soon(path, doing, func() (struct{}, error) { return files.Do(path, doing, fn) }, func() { changed([]string{c.dir}) })
		}
	}
	found, err := walkAsking(c.dir, libraries, ask)
	why := ""
	if err != nil {
		why = err.Error()
	}
	if why != "" && why != c.lost {
		c.o.Logger.Warn("cannot list all scripts", "path", c.dir, "err", err)
	}
	c.lost = why
	if errors.Is(err, files.ErrHung) {
		found = append(found, c.found...)
		slices.Sort(found)
		found = slices.Compact(found)
	}
	c.found = found
	return found
}

// Walk returns the slash paths of the files below a folder of scripts, sorted, but
// for the private ones and what is called skip. The error,
// ErrTooManyFiles or a *files.HungError, is about those that are missing.
func Walk(dir, skip string) ([]string, error) { return walkAsking(dir, skip, files.Do[struct{}]) }

// walkAsking is Walk with files.Do or a function like it.
func walkAsking(dir, skip string, ask func(path, doing string, fn func() (struct{}, error)) (struct{}, error)) ([]string, error) {
	var mu sync.Mutex
	var found []string
	_, err := ask(filepath.Join(dir, "**"), "listing", func() (struct{}, error) {
		return struct{}{}, walk(os.DirFS(dir), skip, func(rel string) {
			mu.Lock()
			defer mu.Unlock()
			found = append(found, rel)
		})
	})
	mu.Lock()
	defer mu.Unlock()
	out := slices.Clone(found)
	slices.Sort(out)
	return out, err
}

// ReadError says why a script was not read, and what to do. err is of
// engine/files.
func ReadError(name string, err error) error {
	out, outside := errors.AsType[*files.OutsideError](err)
	switch {
	case outside:
		return fmt.Errorf("cannot use %s: it is a link to %s, which lies outside of the scripts folder: copy it into the folder, or use the folder that it is in as the scripts folder: %w",
			name, files.Name(out.Target), files.ErrOutside)
	case errors.Is(err, files.ErrTooLarge):
		return fmt.Errorf("cannot use script %s: it is larger than %d KiB", name, scripting.MaxFileSize>>10)
	}
	return fmt.Errorf("cannot read script %s: %w", name, err)
}

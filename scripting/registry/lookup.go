package registry

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"

	"github.com/weir-run/weir/engine/component"
)

// answer is the result of looking a name up. The first lookup loads the script; the
// lookups that come meanwhile wait for done.
type answer struct {
	done   chan struct{} // closed when reg and script are set
	reg    component.Registration
	script *entry // nil: it is broken
}

// Lookup returns the registration of a name. Lookups of different names do not wait for
// each other.
func (c *catalog) Lookup(name string) (component.Registration, bool) {
	c.mu.Lock()
	a := c.answers[name]
	c.mu.Unlock()
	if a == nil {
		index, refreshed := c.index()
		fs, ok := index[name]
		if !ok {
			return component.Registration{}, false
		}
		c.mu.Lock()
		if a = c.answers[name]; a == nil {
			a = &answer{done: make(chan struct{})}
			if c.refreshed == refreshed {
				c.answers[name] = a
			}
			c.mu.Unlock()
			defer close(a.done)
			a.reg = component.Registration{Name: name, Err: errors.New("BUG: loading " + name + " panicked")}
			a.reg, a.script = c.load(name, fs)
			if _, pending := errors.AsType[*component.PendingError](a.reg.Err); pending {
				c.forget(name, a)
			}
			return a.reg, true
		}
		c.mu.Unlock()
	}
	<-a.done
	return a.reg, true
}

// forget drops an answer that was pending: the next lookup asks the compilation again.
func (c *catalog) forget(name string, a *answer) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.answers[name] == a {
		delete(c.answers, name)
	}
}

// isDone reports whether the answer is known.
func (a *answer) isDone() bool {
	select {
	case <-a.done:
		return true
	default:
		return false
	}
}

// script returns a copy of what a known name's registration is made of, nil if it
// is broken.
func (c *catalog) script(name string) *entry {
	c.mu.Lock()
	defer c.mu.Unlock()
	a := c.answers[name]
	if a == nil || !a.isDone() || a.script == nil {
		return nil
	}
	own := *a.script
	return &own
}

// Refresh drops the answers that depend on the given files, and those that are not known
// yet: they may be made of files as they were.
func (c *catalog) Refresh(paths []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.files = nil
	c.refreshed++
	for name, a := range c.answers {
		if !a.isDone() || slices.ContainsFunc(a.reg.Sources, func(source string) bool { return isBelowAny(source, paths) }) {
			delete(c.answers, name)
		}
	}
}

// isBelowAny reports whether a file is one of paths or lies below one of them.
func isBelowAny(file string, paths []string) bool {
	return slices.ContainsFunc(paths, func(p string) bool {
		return file == p || strings.HasPrefix(file, strings.TrimSuffix(p, string(filepath.Separator))+string(filepath.Separator))
	})
}

// index returns the files of each name, and how often Refresh had been called before
// they were listed. Unreadable folders are left out: what is in them is then an unknown
// block, which the config's error names.
func (c *catalog) index() (files map[string]*scriptFiles, refreshed int) {
	c.listing.Lock()
	defer c.listing.Unlock()
	c.mu.Lock()
	files, refreshed = c.files, c.refreshed
	c.mu.Unlock()
	if files != nil {
		return files, refreshed
	}
	files = c.listNames()
	c.warnUnusedFiles(files)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.refreshed == refreshed {
		c.files = files
	}
	return files, refreshed
}

// listNames walks both trees.
func (c *catalog) listNames() map[string]*scriptFiles {
	files := map[string]*scriptFiles{}
	add := func(rel string, embedded bool) {
		name, misnamed, ok := c.componentName(rel)
		if !ok {
			return
		}
		f := files[name]
		if f == nil {
			f = &scriptFiles{misnamed: misnamed}
			files[name] = f
		}
		if l := (location{rel, embedded}); embedded {
			f.embedded = append(f.embedded, l)
		} else {
			f.user = append(f.user, l)
		}
	}
	if c.o.Embedded != nil {
		_ = walk(c.o.Embedded, libraries, func(rel string) { add(rel, true) })
	}
	for _, rel := range c.list() {
		add(rel, false)
	}
	return files
}

// OnChange has the catalog call fn with the paths of files, of which a lookup has
// a new answer although they did not change: one that took long to compile is
// done. From then on lookups do not wait for such a file.
func (c *catalog) OnChange(fn func(paths []string)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.changed = fn
}

// onChange returns what OnChange was called with; nil if it was not: then lookups wait.
func (c *catalog) onChange() func(paths []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.changed
}

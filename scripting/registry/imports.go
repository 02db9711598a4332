package registry

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/weir-run/weir/scripting"
)

// errNoModule is what require of an unknown module comes to.
var errNoModule = errors.New("module not found")

// env is what a script may require, noting what it does.
func (d *dependencies) env(probe *scripting.Probe) scripting.Env {
	return scripting.Env{Modules: d.c.o.Modules, Require: d.require, Import: d.importFile, Probe: probe}
}

// require finds lib/<name>: a module of the language, with dots for folders, or
// a data file by its name. A shipped script sees only shipped modules, so that a
// user's module of the same name cannot break it.
func (d *dependencies) require(name string) (scripting.File, error) {
	base, exts := "lib/"+strings.ReplaceAll(name, ".", "/"), d.language.Extensions()
	if scripting.IsData(name) {
		base, exts = "lib/"+name, []string{""}
		if !filepath.IsLocal(filepath.FromSlash(base)) || path.Clean(base) != base {
			return scripting.File{}, fmt.Errorf("cannot require %q: it must be the name of a file below lib", name)
		}
	} else {
		for s := range strings.SplitSeq(name, ".") {
			if !scripting.IsIdentifier(s) {
				return scripting.File{}, fmt.Errorf("cannot require %q: a module's name is made of identifiers and dots", name)
			}
		}
	}
	for _, embedded := range []bool{false, true} {
		if (!embedded && (d.embedded || d.c.dir == "")) || (embedded && d.c.o.Embedded == nil) {
			continue
		}
		for _, ext := range exts {
			f, err := d.open(location{base + ext, embedded})
			if errors.Is(err, fs.ErrNotExist) {
				continue
			}
			return f, err
		}
	}
	if scripting.IsData(name) {
		return scripting.File{}, fmt.Errorf("cannot require %q: %w: there is no %s in the scripts folder", name, errNoModule, base)
	}
	return scripting.File{}, fmt.Errorf("cannot require %q: %w: there is no %s%s in the scripts folder, and the standard library has %s",
		name, errNoModule, base, exts[0], moduleNames(d.c.o.Modules))
}

// importFile finds what from imports by a path that begins with ./ or ../; the
// extension of a script may be left out.
func (d *dependencies) importFile(from scripting.File, name string) (scripting.File, error) {
	rel, embedded := strings.TrimPrefix(from.Name, embeddedPrefix), from.Path == ""
	if !embedded {
		r, err := filepath.Rel(d.c.dir, from.Path)
		if err != nil {
			return scripting.File{}, fmt.Errorf("cannot import %q: %w", name, err)
		}
		rel = filepath.ToSlash(r)
	}
	if embedded && d.c.o.Embedded == nil {
		return scripting.File{}, fmt.Errorf("cannot import %q: %s is not a file, so the relative path cannot be resolved", name, from.Name)
	}
	base := path.Join(path.Dir(rel), name)
	if !filepath.IsLocal(filepath.FromSlash(base)) {
		return scripting.File{}, fmt.Errorf("cannot import %q: it lies outside of the scripts folder", name)
	}
	candidates := []string{base}
	if exts := d.language.Extensions(); !scripting.IsData(base) && !slices.Contains(exts, path.Ext(base)) {
		candidates = nil
		for _, ext := range exts {
			candidates = append(candidates, base+ext)
		}
	} else if !scripting.IsData(base) { // TypeScript's way is to import ./x.js of x.ts
		for _, ext := range exts {
			if c := strings.TrimSuffix(base, path.Ext(base)) + ext; c != base {
				candidates = append(candidates, c)
			}
		}
	}
	for _, rel := range candidates {
		f, err := d.open(location{rel, embedded})
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		return f, err
	}
	return scripting.File{}, fmt.Errorf("cannot import %q: there is no %s", name, d.c.display(location{candidates[0], embedded}))
}

// open reads a file that a script requires, and notes it.
func (d *dependencies) open(l location) (scripting.File, error) {
	f, err := d.read(l)
	if err != nil {
		return scripting.File{}, err
	}
	d.hashPart(l.rel, f.Text)
	if !slices.Contains(d.modules, f) {
		d.modules = append(d.modules, f)
	}
	return f, nil
}

func (d *dependencies) read(l location) (scripting.File, error) {
	if l.embedded {
		return d.c.read(l)
	}
	if d.stored != nil {
		text, ok := d.stored[l.rel]
		if !ok {
			return scripting.File{}, fmt.Errorf("cannot read script %s: %w", d.c.display(l), fs.ErrNotExist)
		}
		return d.c.file(l, text), nil
	}
	d.candidate(l.rel)
	f, err := d.c.read(l)
	if err != nil {
		d.failed = append(d.failed, failedRead{l, err})
	}
	return f, err
}

func moduleNames(ms []*scripting.Module) string {
	names := []string{"weir"}
	for _, m := range ms {
		names = append(names, m.Name)
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}

package engine

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/weir-run/weir/engine/config"
	"github.com/weir-run/weir/engine/files"
	"github.com/weir-run/weir/engine/pkg/remote"
)

// source is the content with which an import was expanded.
type source struct {
	im     *config.Import
	path   string            // of an import.file
	files  map[string]string // contents by path; nil if there is nothing yet
	secret bool              // they must not be shown
	err    error             // why it differs from the current content
	// content is that of a remote import; nil if there is nothing yet.
	content *remote.Content
	// text is the last text of an import.string that was parsed.
	text  string
	tried bool
}

// importing registers an import.
func (x *planner) importing(m *module, b *config.Block) {
	w := &wanted{kind: kindImport, id: m.prefix() + b.ID, m: m, block: b}
	im, ds := b.Import(m.scope)
	x.report(w, ds)
	if b.Label == "" {
		return
	}
	if m.names.imports == nil {
		m.names.imports = map[string]*imported{}
	}
	if m.block == nil || m.abstract {
		x.collide(w, b.Label)
	}
	space := &imported{block: b}
	m.names.imports[b.Label] = space
	if im == nil {
		space.broken = true
		return
	}
	w.source = &source{im: im}
	x.add(w)
	x.p.sources[w.id] = w.source
	switch b.Name {
	case "import.scripts":
		x.importScripts(w, space)
	case "import.file":
		x.importFile(w, space)
	case "import.string":
		x.importString(w, space)
	default:
		x.importRemote(w, space)
	}
}

// path returns the path for a path written in a body, in the form shown to
// people.
func (n *names) path(said string) string {
	if filepath.IsAbs(said) {
		return filepath.Clean(said)
	}
	return filepath.Join(n.shown, said)
}

// importScripts makes the scripts of a folder available in a namespace.
func (x *planner) importScripts(w *wanted, space *imported) {
	dir := w.m.names.path(w.source.im.Scripts)
	at := w.block.SpanOf("path")
	abs, err := filepath.Abs(dir)
	if err == nil {
		x.p.watch[abs] = true
		var fi fs.FileInfo
		switch fi, err = x.e.stat(abs); {
		case errors.Is(err, fs.ErrNotExist) && x.mode.modules != nil:
			err = nil // the last good versions of its scripts can run
		case errors.Is(err, fs.ErrNotExist):
			err = fmt.Errorf("there is no folder %s", dir)
		case err == nil && !fi.IsDir():
			err = fmt.Errorf("%s is a file", dir)
		}
	}
	key := w.block.Label + " " + abs
	old := x.e.folders[key]
	switch refused := x.allowLocal(abs); {
	case refused == nil, err != nil && old == nil: // there is nothing to import
	case old != nil && x.mode.running, x.mode.modules != nil:
		space.refused = fmt.Errorf("path: cannot import scripts: %w", refused)
	default:
		space.broken = true
		x.mistaken(w.m, w, at, fmt.Sprintf("path: cannot import scripts: %v", refused), "")
		return
	}
	switch {
	case old != nil:
		// A folder that has gone is one with no scripts, and the blocks that use them report it.
		space.catalog = old
		if x.mode.running {
			err = nil
		}
	case err != nil:
	case x.e.o.Scripts == nil:
		err = errors.New("this program has no scripts")
	default:
		if space.catalog, err = x.e.o.Scripts(w.block.Label, abs); err == nil && x.e.phase.Load() == phaseReady {
			x.e.applyChangesOf(space.catalog)
		}
	}
	if err != nil {
		space.broken = true
		x.mistaken(w.m, w, at, fmt.Sprintf("path: cannot import scripts: %v", err), x.elsewhere(w.source.im.Scripts, dir))
		return
	}
	x.p.folders[key] = space.catalog
	x.e.folders[key] = space.catalog
}

// stat returns information about a path of the config, with the time limit of
// readSoon.
func (e *Engine) stat(path string) (fs.FileInfo, error) {
	if e.phase.Load() != phaseReady {
		return files.Stat(path)
	}
	return files.Soon(path, "looking at", func() (fs.FileInfo, error) { return files.Stat(path) }, e.changedLate(path))
}

// elsewhere returns a hint for a path that would exist relative to the working
// directory.
func (x *planner) elsewhere(said, path string) string {
	if strings.ContainsAny(said, "*?[") {
		return "patterns are not read here: a directory stands for all *.alloy files in it"
	}
	if said == path || filepath.IsAbs(said) {
		return ""
	}
	if _, err := files.StatSoon(said); err != nil {
		return ""
	}
	return fmt.Sprintf("paths start at the file that says them, not where weir was started: there is %s", nearby(absolute(said)))
}

func absolute(path string) string {
	if abs, err := filepath.Abs(path); err == nil {
		return abs
	}
	return path
}

// importFile reads a file or a directory of modules.
func (x *planner) importFile(w *wanted, space *imported) {
	im := w.source.im
	path := w.m.names.path(im.File)
	abs := absolute(path)
	if slices.Contains(w.m.names.chain, abs) {
		var way []string
		for _, p := range append(w.m.names.chain[slices.Index(w.m.names.chain, abs):], abs) {
			way = append(way, nearby(p))
		}
		space.broken = true
		x.mistaken(w.m, w, w.block.SpanOf("filename"), "filename: it imports itself: "+strings.Join(way, " → "), "")
		return
	}
	var ds config.Diagnostics
	s := w.source
	s.path = path
	old, kept := x.oldSource(w), x.mode.kept[w.id]
	switch {
	case kept == nil && old != nil && x.mode.same && old.err == nil:
		s.files = old.files
	case kept == nil && x.mode.modules[abs] != nil:
		s.files = x.mode.modules[abs].Texts(path)
	case kept == nil:
		s.files, ds = readSoon(x.e, path, config.ReadFiles)
	case old != nil:
		s.files, s.err = old.files, kept
	default:
		s.err = kept
	}
	if x.mode.modules[abs] == nil && len(ds) == 0 {
		if err := x.allowLocal(abs); err != nil {
			ds = config.Diagnostics{{Msg: "cannot import: " + err.Error()}}
		}
	}
	if im.Poll == 0 {
		x.p.watch[config.Pattern(abs)] = true
	} else {
		x.p.polled[path] = w.source
	}
	if len(ds) > 0 {
		for i, d := range ds {
			ds[i] = config.Diagnostic{Span: w.block.SpanOf("filename"), Msg: "filename: " + strings.Replace(d.Msg, "read the config", "read it", 1), Hint: x.elsewhere(im.File, path)}
		}
		if x.mode.running && old != nil && old.files != nil {
			s.files, s.err = old.files, ds.Err()
		} else {
			space.broken = true
			x.report(w, ds)
			return
		}
	}
	if s.files == nil {
		space.pending = config.Pending(w.id)
		return
	}
	if known := x.files[path]; known != nil {
		space.names = known
		return
	}
	dir := path
	if _, file := s.files[path]; file {
		dir = filepath.Dir(path)
	}
	space.names = x.content(w, dir, abs)
	x.files[path] = space.names
}

// oldSource returns the source of an import in the running plan, if its block
// was the same.
func (x *planner) oldSource(w *wanted) *source {
	if x.e.plan == nil {
		return nil
	}
	if s := x.e.plan.sources[w.id]; s != nil && s.path == w.source.path {
		return s
	}
	return nil
}

// importString parses the text of a value when it is known.
func (x *planner) importString(w *wanted, space *imported) {
	space.pending = config.Pending(w.id)
	s := w.source
	old := x.oldSource(w)
	x.later = append(x.later, func(final bool) bool {
		v := s.im.Content.Evaluate(w.values())
		text, secret, ok := config.Text(v.V)
		if ok && v.Err == nil && !v.Provisional {
			s.text, s.tried = text, true
		}
		switch kept := x.mode.kept[w.id]; {
		case kept != nil:
			s.err = kept
		case v.Err == nil && !v.Provisional && ok:
			s.secret = secret
			s.files = map[string]string{w.id: text}
		case v.Err == nil && !v.Provisional:
			s.err = config.Diagnostic{Span: s.im.Content.Span, Msg: "content: should be string or secret, got " + config.TypeOf(v.V)}
		default:
			if ds, ok := errors.AsType[config.Diagnostics](v.Err); ok {
				s.err = ds.Err()
			} else if !final {
				return false
			}
		}
		if s.files == nil && old != nil && old.files != nil && x.mode.running {
			s.files, s.secret = old.files, old.secret
		}
		if s.files == nil {
			if s.err != nil && !x.mode.running {
				space.pending, space.broken = "", true
				x.reportError(w, s.err)
			}
			return true
		}
		space.pending = ""
		space.names = x.content(w, w.m.names.shown, "")
		return true
	})
}

// reportError reports an error that contains one or several Diagnostics.
func (x *planner) reportError(w *wanted, err error) {
	if ds, ok := errors.AsType[config.Diagnostics](err); ok {
		x.report(w, ds)
	} else if d, ok := errors.AsType[config.Diagnostic](err); ok {
		x.report(w, config.Diagnostics{d})
	}
}

// content registers the declares and imports of an imported module.
func (x *planner) content(w *wanted, dir, file string) *names {
	s := w.source
	c, ds := config.Parse(maps.Clone(s.files))
	n := newNames(nil, dir)
	n.strange = true
	n.chain = append(slices.Clip(w.m.names.chain), file)
	n.isBroken(c.Broken)
	m := &module{id: w.id, names: n, scope: x.p.scope.Apart(w.id + "/"), blocks: c.Blocks, abstract: w.m.abstract}
	m.scope.SetVariable("module_path", "", config.Value{V: n.dir})
	in := &wanted{kind: kindImport, id: w.id, m: m, block: w.block}
	if !s.secret {
		maps.Copy(x.p.files, s.files)
	}
	for _, b := range c.Blocks {
		if b.Name != "declare" && !b.IsImport() {
			ds = append(ds, config.Diagnostic{Span: b.Span, Msg: fmt.Sprintf("block %s does not belong into a module", b.Name),
				Hint: "what is imported has only declare and import blocks: put it into a declare"})
		}
	}
	x.report(in, ds)
	if len(n.chain) > maxImports {
		x.mistaken(m, in, w.block.Span, fmt.Sprintf("imports are nested deeper than %d", maxImports), "")
		return n
	}
	for _, b := range c.Blocks {
		switch {
		case b.Name == "declare":
			x.declare(m, b)
		case b.IsImport():
			x.importing(m, b)
		}
	}
	return n
}

// maxImports is the maximum nesting of imports.
const maxImports = 32

// newFiles returns the imported files that differ from those in another plan.
func (p *plan) newFiles(old *plan) (names []string) {
	for id, s := range p.sources {
		before := old.sources[id]
		if before == nil {
			continue
		}
		if s.content != nil && before.content != nil {
			if s.content.Digest != before.content.Digest {
				names = append(names, id)
			}
			continue
		}
		for name, text := range s.files {
			if was, had := before.files[name]; (!had || was != text) && !slices.Contains(names, nearby(name)) {
				names = append(names, nearby(name))
			}
		}
	}
	slices.Sort(names)
	return names
}

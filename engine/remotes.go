package engine

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/config"
	"github.com/weir-run/weir/engine/files"
	"github.com/weir-run/weir/engine/pkg"
	"github.com/weir-run/weir/engine/pkg/remote"
)

// remoteSource is a source that a plan imports.
type remoteSource struct {
	*config.Remote
	ids    []string // of the imports
	digest string   // of its entry in weir.lock; "" without one
	// missing says that the content of the digest is not in the cache, and why.
	missing error
}

// RemoteImport is a block import.git, import.http or import.oci.
type RemoteImport struct {
	ID       string
	Position string // file:line
	*config.Remote
}

// Remotes returns the remote imports of the config at path, including those of
// modules that are in the cache. The other results are those of Check, except that
// sources need no entries in weir.lock.
func (e *Engine) Remotes(path string) ([]RemoteImport, *config.Config, config.Diagnostics) {
	cfg, ds := config.Load(path)
	p, more := e.makePlan(cfg, planMode{locking: true})
	cfg.Files = p.files
	var imports []RemoteImport
	for _, w := range p.list {
		if w.kind == kindImport && w.source.im.Remote != nil {
			imports = append(imports, RemoteImport{ID: w.id, Position: w.position(), Remote: w.source.im.Remote})
		}
	}
	return imports, cfg, append(append(ds, more...), p.brokenOnes()...).Sort()
}

// lockPath returns the absolute path of weir.lock.
func (x *planner) lockPath() string { return absolute(pkg.LockPath(x.p.cfg.Path)) }

// readLock reads weir.lock once for each plan. While only exports change, it stays the
// same.
func (x *planner) readLock() {
	if x.p.lock != nil || x.p.lockErr != nil {
		return
	}
	if x.mode.same && x.e.plan != nil && x.e.plan.lock != nil {
		x.p.lock = x.e.plan.lock
		return
	}
	x.p.lock, x.p.lockErr = pkg.ReadLock(x.lockPath())
	if errors.Is(x.p.lockErr, fs.ErrNotExist) {
		x.p.lock, x.p.lockErr = &pkg.Lock{}, nil
	}
}

// importRemote imports the content of a Git repository, an HTTP server or an OCI
// registry.
func (x *planner) importRemote(w *wanted, space *imported) {
	s := w.source
	if x.e.o.Remote == nil {
		space.broken = true
		x.mistaken(w.m, w, w.block.Span, "this program imports nothing over the network", "")
		return
	}
	if err := x.p.policy.AllowSource(s.im.Remote.Source.String(), ""); err != nil {
		space.broken = true
		x.mistaken(w.m, w, w.block.Span, "cannot import: "+err.Error(), "")
		return
	}
	x.p.watch[x.lockPath()] = true
	x.readLock()
	var old *source
	if x.e.plan != nil {
		if old = x.e.plan.sources[w.id]; old != nil && (old.im.Remote == nil || old.content == nil || old.im.Remote.Source != s.im.Remote.Source) {
			old = nil
		}
	}
	use := x.useRemote(w)
	switch kept := x.mode.kept[w.id]; {
	case kept != nil && old != nil:
		s.content, s.err = old.content, kept
	case kept != nil:
		s.err = kept
	case x.mode.same && old != nil && old.err == nil:
		s.content = old.content
	default:
		x.findContent(w, use, old)
	}
	if s.content == nil {
		space.pending = config.Pending(w.id)
		if w.found.HasErrors() {
			space.pending, space.broken = "", true
		}
		return
	}
	if old != nil && s.content.Digest == old.content.Digest {
		s.files = old.files // what is in the cache may have been changed since then
	}
	x.useContent(w, space)
}

// useRemote registers a source with the plan.
func (x *planner) useRemote(w *wanted) *remoteSource {
	key := w.source.im.Remote.Source.String()
	use := x.p.remotes[key]
	if use == nil {
		use = &remoteSource{Remote: w.source.im.Remote}
		x.p.remotes[key] = use
	}
	use.ids = append(use.ids, w.id)
	return use
}

// findContent sets the content of an import: that of the digest in weir.lock, or the
// one that runs. Otherwise, the reason is a mistake, or the content is pending.
func (x *planner) findContent(w *wanted, use *remoteSource, old *source) {
	s, at := w.source, w.block.Span
	key := s.im.Remote.Source.String()
	var err error
	hint := ""
	if x.p.lockErr != nil {
		err = fmt.Errorf("cannot import %s: %w", key, x.p.lockErr)
	} else if entry := x.p.lock.Source(key); entry != nil {
		use.digest = entry.Digest
		c, openErr := x.e.o.Remote.Open(entry.Digest, filepath.Join(filepath.Dir(x.lockPath()), pkg.VendorDir))
		if openErr != nil {
			use.missing = openErr
		} else if refused := x.allowContent(key, c); refused != nil {
			err = fmt.Errorf("cannot import %s: %w", key, refused)
		} else {
			s.content = &c
			return
		}
	} else if x.e.o.UpdateLock || x.mode.locking {
		use.missing = remote.ErrNotCached
	} else {
		err = fmt.Errorf("cannot import %s: %s has no entry for it", key, nearby(x.lockPath()))
		hint = fmt.Sprintf("run 'weir pkg lock %s' to fetch it and to accept its content", nearby(x.p.cfg.Path))
	}
	if old != nil && (x.mode.running || err == nil) {
		s.content = old.content
		if s.err = err; use.missing != nil {
			s.err = fmt.Errorf("weir fetches %s with %s, and runs the content with %s until it is there: %w", key, use.digest, old.content.Digest, use.missing)
		}
		return
	}
	switch {
	case err != nil:
		x.mistaken(w.m, w, at, err.Error(), hint)
	case x.e.phase.Load() == phaseNew && !x.mode.locking:
		x.report(w, config.Diagnostics{{Span: at, Severity: config.Warning, Msg: fmt.Sprintf("cannot check the blocks that come from %s: %v", key, use.missing),
			Hint: fmt.Sprintf("run 'weir pkg lock %s' with the same --storage.path", nearby(x.p.cfg.Path))}})
	case x.e.plan != nil && !x.mode.running:
		// Without the content, nodes that run would be removed.
		x.mistaken(w.m, w, at, fmt.Sprintf("the content of %s is not in the cache yet", key), "weir fetches it and then reads the config again")
	}
}

// useContent makes the modules and the scripts of the content available. Those of a
// package are in its folders modules and scripts; other content may have both.
func (x *planner) useContent(w *wanted, space *imported) {
	s := w.source
	modules, scripts, below := s.content.Dir, s.content.Dir, ""
	isPackage := slices.ContainsFunc(s.content.Sums, func(f pkg.Sum) bool { return f.Path == pkg.ManifestName })
	if isPackage {
		modules, scripts = filepath.Join(modules, pkg.ModulesDir), filepath.Join(scripts, pkg.ScriptsDir)
		below = pkg.ModulesDir + "/"
	}
	hasModules, hasScripts := false, false
	for _, f := range s.content.Sums {
		name, ok := strings.CutPrefix(f.Path, below)
		switch {
		case ok && !strings.Contains(name, "/") && config.IsConfigFile(name):
			hasModules = true
		case !isPackage || strings.HasPrefix(f.Path, pkg.ScriptsDir+"/"):
			hasScripts = true
		}
	}
	refuse := func(msg string) {
		space.broken = true
		x.mistaken(w.m, w, w.block.Span, fmt.Sprintf("cannot import %s: %s", s.im.Remote.Source, msg), "")
	}
	switch {
	case slices.Contains(w.m.names.chain, modules):
		refuse("it imports itself")
		return
	case !hasModules && !hasScripts:
		refuse("it has no modules and no scripts")
		return
	case hasScripts && x.e.o.Scripts != nil:
		var err error
		if space.catalog, err = x.packageScripts(w.block.Label, scripts); err != nil {
			refuse(err.Error())
			return
		}
	}
	if !hasModules {
		return
	}
	if s.files == nil {
		texts, ds := readSoon(x.e, modules, config.ReadFiles)
		if ds.HasErrors() {
			refuse(ds.Err().Error())
			return
		}
		s.files = texts
	}
	space.names = x.content(w, modules, modules)
}

// packageScripts returns the catalog of a folder in the cache, whose content never
// changes.
func (x *planner) packageScripts(label, dir string) (component.Catalog, error) {
	key := label + " " + dir
	c := x.e.packages[key]
	if c == nil {
		var err error
		if c, err = x.e.o.Scripts(label, dir); err != nil {
			return nil, err
		}
		x.e.packages[key] = c
		if x.e.phase.Load() == phaseReady {
			x.e.applyChangesOf(c)
		}
	}
	x.p.packages[key] = c
	return c, nil
}

// lockContent writes the entry of a source into a lock file, which need not exist.
func lockContent(path, source string, c remote.Content) error {
	l, err := pkg.ReadLock(path)
	if errors.Is(err, fs.ErrNotExist) {
		l, err = &pkg.Lock{}, nil
	}
	if err != nil {
		return err
	}
	entry, err := Entry(source, c)
	if err != nil {
		return err
	}
	l.Set(entry)
	text, err := l.Text()
	if err != nil {
		return err
	}
	if _, err := files.Stat(path); err == nil {
		return files.Rewrite(path, text)
	}
	return files.Create(path, text)
}

// Entry returns the entry of a source in weir.lock. The error is one of its manifest.
func Entry(source string, c remote.Content) (pkg.Locked, error) {
	p := pkg.Locked{Source: source, Digest: c.Digest, Revision: c.Revision}
	if !pkg.IsPackage(c.Dir) {
		return p, nil
	}
	m, err := pkg.ReadManifest(c.Dir)
	if err != nil {
		return p, fmt.Errorf("cannot use the content of %s: %w", source, err)
	}
	p.Name, p.Version = m.Name, m.Version
	return p, nil
}

// remotesToFollow returns the sources of the plan that runs, and those that the config
// on disk lacks.
func (e *Engine) remotesToFollow() map[string]*remoteSource {
	all := maps.Clone(e.plan.remotes)
	for key, r := range e.lacking {
		if all[key] == nil || all[key].missing == nil {
			all[key] = r
		}
	}
	return all
}

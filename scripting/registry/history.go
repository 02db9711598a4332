package registry

import (
	"errors"
	"time"

	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/scripting"
	"github.com/weir-run/weir/scripting/node"
	"github.com/weir-run/weir/scripting/versions"
)

// versionFiles returns what a version of a user's script is made of: the script, the files
// that it imports and its test file. Files that ship with weir are always there.
func (c *catalog) versionFiles(s *entry, modules []scripting.File, test scripting.File) (all []versions.File) {
	for _, f := range append([]scripting.File{s.File}, append(modules, test)...) {
		if f.Path != "" {
			all = append(all, versions.File{Path: c.rel(f), Text: f.Text})
		}
	}
	return all
}

// history returns the history of a user's script.
func (c *catalog) history(s *entry) *node.History {
	return &node.History{
		Record: func() versions.Record { return c.o.Versions.Get(s.Name, c.dir) },
	}
}

// activated notes that a version became active on a node.
func (c *catalog) activated(s *entry, files []versions.File, test scripting.File, id string, at time.Time) {
	v := versions.Version{ID: s.Version}
	if test.Path != "" {
		v.Test = c.rel(test)
	}
	if c.hasPassed(s) {
		v.Passed = at
	}
	if err := c.o.Versions.Activate(s.Name, c.dir, v, files, id, at); err != nil {
		c.o.Logger.Warn("cannot keep this version of the script: a later start cannot fall back on it, and weir rollback cannot restore it", "script", s.Name, "err", err)
	}
}

// restore makes a registration of a version that is not on disk any more. sources are
// those of the registration of the version on disk: when one of them changes, the
// engine asks again.
func (c *catalog) restore(name string, v versions.Version, sources []string) (*component.Registration, error) {
	files, err := c.o.Versions.Files(v)
	if err != nil {
		return nil, err
	}
	own := location{rel: files[0].Path}
	lang, _ := c.language(own.rel)
	if lang == nil {
		return nil, errors.New("there is no language for " + own.rel)
	}
	stored := map[string]string{}
	for _, f := range files {
		stored[f.Path] = f.Text
	}
	file := c.file(own, files[0].Text)
	deps := &dependencies{c: c, language: lang, own: file.Path, stored: stored}
	s, err := c.compile(name, file, deps, c.o.Probe)
	if err != nil {
		return nil, err
	}
	s.Version, s.History = v.ID, c.history(s)
	reg := register(s, scripting.ParseHeader(lang.Comment(file.Text)), false)
	if reg.Err != nil {
		return nil, reg.Err
	}
	reg.Version, reg.Sources = v.ID, sources
	reg.About = s.audit(lang, deps.modules)
	return &reg, nil
}

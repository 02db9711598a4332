package registry

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/scripting"
	"github.com/weir-run/weir/scripting/block"
	"github.com/weir-run/weir/scripting/node"
	"github.com/weir-run/weir/scripting/versions"
)

// keepsHistory reports whether a script has a history. Those that ship with weir have
// none.
func (c *catalog) keepsHistory(f scripting.File) bool {
	return f.Path != "" && c.o.Versions != nil && !c.o.Versions.ReadOnly()
}

// onDisk is the version of a script that is on disk, as its history needs it.
type onDisk struct {
	version string // "" if it cannot be used
	files   []versions.File
	test    string   // path of its test file; "" without one
	sources []string // of its registration
}

// describe returns the version of a script that is on disk. modules are the files that
// the script imports.
func (c *catalog) describe(s *entry, modules []scripting.File, test scripting.File, sources []string) *onDisk {
	d := &onDisk{version: s.Version, sources: sources}
	for _, f := range append([]scripting.File{s.File}, append(modules, test)...) {
		if f.Path != "" { // files that ship with weir are always there
			d.files = append(d.files, versions.File{Path: c.rel(f), Text: f.Text})
		}
	}
	if test.Path != "" {
		d.test = c.rel(test)
	}
	return d
}

// content returns what a pin remembers of the files on disk.
func (d *onDisk) content() string {
	if d.version == "" {
		return ""
	}
	return versions.Content(d.files, d.test)
}

// setOnDisk notes which version of a script is on disk.
func (c *catalog) setOnDisk(name string, d *onDisk) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.disk[name] = d
}

// getOnDisk returns the version of a script that is on disk. Components of older
// versions ask as well.
func (c *catalog) getOnDisk(name string) *onDisk {
	c.mu.Lock()
	defer c.mu.Unlock()
	if d := c.disk[name]; d != nil {
		return d
	}
	return &onDisk{}
}

// history returns the history of a script for its components.
func (c *catalog) history(name string) *node.History {
	return &node.History{
		Record: func() versions.Record { return c.o.Versions.Get(name, c.dir) },
		Files:  c.o.Versions.Files,
		Pin:    func(id string, v versions.Version, running string) error { return c.pin(name, id, v, running) },
		Unpin:  func(id string) string { return c.unpin(name, id) },
	}
}

// pin pins a version of a script to a node that runs another one.
func (c *catalog) pin(name, id string, v versions.Version, running string) error {
	if _, err := c.compiledOnce(name, v); err != nil {
		return fmt.Errorf("cannot use version %s: %w", component.ShortVersion(v.ID), err)
	}
	d, store := c.getOnDisk(name), c.o.Versions
	var err error
	if v.ID == d.version {
		err = store.Unpin(name, c.dir, id)
	} else {
		err = store.Pin(name, c.dir, versions.Pin{Node: id, ID: v.ID, Over: d.content()})
	}
	rolledBack := versions.Refusal{ID: running, Step: versions.StepRollback, Node: id, Reason: "version " + component.ShortVersion(v.ID) + " runs instead"}
	if err = errors.Join(err, store.Refuse(name, c.dir, rolledBack)); err != nil {
		c.o.Logger.Warn("a restart will not know of this rollback", "component_id", id, "err", err)
	}
	c.o.Logger.Info("rolled back", "component_id", id, "from", component.ShortVersion(running), "to", component.ShortVersion(v.ID), "pinned", v.ID != d.version)
	c.ask(d.sources)
	return nil
}

// unpin ends the pin of a node and returns the version that is on disk; "" if that
// cannot be used.
func (c *catalog) unpin(name, id string) string {
	if err := c.o.Versions.Unpin(name, c.dir, id); err != nil {
		c.o.Logger.Warn("the node is pinned again after a restart", "component_id", id, "err", err)
	}
	d := c.getOnDisk(name)
	c.o.Logger.Info("unpinned", "component_id", id, "version", component.ShortVersion(d.version))
	c.ask(d.sources)
	return d.version
}

// ask has the engine ask for a script again.
func (c *catalog) ask(sources []string) {
	if changed := c.onChange(); changed != nil && len(sources) > 0 {
		changed(sources[:1])
	}
}

// activated notes that a version on disk became active on a node.
func (c *catalog) activated(s *entry, d *onDisk, id string, at time.Time) {
	v := versions.Version{ID: d.version, Test: d.test}
	if c.hasPassed(s) {
		v.Passed = at
	}
	ended, err := c.o.Versions.Activate(s.Name, c.dir, v, d.files, id, at)
	if ended != nil {
		c.o.Logger.Info("the node is no longer pinned, because the files of its script have changed", "component_id", id, "pinned", component.ShortVersion(ended.ID), "version", component.ShortVersion(d.version))
	}
	if err != nil {
		c.o.Logger.Warn("cannot keep this version of the script: a later start cannot fall back on it", "script", s.Name, "err", err)
	}
}

// recorded notes the versions that a trial refuses in the history. The step test notes
// its own, once for all nodes.
func (c *catalog) recorded(s *entry, try func(context.Context, component.Trial) *component.Rejection) func(context.Context, component.Trial) *component.Rejection {
	return func(ctx context.Context, t component.Trial) *component.Rejection {
		r := try(ctx, t)
		if r == nil || r.Err == nil || r.Step == component.StepTest || ctx.Err() != nil {
			return r
		}
		b := block.ArgumentsOf(s.Definition, t.Args).Script
		f := versions.Refusal{ID: s.Version, Step: r.Step, Node: t.Node, Reason: r.Err.Error(), Limits: limitsOf(&b, r.Step)}
		if err := c.o.Versions.Refuse(s.Name, c.dir, f); err != nil {
			c.o.Logger.Warn("cannot keep in the history that a version was refused: weir history does not list it, and the version runs after a restart", "script", s.Name, "err", err)
		}
		return r
	}
}

// limitsOf returns the settings of a step, as text; "" if the block does not have the
// step.
func limitsOf(b *block.Script, step string) string {
	switch {
	case step == component.StepShadow && b.OnReload == block.OnReloadShadow:
		return fmt.Sprintf("%+v", b.Shadow)
	case step == component.StepCanary && b.Canary != nil:
		return fmt.Sprintf("%+v", *b.Canary)
	}
	return ""
}

// refusal returns why a step refused this version for a node, if that is still in
// force: neither has the version become active there since, nor have the limits of the
// step changed.
func (s *entry) refusal(node string, b *block.Script, step string) *component.Rejection {
	limits := limitsOf(b, step)
	if limits == "" || s.past == nil || !s.past.o.LastGood {
		return nil
	}
	if f := s.past.o.Versions.Get(s.Name, s.past.dir).Refusal(node, s.Version, step, limits); f != nil {
		return &component.Rejection{Step: step, Err: errors.New(f.Reason)}
	}
	return nil
}

// atStart returns why this version must not run yet on a node on which nothing runs: a
// step refused it, or it must have a canary, for which the version runs that was active
// last.
func (s *entry) atStart(node string, b *block.Script) *component.Rejection {
	if s.past == nil || !s.past.o.LastGood {
		return nil
	}
	for _, step := range []string{component.StepShadow, component.StepCanary} {
		if r := s.refusal(node, b, step); r != nil {
			return s.withLastGood(r, node)
		}
	}
	if b.Canary == nil || s.Definition.Kind != scripting.Transform {
		return nil
	}
	last := s.past.o.Versions.Get(s.Name, s.past.dir).LastGood(node, "")
	if last == nil || last.ID == s.Version {
		return nil
	}
	if _, active := last.Since(node); !active {
		return nil // the node is new
	}
	r := s.withLastGood(&component.Rejection{}, node)
	if r.LastGood == nil {
		return nil
	}
	s.past.o.Logger.Info("the version of the script that was active last runs first, and the version on disk gets a canary",
		"component_id", node, "running", component.ShortVersion(last.ID), "version", component.ShortVersion(s.Version))
	return r
}

// withLastGood adds the last good version for a node to a rejection of this one.
func (s *entry) withLastGood(r *component.Rejection, node string) *component.Rejection {
	own := *r
	if c := s.past; c != nil {
		if last := c.o.Versions.Get(s.Name, c.dir).LastGood(node, s.Version); last != nil {
			own.LastGood = c.restored(s.Name, *last, c.getOnDisk(s.Name).sources)
		}
	}
	return &own
}

// instead returns the version of a script that a node runs instead of the one on
// disk: the pinned version or, if the one on disk cannot be used, the last good one.
func (c *catalog) instead(name string, d *onDisk, id string) *component.Registration {
	pin, pinned := c.o.Versions.Pinned(name, c.dir, id)
	pinned = pinned && (d.version == "" || pin.Over == d.content())
	var v *versions.Version
	if pinned || d.version == "" && c.o.LastGood {
		v = c.o.Versions.Get(name, c.dir).LastGood(id, d.version)
	}
	if v == nil {
		return nil
	}
	reg := c.restored(name, *v, d.sources)
	if reg == nil {
		return nil
	}
	own := *reg
	if own.Pinned = pinned; pinned {
		text := fmt.Sprintf("pinned to version %s since %s UTC, until its files change or you run 'weir unpin %s'", component.ShortVersion(v.ID), pin.Time.Format(time.DateTime), id)
		own.Build = func(o component.Options, args any, previous component.Component) (component.Component, error) {
			o.Health(component.Health{State: component.Healthy, Reason: "pinned", Message: text})
			return reg.Build(o, args, previous)
		}
	}
	return &own
}

// restoration is a version that was compiled from the history, or why it was not.
type restoration struct {
	reg *component.Registration
	err error
}

// restored returns the registration of a version in the history; nil if it cannot be
// used, which is in the log. It has no trial, because it was active before. sources are
// those of the version on disk: when one of them changes, the engine asks again.
func (c *catalog) restored(name string, v versions.Version, sources []string) *component.Registration {
	reg, err := c.compiledOnce(name, v)
	if err != nil {
		return nil
	}
	own := *reg
	own.Sources = sources
	return &own
}

// compiledOnce is restore, once for each version.
func (c *catalog) compiledOnce(name string, v versions.Version) (*component.Registration, error) {
	key := name + " " + v.ID
	c.mu.Lock()
	r, ok := c.restorations[key]
	c.mu.Unlock()
	if ok && r.err == nil {
		return r.reg, nil
	}
	reg, err := c.restore(name, v)
	if err != nil && (!ok || r.err.Error() != err.Error()) {
		c.o.Logger.Warn("cannot use a version of a script in the history", "script", name, "version", component.ShortVersion(v.ID), "err", err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.restorations[key] = restoration{reg, err}
	return reg, err
}

// restore makes a registration of a version that is not on disk any more.
func (c *catalog) restore(name string, v versions.Version) (*component.Registration, error) {
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
	s.Version, s.History = v.ID, c.history(name)
	reg := register(s, scripting.ParseHeader(lang.Comment(file.Text)), false)
	if reg.Err != nil {
		return nil, reg.Err
	}
	reg.Version, reg.Trial = v.ID, nil
	reg.About = s.audit(lang, deps.modules)
	return &reg, nil
}

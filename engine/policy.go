package engine

import (
	"path/filepath"
	"slices"

	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/config"
	"github.com/weir-run/weir/engine/pkg"
	"github.com/weir-run/weir/engine/pkg/remote"
)

// readPolicy sets the policy of the config. It must be known before anything is
// imported.
func (x *planner) readPolicy(m *module, blocks []*config.Block) {
	for _, b := range blocks {
		if b.Name != "policy" || b.Label != "" && x.p.policy != nil {
			continue
		}
		p, ds := b.Policy(m.scope, x.e.o.GrantKinds)
		x.report(&wanted{m: m, block: b}, ds)
		x.p.policy = p
	}
	if x.p.policy == nil {
		x.p.policy = &pkg.Policy{}
	}
}

// misplacedPolicy reports a policy that is not at the top level.
func (x *planner) misplacedPolicy(m *module, b *config.Block) {
	if m.id != "" || m.abstract {
		x.mistaken(m, nil, b.Span, "block policy belongs at the top level of the config", "")
	}
}

// allowLocal returns an error if the policy does not allow to import a file or a folder.
// While only exports change, the answer stays.
func (x *planner) allowLocal(abs string) error {
	if x.mode.same && x.e.plan != nil {
		if err, ok := x.e.plan.verdicts[abs]; ok {
			x.p.verdicts[abs] = err
		}
	}
	err, known := x.p.verdicts[abs]
	if !known {
		err = x.judgeLocal(abs)
		x.p.verdicts[abs] = err
	}
	return err
}

func (x *planner) judgeLocal(abs string) error {
	p := x.p.policy
	source := pkg.Local(abs)
	if err := p.AllowSource(source, absolute(x.p.cfg.Dir())); err != nil || len(p.Keys) == 0 {
		return err
	}
	root, err := pkg.Root(abs)
	if err != nil {
		return err
	}
	if root == "" {
		return p.Verify(nearby(abs), "", nil)
	}
	for _, name := range []string{pkg.ManifestName, pkg.SumsName, pkg.SignatureName} {
		x.p.watch[filepath.Join(root, name)] = true
	}
	return p.Verify(nearby(abs), root, nil)
}

// allowContent returns an error if the policy does not allow the content of a remote
// source. 'weir pkg lock' accepts it, because it may replace content that is refused.
func (x *planner) allowContent(source string, c remote.Content) error {
	if x.mode.locking {
		return nil
	}
	dir := ""
	if slices.ContainsFunc(c.Sums, func(f pkg.Sum) bool { return f.Path == pkg.ManifestName }) {
		dir = c.Dir
	}
	return x.p.policy.Verify(source, dir, c.Sums)
}

// deniedGrants returns the errors for grants of a component that the policy denies.
func deniedGrants(p *pkg.Policy, r component.Registration, args any) (es []*component.ArgumentError) {
	if r.Grants == nil || len(p.DenyGrants) == 0 {
		return nil
	}
	for _, g := range r.Grants(args) {
		if err := p.AllowGrant(g.Kind, g.What); err != nil {
			es = append(es, &component.ArgumentError{Path: g.Path, Err: err})
		}
	}
	return es
}

package registry

import (
	"errors"
	"fmt"
	"strings"

	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/scripting"
	"github.com/weir-run/weir/scripting/block"
)

// check is the registration's Check.
func (s *entry) check(args any, settled func(string) bool) []*component.ArgumentError {
	a := block.ArgumentsOf(s.Definition, args)
	es := s.checkKind(a, settled)
	if a.Script.Canary != nil && s.Definition.Kind != scripting.Transform && settled("script") {
		es = append(es, &component.ArgumentError{Path: "script.canary", Err: fmt.Errorf(
			"cannot use the block canary: %s is a %s, and only transforms can have a canary; remove the block", s.Name, s.Definition.Kind)})
	}
	if settled("script") { // otherwise, Build checks it again
		es = append(es, s.checkGrants(a.Script)...)
		var unset block.Shadow
		unset.SetToDefault()
		if a.Script.Shadow != unset && a.Script.OnReload != block.OnReloadShadow {
			es = append(es, &component.ArgumentError{Path: "script.shadow", Warning: true, Err: errors.New(`the block shadow has no effect without on_reload = "shadow"`)})
		}
		if err := a.Script.CheckState(s.Name, s.Definition); err != nil {
			es = append(es, &component.ArgumentError{Path: "script.limits.state", Err: err})
		}
	}
	return es
}

// grants is the registration's Grants.
func (s *entry) grants(args any) (gs []component.Grant) {
	allow := block.ArgumentsOf(s.Definition, args).Script.Allow
	for _, kind := range scripting.NeedKinds {
		for _, what := range allow.Patterns(kind) {
			gs = append(gs, component.Grant{Kind: kind, What: what, Path: "script.allow." + kind})
		}
	}
	return gs
}

// checkGrants checks script.allow. Missing grants are errors, unneeded grants
// are warnings.
func (s *entry) checkGrants(b block.Script) (es []*component.ArgumentError) {
	g, err := b.Allow.Grants()
	if err != nil {
		return nil // Validate reported it
	}
	if e := block.MissingError(s.Name, &b.Allow, block.MissingGrants(s.Definition.Needs, g)); e != nil {
		es = append(es, e)
	}
	unneeded := block.UnneededGrants(s.Definition.Needs, &b.Allow)
	for _, kind := range scripting.NeedKinds {
		if list := unneeded[kind]; len(list) > 0 {
			es = append(es, &component.ArgumentError{
				Path: "script.allow." + kind, Warning: true,
				Err: fmt.Errorf("%s has no use for %s: its needs do not name it", s.Name, quoteAnd(kind, list)),
			})
		}
	}
	return es
}

// checkKind returns the errors in a block that depend on the component's kind.
func (s *entry) checkKind(a block.Arguments, settled func(string) bool) (es []*component.ArgumentError) {
	if settled("script") && a.Script.OnReload == block.OnReloadShadow && s.Definition.Kind != scripting.Transform {
		es = append(es, &component.ArgumentError{Path: "script.on_reload", Err: fmt.Errorf(
			`cannot use on_reload = "shadow": %s is a %s, and only the results of a transform can be compared without external systems; use "test"`, s.Name, s.Definition.Kind)})
	}
	switch s.Definition.Kind {
	case scripting.Transform:
		return nil
	case scripting.Sink:
		if settled("script") && a.Script.OnError == scripting.OnErrorPass {
			es = append(es, &component.ArgumentError{Path: "script.on_error", Err: fmt.Errorf(
				`cannot use on_error = "pass": %s is a sink, which passes nothing on; there is "hold", "drop" or "quarantine"`, s.Name)})
		}
		return es
	}
	if s.Definition.Poll && settled("interval") {
		if err := scripting.CheckInterval(a.Interval); err != nil {
			es = append(es, &component.ArgumentError{Path: "interval", Err: err})
		}
	}
	if !settled("script") {
		return es
	}
	refuse := func(path, format string, args ...any) {
		es = append(es, &component.ArgumentError{Path: "script." + path, Err: fmt.Errorf(format, args...)})
	}
	if a.Script.OnError != scripting.OnErrorDrop {
		refuse("on_error", "cannot use on_error = %q: %s is a source, of which an error costs what the hook made before, there is nothing to %s",
			a.Script.OnError, s.Name, a.Script.OnError)
	}
	if a.Script.Concurrency == block.ConcurrencyParallel || a.Script.Concurrency == block.ConcurrencyPartition {
		refuse("concurrency", `cannot use concurrency = %q: %s is a source, which gets no batches to split, there is "ordered" or "single"`, a.Script.Concurrency, s.Name)
	}
	return es
}

// Checks are additional checks for validating a config, not for running it.
type Checks struct {
	// Warn is called with possible errors.
	Warn func(*scripting.Error)
	// Test compiles the test file of a script; nil: tests are not looked at.
	Test func(Tested) error
}

// check checks a script that can be loaded.
func (c *Checks) check(p scripting.Program, t Tested) error {
	var errs []error
	if l, ok := p.(scripting.Linted); ok {
		for _, f := range l.Lint() {
			if !f.Warning {
				errs = append(errs, f.Err)
			} else if c.Warn != nil {
				c.Warn(f.Err)
			}
		}
	}
	if c.Test != nil && t.Test.Name != "" {
		if err := c.Test(t); err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

func quoteAnd(kind string, list []string) string {
	q := make([]string, len(list))
	for i, s := range list {
		q[i] = fmt.Sprintf("%s %q", kind, s)
	}
	return strings.Join(q, " and ")
}

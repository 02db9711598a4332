package scripttest

import (
	"errors"

	"github.com/weir-run/weir/scripting"
	"github.com/weir-run/weir/scripting/registry"
)

// CheckTest returns what registry.Checks.Test takes: it compiles the test file
// of a script and looks at it, and runs nothing. warn is told of what need not
// be a mistake.
func CheckTest(langs []scripting.Language, modules []*scripting.Module, warn func(*scripting.Error)) func(registry.Tested) error {
	return func(t registry.Tested) error {
		s := &suite{folder: t.Folder, langs: langs, modules: modules}
		l, _, _ := s.parts(t.Test.Path)
		return s.lint(l, t.Test, warn)
	}
}

func (s *suite) lint(l scripting.Language, f scripting.File, warn func(*scripting.Error)) error {
	linter, ok := l.(scripting.TestLinter)
	if !ok {
		return nil
	}
	env := s.folder.Env(l)
	env.Modules = s.modules
	found, err := linter.LintTest(f, env, API(linter.Words()))
	if err != nil {
		return err
	}
	var errs []error
	for _, f := range found {
		if !f.Warning {
			errs = append(errs, f.Err)
		} else if warn != nil {
			warn(f.Err)
		}
	}
	return errors.Join(errs...)
}

// Check looks at the scripts and test files that o names, as at those of a
// config, and returns how many there are. The error joins what is wrong.
func Check(o Options) (n int, err error) {
	if o.Checks == nil {
		o.Checks = &registry.Checks{}
	}
	o.test = OnReload(o.Languages, o.Modules, o.Pipelines, DefaultReloadLimit) // as weir run has it, so that versions have the same ID
	targets, err := find(o)
	if err != nil {
		return 0, err
	}
	var errs []error
	for _, t := range targets {
		n++
		if t.err != nil {
			errs = append(errs, t.err)
			continue
		}
		if t.script.Name != "" {
			if r, ok := t.suite.folder.Catalog.Lookup(t.name); ok && r.Err != nil {
				errs = append(errs, r.Err)
			}
		}
		if t.test.Name != "" {
			if err := t.suite.lint(t.testLang, t.test, o.Checks.Warn); err != nil {
				errs = append(errs, err)
			}
		}
	}
	if n == 0 {
		return 0, ErrNoTests
	}
	return n, errors.Join(errs...)
}

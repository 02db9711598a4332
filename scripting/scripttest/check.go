package scripttest

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

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
			r, ok := t.suite.folder.Catalog.Lookup(t.name)
			if ok && r.Err != nil {
				errs = append(errs, r.Err)
			} else if ok && o.Checks.Warn != nil && t.untested() {
				o.Checks.Warn(t.missingTest())
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

// untested reports whether a script has neither a test file nor an example, and no
// comment that explains this.
func (t target) untested() bool {
	if t.test.Name != "" || len(scripting.ParseHeader(t.lang.Comment(t.script.Text)).Examples) > 0 {
		return false
	}
	m, ok := t.lang.(scripting.Mutator)
	return !ok || !slices.ContainsFunc(m.Ignores(t.script), func(c scripting.Ignore) bool {
		return c.ID == scripting.LintMissingTest && c.Reason != ""
	})
}

// missingTest returns the finding for a script without tests.
func (t target) missingTest() *scripting.Error {
	ext := filepath.Ext(t.script.Name)
	e := t.script.Error(1, scripting.HookLoad, fmt.Errorf("%s has no tests", t.name))
	e.ID = scripting.LintMissingTest
	e.Hint = fmt.Sprintf("write %s, or an example in the comment at the top; 'weir help testing-scripts' describes both",
		strings.TrimSuffix(t.script.Name, ext)+testSuffix(ext))
	return e
}

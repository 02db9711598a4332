package scripttest

import (
	"errors"
	"fmt"
	"slices"

	"github.com/weir-run/weir/scripting"
)

// group is a describe, or the file itself.
type group struct {
	up            *group
	name          string
	mode          mode
	before, after []scripting.Callback // around each test

	// beforeAll runs once before the first of the tests, afterAll after the last.
	beforeAll, afterAll []scripting.Callback
	entered             bool
	failed              error // of beforeAll
	left                int   // tests still to run, also in groups inside
}

// testCase is an it.
type testCase struct {
	in   *group
	name string
	line int
	mode mode
	fn   scripting.Callback // nil: pending
}

// mode is whether a test, or those of a group, run.
type mode uint8

const (
	runs mode = iota
	skipped
	only // and no others of the file
)

// fullName is the name with those of the groups around it.
func (c *testCase) fullName() string {
	name := c.name
	for g := c.in; g != nil && g.up != nil; g = g.up {
		name = g.name + " " + name
	}
	return name
}

// hasMode reports whether the test, or a group around it, was declared so.
func (c *testCase) hasMode(m mode) bool {
	if c.mode == m {
		return true
	}
	for g := c.in; g != nil; g = g.up {
		if g.mode == m {
			return true
		}
	}
	return false
}

// callbacks returns what runs before the test, outermost first, and after it,
// innermost first.
func (c *testCase) callbacks() (before, after []scripting.Callback) {
	for g := c.in; g != nil; g = g.up {
		before = append(append([]scripting.Callback(nil), g.before...), before...)
		after = append(after, g.after...)
	}
	return before, after
}

// describe groups the tests that fn declares; without fn it is for later.
func (s *session) describe(name string, fn scripting.Callback, m mode) error {
	if s.running {
		return errors.New("cannot use describe inside it: tests are declared before they run")
	}
	if fn == nil {
		return s.it(name, nil, m)
	}
	s.at = &group{up: s.at, name: name, mode: m}
	defer func() { s.at = s.at.up }()
	_, err := fn()
	return err
}

// it declares a test; without fn it is pending.
func (s *session) it(name string, fn scripting.Callback, m mode) error {
	if s.running {
		return errors.New("cannot use it inside it: tests are declared before they run")
	}
	_, line := s.vm.Pos()
	s.all = append(s.all, &testCase{in: s.at, name: name, line: line, fn: fn, mode: m})
	return nil
}

// addCallback adds what runs before or after tests of the group.
func (s *session) addCallback(into func(g *group) *[]scripting.Callback, what string, fn scripting.Callback) error {
	if s.running {
		return fmt.Errorf("cannot use %s inside it: move it out of the test", what)
	}
	fns := into(s.at)
	*fns = append(*fns, fn)
	return nil
}

// plan drops the functions of tests that are not to run, and counts for each
// group those from an index on that are, of which wanted chooses.
func (s *session) plan(from int, wanted func(name string) bool) {
	some := slices.ContainsFunc(s.all, func(c *testCase) bool { return c.hasMode(only) })
	for i, c := range s.all {
		if c.hasMode(skipped) || some && !c.hasMode(only) {
			c.fn = nil
		}
		if i < from || c.fn == nil || !wanted(c.fullName()) {
			continue
		}
		for g := c.in; g != nil; g = g.up {
			g.left++
		}
	}
}

// runBefore runs what is to run before the first test of a group, outermost first.
func (s *suite) runBefore(ses *session, g *group) error {
	if g == nil {
		return nil
	}
	if err := s.runBefore(ses, g.up); err != nil || g.entered {
		return errors.Join(err, g.failed)
	}
	g.entered = true
	g.failed = s.calls(ses, g.beforeAll)
	return g.failed
}

// runAfter runs what is to run after the last test of a group, innermost first.
func (s *suite) runAfter(ses *session, g *group) (err error) {
	for ; g != nil; g = g.up {
		if g.left--; g.left == 0 && !ses.vm.Broken() {
			if late := s.calls(ses, g.afterAll); err == nil {
				err = late
			}
		}
	}
	return err
}

// calls runs functions of the file until one fails.
func (s *suite) calls(ses *session, fns []scripting.Callback) error {
	for _, fn := range fns {
		err := ses.vm.Call(fn, s.limit)
		s.took(ses.vm.Used())
		if err != nil {
			return err
		}
	}
	return nil
}

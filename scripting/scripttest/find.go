package scripttest

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/weir-run/weir/engine/files"
	"github.com/weir-run/weir/scripting"
	"github.com/weir-run/weir/scripting/registry"
)

// defaultDir is the default folder of scripts.
const defaultDir = "scripts"

// target is a script with its test file; either may be missing.
type target struct {
	suite    *suite
	name     string             // of the component
	lang     scripting.Language // of the script
	script   scripting.File     // Name "": none, or not asked for
	testLang scripting.Tester   // of the test file, which may be another
	test     scripting.File
	err      error // why the test file could not be read
}

func places(o Options) string {
	if len(o.Paths) > 0 {
		return strings.Join(o.Paths, ", ")
	}
	if o.Dir != "" {
		return o.Dir
	}
	return defaultDir
}

// Folders returns the folders of scripts that the paths are in, absolute, and
// sorted.
func Folders(o Options) ([]string, error) {
	paths := o.Paths
	if len(paths) == 0 {
		paths = []string{places(o)}
	}
	var out []string
	for _, p := range paths {
		info, err := files.Stat(p)
		if err != nil {
			return nil, fmt.Errorf("cannot find the tests: %w", err)
		}
		dir, err := folderOf(o.Dir, p, info.IsDir())
		if err != nil {
			return nil, err
		}
		out = append(out, dir)
	}
	slices.Sort(out)
	return slices.Compact(out), nil
}

// find returns what there is to run, in order of path.
func find(o Options) ([]target, error) {
	paths := o.Paths
	if len(paths) == 0 {
		paths = []string{places(o)}
	}
	suites := map[string]*suite{}
	var out []target
	seen := map[string]int{}
	for _, p := range paths {
		info, err := files.Stat(p)
		if err != nil {
			return nil, fmt.Errorf("cannot find the tests: %w", err)
		}
		dir, err := folderOf(o.Dir, p, info.IsDir())
		if err != nil {
			return nil, err
		}
		s := suites[dir]
		if s == nil {
			probe := &scripting.Probe{}
			if o.Coverage {
				probe.Coverage = &scripting.Coverage{}
			}
			if s, err = newSuite(o, dir, probe); err != nil {
				return nil, err
			}
			suites[dir] = s
		}
		found := []string{p}
		if info.IsDir() {
			if found, err = listFiles(p); err != nil {
				return nil, err
			}
		} else if l, _, _ := s.parts(p); l == nil {
			return nil, fmt.Errorf("cannot test %s: it is not a script; scripts end in %s", p, strings.Join(extensions(o.Languages), ", "))
		}
		for _, f := range found {
			if err := s.add(&out, seen, f, !info.IsDir()); err != nil {
				return nil, err
			}
		}
	}
	slices.SortStableFunc(out, func(a, b target) int { return strings.Compare(a.path(), b.path()) })
	return out, nil
}

func (t target) path() string {
	if t.script.Path != "" {
		return t.script.Path
	}
	return t.test.Path
}

func extensions(ls []scripting.Language) (out []string) {
	for _, l := range ls {
		out = append(out, l.Extensions()...)
	}
	return out
}

// folderOf is the folder of scripts that a path is in.
func folderOf(dir, path string, isDir bool) (string, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return "", fmt.Errorf("cannot find the tests: %w", err)
	}
	if dir != "" {
		root, err := filepath.Abs(dir)
		if err != nil {
			return "", fmt.Errorf("cannot find the scripts folder: %w", err)
		}
		if rel, err := filepath.Rel(root, abs); err != nil || !filepath.IsLocal(rel) {
			return "", fmt.Errorf("cannot test %s: it is not in the scripts folder %s", path, dir)
		}
		return root, nil
	}
	for up := abs; ; up = filepath.Dir(up) {
		if filepath.Base(up) == defaultDir && (up != abs || isDir) {
			return up, nil
		}
		if up == filepath.Dir(up) {
			break
		}
	}
	if isDir {
		return abs, nil
	}
	// scripts/http/paths.lua is http.paths: the folder above that of the file.
	return filepath.Dir(filepath.Dir(abs)), nil
}

func newSuite(o Options, dir string, probe *scripting.Probe) (*suite, error) {
	s := &suite{langs: o.Languages, modules: o.Modules, pipelines: o.Pipelines, match: o.Match, limit: cmp.Or(o.Limit, DefaultLimit), update: o.Update, write: o.Write, chaos: o.Chaos, seed: o.Seed, probe: probe}
	c, err := registry.NewCatalog(registry.Options{
		Languages: o.Languages, Modules: o.Modules, Embedded: o.Embedded, Edited: o.Edited, UserDir: dir, Probe: s.probe, Checks: o.Checks,
		Test: o.test, Versions: o.Versions,
	})
	if err != nil {
		return nil, err
	}
	s.folder, _ = registry.FolderOf(c)
	return s, nil
}

// listFiles returns the files of a folder, as the catalog finds them, and the
// libraries.
func listFiles(dir string) (out []string, err error) {
	if _, err := files.Stat(dir); err != nil {
		return nil, fmt.Errorf("cannot look for tests: %w", err)
	}
	found, err := registry.Walk(dir, "")
	if err != nil {
		return nil, fmt.Errorf("cannot look for tests in %s: %w", dir, err)
	}
	for _, rel := range found {
		out = append(out, filepath.Join(dir, filepath.FromSlash(rel)))
	}
	return out, nil
}

// parts splits a file's path: the language, the path without extension and
// test suffix, and whether it is a test file. l is nil for other files.
func (s *suite) parts(path string) (l scripting.Language, base string, test bool) {
	for _, l := range s.langs {
		for _, ext := range l.Extensions() {
			base, ok := strings.CutSuffix(path, ext)
			if !ok {
				continue
			}
			for _, suffix := range []string{"_test", ".test"} {
				if b, ok := strings.CutSuffix(base, suffix); ok {
					return l, b, true
				}
			}
			return l, base, false
		}
	}
	return nil, "", false
}

// testSuffix returns how the name of a test file ends, by the extension of its language.
func testSuffix(ext string) string {
	if ext == ".lua" {
		return "_test" + ext
	}
	return ".test" + ext
}

// add adds a file to what is run. One that was named brings what belongs to it:
// a script its test file.
func (s *suite) add(out *[]target, seen map[string]int, path string, named bool) error {
	abs, err := filepath.Abs(path)
	if err != nil {
		return fmt.Errorf("cannot find the tests: %w", err)
	}
	l, base, test := s.parts(abs)
	if l == nil {
		return nil
	}
	i, ok := seen[base]
	if !ok {
		i = len(*out)
		seen[base] = i
		*out = append(*out, target{suite: s, name: s.component(base)})
	}
	t := &(*out)[i]
	if test {
		if t.test.Name != "" && t.test.Path != abs {
			return fmt.Errorf("cannot tell which file tests %s: there are %s and %s", t.name, t.test.Name, display(abs))
		}
		t.test, t.err = s.read(abs)
		if t.testLang, _ = l.(scripting.Tester); t.testLang == nil {
			t.err = fmt.Errorf("cannot run tests in %s", l.Name())
		}
		return nil
	}
	if !s.isComponent(base) {
		if named {
			return fmt.Errorf("cannot test %s: a file below lib is no component; test a component that requires it", path)
		}
		return nil
	}
	f, err := s.read(abs)
	if err != nil {
		return err
	}
	t.script, t.lang = f, l
	if !named {
		return nil
	}
	for _, p := range registry.TestFiles(base, s.langs) {
		if _, err := files.Stat(p); err == nil {
			if err := s.add(out, seen, p, false); err != nil {
				return err
			}
		}
	}
	return nil
}

// component is the block name of a file without its extension.
func (s *suite) component(base string) string {
	rel, err := filepath.Rel(s.folder.Dir, base)
	if err != nil {
		return base
	}
	return strings.ReplaceAll(filepath.ToSlash(rel), "/", ".")
}

// isComponent reports whether the file is one that the catalog knows.
func (s *suite) isComponent(base string) bool {
	return !strings.HasPrefix(s.component(base), "lib.")
}

// display is a path as people see it, relative to the working directory when
// it is below.
func display(path string) string {
	if work, err := os.Getwd(); err == nil {
		if rel, err := filepath.Rel(work, path); err == nil && filepath.IsLocal(rel) {
			path = rel
		}
	}
	return filepath.ToSlash(path)
}

func (s *suite) read(path string) (scripting.File, error) {
	f := scripting.File{Name: display(path), Path: path}
	rel, err := filepath.Rel(s.folder.Dir, path)
	if err != nil {
		return f, fmt.Errorf("cannot read %s: %w", f.Name, err)
	}
	text, err := files.ReadIn(s.folder.Dir, filepath.ToSlash(rel), scripting.MaxFileSize)
	if err != nil {
		return f, registry.ReadError(f.Name, err)
	}
	f.Text = string(text)
	return f, nil
}

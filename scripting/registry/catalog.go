package registry

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/files"
	"github.com/weir-run/weir/scripting"
	"github.com/weir-run/weir/scripting/host"
	"github.com/weir-run/weir/scripting/node"
	"github.com/weir-run/weir/scripting/versions"
)

// Options are the options of NewCatalog.
type Options struct {
	Languages []scripting.Language
	// UserDir is the user's folder of scripts; it need not exist. Empty: none.
	UserDir string
	// Embedded are the scripts that ship with weir, in the same layout; nil: none.
	Embedded fs.FS
	// Edited are texts of scripts by the names of their components. They are used instead
	// of the texts of the files, which must exist.
	Edited map[string]string
	// Namespace comes before every name, with a dot: in namespace acme the file
	// http/paths.lua is acme.http.paths, and paths.lua is acme.paths. It is an
	// identifier, or several with dots; empty: none.
	Namespace string
	// Modules is the standard library: what require finds before lib/.
	Modules []*scripting.Module
	// Outside is what scripts reach beyond weir.
	Outside host.Outside
	// Test runs the tests of a user's script before a version of it takes over, at
	// the start and after a save. Its error rejects the version. nil: scripts are
	// not tested.
	Test func(context.Context, Tested) error
	// Report runs the tests of a user's script for people, with the scripts of its folder
	// compiled with the probe. nil: nobody asks for it.
	Report func(context.Context, Tested, *scripting.Probe) *node.TestReport
	// Versions keeps the versions that were active; nil: nothing does, so a start has
	// no last good version to fall back on.
	Versions *versions.Store
	// LastGood runs the last good version of a script from Versions if nothing runs and
	// the version on disk cannot be used.
	LastGood bool
	// Compilers bound how long scripts may take to compile; nil: the catalog makes
	// its own.
	Compilers *Compilers
	// Probe measures the scripts; nil: nothing does.
	Probe *scripting.Probe
	// Checks look at scripts more closely than is needed to run them; nil: not.
	Checks *Checks
	// Logger is told once of each file whose name cannot be a block's; nil: nobody.
	Logger *slog.Logger
}

// NewCatalog returns the catalog of the scripts in a folder and of those that
// ship with weir. A user's file replaces a shipped one of the same name.
func NewCatalog(o Options) (component.Catalog, error) {
	if o.Compilers == nil {
		o.Compilers = NewCompilers(0)
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	c := &catalog{o: o, answers: map[string]*answer{}, passed: map[string]string{}, compiling: map[string]*compilation{},
		disk: map[string]*onDisk{}, restorations: map[string]restoration{}}
	if o.Namespace != "" {
		for s := range strings.SplitSeq(o.Namespace, ".") {
			if !scripting.IsIdentifier(s) {
				return nil, fmt.Errorf("cannot use %q as a namespace of scripts: it must be made of identifiers and dots", o.Namespace)
			}
		}
		c.prefix = o.Namespace + "."
	}
	if o.UserDir != "" {
		abs, err := filepath.Abs(o.UserDir)
		if err != nil {
			return nil, fmt.Errorf("cannot find the scripts folder: %w", err)
		}
		c.dir = abs
		if c.work, err = os.Getwd(); err != nil {
			return nil, fmt.Errorf("cannot find the working directory: %w", err)
		}
	}
	return c, nil
}

type catalog struct {
	o      Options
	prefix string // of every name: the namespace with a dot
	dir    string // absolute; "" without
	work   string // the working directory when weir started

	listing sync.Mutex      // held while the scripts are listed, before mu
	told    map[string]bool // misnamed files that are in the log
	found   []string        // the user's files, as they were listed last
	lost    string          // why not all of them were, as it is in the log

	mu        sync.Mutex              // held neither while a file is read nor while a script is compiled or run
	files     map[string]*scriptFiles // by component name; nil: list them again
	answers   map[string]*answer      // by component name
	refreshed int                     // how often Refresh was called
	compiling map[string]*compilation // by component name, until a lookup takes the outcome
	changed   func(paths []string)    // called when one is done that lookups did not wait for; nil: lookups wait
	passed    map[string]string       // versions that passed their tests, by name
	disk      map[string]*onDisk      // by component name: those that were looked up and have a history
	// restorations are versions from the history, by component name and version.
	restorations map[string]restoration
}

// scriptFiles are the files that claim one name.
type scriptFiles struct {
	user     []location
	embedded []location
	misnamed string // the part of the path that is no identifier
}

// location is where a script's text can be read.
type location struct {
	rel      string // slash path below the scripts folder
	embedded bool
}

func (c *catalog) Names() []string {
	files, _ := c.index()
	return slices.Sorted(maps.Keys(files))
}

func (c *catalog) Roots() []string {
	if c.dir == "" {
		return nil
	}
	return []string{c.dir}
}

// NewFile returns the path of a script of this name, in the first language.
func (c *catalog) NewFile(name string) string {
	rel, ok := strings.CutPrefix(name, c.prefix)
	if c.dir == "" || !ok || len(c.o.Languages) == 0 {
		return ""
	}
	return filepath.Join(c.dir, filepath.FromSlash(strings.ReplaceAll(rel, ".", "/"))) + c.o.Languages[0].Extensions()[0]
}

var _ component.Extensible = (*catalog)(nil)

// warnUnusedFiles warns of files that no block can mean, each once while it is there: no
// config names them, so that nothing else would.
func (c *catalog) warnUnusedFiles(files map[string]*scriptFiles) {
	told := map[string]bool{}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		f := files[name]
		if f.misnamed == "" {
			continue
		}
		told[name] = true
		if !c.told[name] {
			c.o.Logger.Warn("script cannot be a component", "err", c.misnamed(name, f))
		}
	}
	c.told = told
}

func (c *catalog) misnamed(rel string, f *scriptFiles) error {
	what := "folder"
	if _, base := c.language(rel); path.Base(base) == f.misnamed {
		what = "file"
	}
	return fmt.Errorf("cannot make a component of %s: %s is not an identifier: rename the %s, letters, digits and _ make a name, and it begins with no digit",
		c.display(append(f.user, f.embedded...)[0]), f.misnamed, what)
}

// private reports whether a file or folder of this name is not to be looked at:
// a script's own affairs, an editor's, or the inside of a mounted ConfigMap.
func private(name string) bool { return strings.HasPrefix(name, "_") || strings.HasPrefix(name, ".") }

// componentName returns the block name of a file: http/paths.lua is http.paths.
// If the name is not valid for a block, it returns the path, and misnamed is
// the invalid part.
func (c *catalog) componentName(rel string) (name, misnamed string, ok bool) {
	lang, base := c.language(rel)
	if lang == nil || strings.HasSuffix(base, "_test") || strings.HasSuffix(base, ".test") || private(path.Base(base)) {
		return "", "", false
	}
	segments := strings.Split(base, "/")
	for _, s := range segments {
		if !scripting.IsIdentifier(s) {
			return rel, s, true
		}
	}
	return c.prefix + strings.Join(segments, "."), "", true
}

func (c *catalog) language(rel string) (l scripting.Language, base string) {
	for _, l := range c.o.Languages {
		for _, ext := range l.Extensions() {
			if b, ok := strings.CutSuffix(rel, ext); ok {
				return l, b
			}
		}
	}
	return nil, ""
}

// load makes the registration of a name, and the script that it is made of, which is nil
// if the registration has an error.
func (c *catalog) load(name string, fs *scriptFiles) (component.Registration, *entry) {
	reg := component.Registration{Name: name}
	if fs.misnamed != "" {
		reg.Err = c.misnamed(name, fs)
		if c.dir != "" {
			reg.Sources = []string{filepath.Join(c.dir, filepath.FromSlash(name))}
		}
		return reg, nil
	}
	deps := &dependencies{c: c}
	for _, l := range c.o.Languages {
		for _, ext := range l.Extensions() {
			deps.candidate(strings.ReplaceAll(strings.TrimPrefix(name, c.prefix), ".", "/") + ext)
		}
	}
	fail := func(err error) (component.Registration, *entry) {
		nameScript(err, name)
		reg = component.Registration{Name: name, Version: deps.version(), Sources: deps.sources(), Err: err}
		if _, pending := errors.AsType[*component.PendingError](err); !pending && len(fs.user) == 1 && c.keepsHistory(c.file(fs.user[0], "")) {
			d := &onDisk{sources: reg.Sources}
			c.setOnDisk(name, d)
			reg.Instead = func(node string) *component.Registration { return c.instead(name, d, node) }
		}
		return reg, nil
	}
	from := fs.user
	if len(from) == 0 {
		from = fs.embedded
	}
	if len(from) > 1 {
		var names []string
		for _, l := range from {
			names = append(names, c.display(l))
		}
		return fail(fmt.Errorf("cannot tell which file is %s: there are %s", name, strings.Join(names, " and ")))
	}
	if !strings.Contains(name, ".") {
		return fail(fmt.Errorf("cannot make a component of %s: put it into a folder, %s/<namespace>/%s is <namespace>.%s",
			c.display(from[0]), path.Dir(c.display(from[0])), path.Base(from[0].rel), name))
	}
	file, err := c.readSoon(from[0])
	if err != nil {
		return fail(err)
	}
	lang, _ := c.language(from[0].rel)
	deps.language, deps.embedded, deps.own = lang, from[0].embedded, file.Path
	deps.hashPart(lang.Name(), lang.Version())
	deps.hashPart(from[0].rel, file.Text)
	s, deps, err := c.compiled(name, file, deps)
	if err != nil {
		return fail(err)
	}
	header := scripting.ParseHeader(lang.Comment(file.Text))
	test, err := c.testFile(from[0], deps)
	if err != nil {
		return fail(err)
	}
	s.Version = deps.version()
	if s.tested = test.Path != ""; c.o.Test != nil && file.Path != "" && (s.tested || len(header.Examples) > 0) {
		s.trial = &trial{c: c, s: s, test: test}
	}
	replaces := len(fs.user) > 0 && len(fs.embedded) > 0
	reg = register(s, header, replaces)
	if reg.Err != nil {
		return fail(reg.Err)
	}
	if c.o.Checks != nil {
		if err := c.o.Checks.check(s.Program, Tested{Script: file, Test: test, Folder: c.folder()}); err != nil {
			return fail(err)
		}
	}
	if c.o.Checks != nil && c.o.Checks.Warn != nil && s.trial != nil {
		if err := s.trial.rejected(); err != nil {
			c.o.Checks.Warn(err)
		}
	}
	reg.Version, reg.Sources = s.Version, deps.sources()
	reg.About = s.audit(lang, deps.modules)
	if c.keepsHistory(file) {
		d := c.describe(s, deps.modules, test, reg.Sources)
		c.setOnDisk(name, d)
		s.History, s.past = c.history(name), c
		reg.Activated = func(node string, at time.Time) { c.activated(s, d, node, at) }
		reg.Instead = func(node string) *component.Registration { return c.instead(name, d, node) }
		reg.Trial = c.recorded(s, reg.Trial)
	}
	return reg, s
}

// compile makes a script of the text of a file.
func (c *catalog) compileNow(name string, f scripting.File, deps *dependencies, probe *scripting.Probe) (*entry, error) {
	p, err := deps.language.Compile(f, deps.env(probe))
	if err != nil {
		return nil, err
	}
	s := &entry{Script: node.Script{Name: name, File: f, Folder: c.dir, Program: p, Definition: p.Definition(), Outside: c.o.Outside, Modules: c.o.Modules}, compilers: c.o.Compilers, dir: c.dir}
	if f.Path != "" && c.o.Report != nil {
		s.Tests = func(ctx context.Context) (*node.TestReport, error) { return c.runTests(ctx, name) }
	}
	s.Recompile = func(f scripting.File) (*node.Script, error) {
		again := &dependencies{c: c, language: deps.language, embedded: deps.embedded, stored: deps.stored}
		other, err := c.compile(name, f, again, nil)
		if err != nil {
			return nil, err
		}
		again.hashPart(f.Name, f.Text)
		other.Version = again.version()
		return &other.Script, register(other, scripting.Header{}, false).Err
	}
	s.Debug = func(d *scripting.Debug) (scripting.Program, error) {
		again := &dependencies{c: c, language: deps.language, embedded: deps.embedded, stored: deps.stored}
		env := again.env(nil)
		env.Debug = d
		return deps.language.Compile(f, env)
	}
	return s, nil
}

// testFile returns the test file next to a script, or a zero File if there is
// none. A change of it counts as a change of the script, because it may have
// prevented the last version from becoming active.
func (c *catalog) testFile(l location, deps *dependencies) (test scripting.File, err error) {
	if c.o.Test == nil || l.embedded {
		return scripting.File{}, nil
	}
	_, base := c.language(l.rel)
	for _, rel := range TestFiles(base, c.o.Languages) {
		deps.candidate(rel)
		f, err := c.readSoon(location{rel: rel})
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return scripting.File{}, err
		}
		deps.hashPart(rel, f.Text)
		test = f
	}
	return test, nil
}

func (c *catalog) folder() Folder {
	return Folder{
		Dir: c.dir, Namespace: c.o.Namespace, Catalog: c,
		Env: func(l scripting.Language) scripting.Env {
			return (&dependencies{c: c, language: l}).env(nil)
		},
	}
}

// nameScript says in every Error of err which component it is about.
func nameScript(err error, name string) {
	if e, ok := err.(*scripting.Error); ok && e.Script != name { // several lookups may have it
		e.Script = name
	}
	if many, ok := err.(interface{ Unwrap() []error }); ok {
		for _, e := range many.Unwrap() {
			nameScript(e, name)
		}
	}
}

// embeddedPrefix begins the names of files that ship with weir.
const embeddedPrefix = "embedded/"

// display is a path as people see it, and as a terminal can open it: relative
// to the working directory when it lies below, scripts/http/paths.lua, else
// absolute.
func (c *catalog) display(l location) string {
	if l.embedded {
		return embeddedPrefix + l.rel
	}
	full := filepath.Join(c.dir, filepath.FromSlash(l.rel))
	if rel, err := filepath.Rel(c.work, full); err == nil && filepath.IsLocal(rel) {
		full = rel
	}
	return filepath.ToSlash(full)
}

// file returns the file at a location, with a text.
func (c *catalog) file(l location, text string) scripting.File {
	f := scripting.File{Name: c.display(l), Text: text}
	if !l.embedded {
		f.Path = filepath.Join(c.dir, filepath.FromSlash(l.rel))
	}
	return f
}

// read returns a file's text. A user's file lies in the scripts folder after all
// links are followed: whoever may put one there must not read with it what weir
// can, and see it in an error.
func (c *catalog) read(l location) (scripting.File, error) {
	f := c.file(l, "")
	if name, _, ok := c.componentName(l.rel); ok {
		if text, ok := c.o.Edited[name]; ok {
			f.Text = text
			return f, nil
		}
	}
	var text []byte
	var err error
	if l.embedded {
		text, err = fs.ReadFile(c.o.Embedded, l.rel)
	} else {
		text, err = files.ReadIn(c.dir, l.rel, scripting.MaxFileSize)
	}
	if err != nil {
		return f, ReadError(f.Name, err)
	}
	f.Text = string(text)
	return f, nil
}

// readSoon is read for a lookup. Once somebody wants to be told of what
// changes (see OnChange), it does not wait for long: a file whose file system does not
// answer cannot be read, and has changed when that has answered.
func (c *catalog) readSoon(l location) (scripting.File, error) {
	changed := c.onChange()
	if l.embedded || changed == nil {
		return c.read(l)
	}
	f := c.file(l, "")
	read, err := files.Soon(f.Path, "reading", func() (scripting.File, error) { return c.read(l) }, func() { changed([]string{f.Path}) })
	if errors.Is(err, files.ErrHung) {
		return f, ReadError(f.Name, err)
	}
	return read, err
}

// dependencies collects what a registration was made from.
type dependencies struct {
	c        *catalog
	language scripting.Language
	embedded bool
	own      string // path of the script itself; "" for one that ships with weir
	paths    []string
	modules  []scripting.File // that were required, each once
	failed   []failedRead     // of files that were required
	// stored has the user's files of a version that is not on disk any more, by
	// their paths below the scripts folder; nil: they are read from disk.
	stored map[string]string
	hashed []hashedPart // what the version is a hash of, in this order
}

// failedRead is an attempt to read a user's file.
type failedRead struct {
	at  location
	err error
}

// hashedPart is a name and a text.
type hashedPart struct{ name, text string }

func (d *dependencies) hashPart(name, text string) {
	d.hashed = append(d.hashed, hashedPart{name, text})
}

// version is the ID of what was hashed; "" if nothing was.
func (d *dependencies) version() string {
	if len(d.hashed) == 0 {
		return ""
	}
	h := sha256.New()
	for _, p := range d.hashed {
		fmt.Fprintf(h, "%d %s %d %s\n", len(p.name), p.name, len(p.text), p.text)
	}
	return hex.EncodeToString(h.Sum(nil)[:12])
}

// clone returns a copy to which more can be added.
func (d *dependencies) clone() *dependencies {
	own := *d
	own.paths, own.modules, own.failed, own.hashed = slices.Clone(d.paths), slices.Clone(d.modules), slices.Clone(d.failed), slices.Clone(d.hashed)
	return &own
}

// candidate notes a path whose appearance changes the answer.
func (d *dependencies) candidate(rel string) {
	if d.c.dir != "" {
		d.paths = append(d.paths, filepath.Join(d.c.dir, filepath.FromSlash(rel)))
	}
}

// sources are the paths, sorted but for the script's own, which is the first.
func (d *dependencies) sources() []string {
	slices.Sort(d.paths)
	out := slices.Compact(d.paths)
	if i := slices.Index(out, d.own); i > 0 {
		out = slices.Insert(slices.Delete(out, i, i+1), 0, d.own)
	}
	return out
}

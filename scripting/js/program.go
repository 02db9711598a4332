package js

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"github.com/dop251/goja"
	"github.com/dop251/goja/ast"
	"github.com/dop251/goja/file"
	"github.com/go-sourcemap/sourcemap"

	"github.com/weir-run/weir/scripting"
)

// program is a compiled component: its file and all imported files.
type program struct {
	files  map[string]*chunk // by name as shown
	shown  map[string]*chunk // by the name in the text of goja's stacks
	main   *chunk
	stdlib map[string]*scripting.Module // by the name of the module, without weir/
	def    *scripting.Definition
	found  []scripting.Finding // by lint
	probe  *scripting.Probe
	debug  *scripting.Debug // nil: no debugger
	marks  []mark           // the statements, for a debugger
	args   []string         // of a plain file; nil for any other file

	covered []*scripting.Covered // by file, see cover; nil if coverage is off
	test    *test                // nil unless it is a test file

	awaitHint string // where its files can use await, which is not allowed at the top level
}

// chunk is one compiled file.
type chunk struct {
	file scripting.File
	code string       // the input of goja
	tree *ast.Program // of code; positions are those of file
	smap *sourcemap.Consumer
	prog *goja.Program

	data scripting.Value // of a data file, which has no code

	requires []required
	imports  map[string]*chunk // by their names in the file
	keys     []keys
	exprs    []scripting.Expr
	errs     []error
}

// required is one import of a file.
type required struct {
	name string
	idx  file.Idx
}

var _ scripting.Program = (*program)(nil)

// Compile compiles a component and all its imports, and runs it once for its
// definition.
func (l *Language) Compile(f scripting.File, env scripting.Env) (scripting.Program, error) {
	p, err := read(f, env, nil, "await in a hook, such as async setup(ctx) { … }")
	if err != nil {
		return nil, err
	}
	if err := p.define(); err != nil {
		return nil, err
	}
	return p, nil
}

// read compiles a file and all its imports. t is set for a test file. awaitHint
// tells authors where to use an await that is outside of a function.
func read(f scripting.File, env scripting.Env, t *test, awaitHint string) (*program, error) {
	if err := boundable(); err != nil {
		return nil, &scripting.Error{File: f.Name, Err: err}
	}
	p := &program{files: map[string]*chunk{}, shown: map[string]*chunk{}, stdlib: map[string]*scripting.Module{}, probe: env.Probe, debug: env.Debug, test: t, awaitHint: awaitHint}
	for _, m := range env.Modules {
		p.stdlib[m.Name] = m
	}
	main, err := p.compile(f)
	if err != nil {
		return nil, err
	}
	p.main = main
	p.add(main)
	var errs []error
	p.require(main, env, &errs)
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	return p, nil
}

func (p *program) add(c *chunk) {
	p.files[c.file.Name] = c
	p.shown[file.ResolveSourcemapURL(c.file.Name, sourceURL(c.file)).String()] = c
}

// Definition returns the script's definition.
func (p *program) Definition() *scripting.Definition { return p.def }

// Exprs returns the constant expressions in the files.
func (p *program) Exprs() []scripting.Expr {
	var out []scripting.Expr
	for _, c := range p.files {
		out = append(out, c.exprs...)
	}
	return out
}

// require compiles the imports of c.
func (p *program) require(c *chunk, env scripting.Env, errs *[]error) {
	c.imports = map[string]*chunk{}
	for _, r := range c.requires {
		if c.imports[r.name] != nil || p.ownModule(r.name) {
			continue
		}
		f, err := p.find(c, r.name, env)
		if err != nil {
			*errs = append(*errs, c.error(r.idx, err))
			continue
		}
		m := p.files[f.Name]
		if m == nil && scripting.IsData(f.Name) {
			m = &chunk{file: f}
			if m.data, err = env.Data(f); err != nil {
				*errs = append(*errs, c.errorAt(r.idx, err))
				continue
			}
			p.files[f.Name] = m
		} else if m == nil {
			if m, err = p.compile(f); err != nil {
				*errs = append(*errs, err)
				continue
			}
			p.add(m)
			p.require(m, env, errs)
		}
		c.imports[r.name] = m
	}
}

// find finds the file that c imports by name.
func (p *program) find(c *chunk, name string, env scripting.Env) (scripting.File, error) {
	switch {
	case name == testModule:
		return scripting.File{}, fmt.Errorf("cannot import %q here: it is for test files, which are called x.test.ts, x_test.ts or .js", name)
	case strings.HasPrefix(name, "./"), strings.HasPrefix(name, "../"):
		return env.Import(c.file, name)
	case strings.HasPrefix(name, libPrefix):
		lib := strings.TrimPrefix(name, libPrefix)
		return scripting.File{}, fmt.Errorf("cannot import %q: there is no module %s in the standard library, there is %s", name, lib, p.libNames())
	case p.stdlib[name] != nil:
		return scripting.File{}, fmt.Errorf("cannot import %q: the standard library's is %q", name, libPrefix+name)
	case strings.Contains(name, ":"), strings.HasPrefix(name, "/"), strings.HasPrefix(name, "@"), nodeModules[name]:
		return scripting.File{}, fmt.Errorf("cannot import %q: there are no modules of Node or npm: there is weir, weir/…, ./file and what lies below lib in the scripts folder", name)
	}
	return env.Require(name)
}

// nodeModules are modules of Node that people may try to import.
var nodeModules = map[string]bool{
	"fs": true, "path": true, "http": true, "https": true, "os": true, "crypto": true, "util": true, "events": true,
	"child_process": true, "net": true, "url": true, "stream": true, "buffer": true, "lodash": true, "axios": true,
}

// libNames returns the names of the standard library.
func (p *program) libNames() string {
	var names []string
	for name := range p.stdlib {
		names = append(names, libPrefix+name)
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}

// pos returns the position of a node in the file.
func (c *chunk) pos(idx file.Idx) file.Position {
	return c.tree.File.Position(int(idx) - c.tree.File.Base())
}

// error makes an error at a place in the file.
func (c *chunk) error(idx file.Idx, err error) *scripting.Error {
	at := c.pos(idx)
	e := c.file.Error(at.Line, hookLoad, err)
	e.Col = at.Column
	return e
}

// errorAt adds a position in the file to an error without a position.
func (c *chunk) errorAt(idx file.Idx, err error) error {
	if _, ok := errors.AsType[*scripting.Error](err); ok {
		return err
	}
	return c.error(idx, err)
}

// NewVM returns a VM that has run the file and is ready for its hooks.
func (p *program) NewVM(h scripting.Host) (scripting.VM, error) {
	v := p.newVM(h)
	if err := v.load(); err != nil {
		return nil, err
	}
	v.openHooks()
	v.ran() // the statements executed while loading belong to no batch
	return v, nil
}

// define runs the file for its definition.
func (p *program) define() error {
	v := p.newVM(scripting.Host{Log: func(slog.Level, string, string, []any) {}})
	v.aside = true // a debugger stops in the VMs that process batches
	if err := v.load(); err != nil {
		return err
	}
	def, err := scripting.Define(p.main.file, *v.raw)
	p.def = def
	if err == nil && p.debug == nil { // the calls of the debugger are no code of the script
		p.lint(globalsOf(v))
	}
	return reworded(err)
}

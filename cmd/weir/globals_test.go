package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// mutableGlobals are the package variables that change while the program runs,
// each with the reason why it is not a field of a value that main creates.
var mutableGlobals = map[string]string{
	// One per process, because the things that they count or number exist once
	// per process.
	"engine/batch.ids":                         "series of all components are numbered in one space: a Memo is indexed by the ID of any source's series",
	"engine/batch.lastSource":                  "sources of all components have different numbers",
	"engine/files.calls":                       "calls that hang hold threads of the process",
	"engine/files.mounts":                      "a cache of the host's mount points",
	"engine/files.refused":                     "counters of a package of functions",
	"natives/prometheus/exporter/unix.process": "node_exporter keeps its flags in globals",
	"scripting/node.allState":                  "the limit is for the memory of the process",
	"scripting/js.patternClock":                "regexp2 has one clock for all patterns",
	"scripting/js.profiling":                   "goja has one profiler per process",
	"scripting/js.watching":                    "one goroutine watches the calls of all VMs",

	// Caches and shared values: they affect memory and time, but no results.
	"engine/batch.published":             "equal series of all components share their memory",
	"engine/expr.patterns":               "compiled patterns, limited by bytes for the process",
	"natives/loki/process.expressions":   "compiled patterns, limited by bytes for the process",
	"natives/prometheus/scrape.metadata": "equal metadata of all targets share their memory",
	"scripting/js.frozen":                "templates of built-in objects that all VMs share",
	"scripting/js.paths":                 "names that all VMs share",
	"scripting/js.shapes":                "layouts of Go types that all VMs share",

	// Set by tests.
	"engine/files/internal/seam.Before":   "tests get between engine/files and the file system; nil otherwise",
	"engine/files/internal/seam.Between":  "tests get between engine/files and the file system; nil otherwise",
	"engine/files/internal/seam.Patience": "tests wait less; 0 otherwise",

	// Settings of libraries that have no other place for them.
	"github.com/dlclark/regexp2/v2.DefaultMatchTimeout": "set once before the first VM",
	"github.com/yuin/gopher-lua.MaxArrayIndex":          "set once before the first VM",

	// Never written to: only their address is taken.
	"cmd/weirbench/faults.dead":    "read only",
	"cmd/weirbench/faults.deaf":    "read only",
	"cmd/weirbench/faults.hanging": "read only",
	"engine/expr.functions":        "read only",
	"scripting/host.answerParam":   "read only",
	"scripting/js.chars":           "read only",
}

// TestMutableGlobals: there are no mutable globals except those in the list.
func TestMutableGlobals(t *testing.T) {
	found := findMutableGlobals(t, "../..", "./...")
	for _, name := range found {
		if mutableGlobals[name] == "" {
			t.Errorf("%s changes while the program runs: make it a field, or list it in mutableGlobals with a reason", name)
		}
	}
	if runtime.GOOS != "linux" {
		return // some of them are in files for Linux
	}
	for name := range mutableGlobals {
		if !slices.Contains(found, name) {
			t.Errorf("%s is listed in mutableGlobals but does not change, or is gone: delete the entry", name)
		}
	}
}

// findMutableGlobals returns the package variables, as directory.name, that are
// assigned outside of init functions, whose address is taken or used by a method,
// or that contain a lock or an atomic.
func findMutableGlobals(t *testing.T, dir string, patterns ...string) (names []string) {
	t.Helper()
	type listed struct {
		ImportPath, Dir, Export string
		GoFiles                 []string
		Module                  *struct {
			Path string
			Main bool
		}
	}
	cmd := exec.Command("go", append([]string{"list", "-export", "-deps", "-json=ImportPath,Dir,Export,GoFiles,Module"}, patterns...)...)
	cmd.Dir, cmd.Stderr = dir, os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("cannot list the packages: %v", err)
	}
	exports := map[string]string{}
	var own []listed
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var p listed
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		exports[p.ImportPath] = p.Export
		if p.Module != nil && p.Module.Main {
			own = append(own, p)
		}
	}
	fset := token.NewFileSet()
	imp := importer.ForCompiler(fset, "gc", func(path string) (io.ReadCloser, error) {
		if exports[path] == "" {
			return nil, fmt.Errorf("there is no export data of %s", path)
		}
		return os.Open(exports[path])
	})
	for _, p := range own {
		var parsed []*ast.File
		for _, name := range p.GoFiles {
			f, err := parser.ParseFile(fset, filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			parsed = append(parsed, f)
		}
		info := &types.Info{Uses: map[*ast.Ident]types.Object{}, Defs: map[*ast.Ident]types.Object{}, Selections: map[*ast.SelectorExpr]*types.Selection{}, Types: map[ast.Expr]types.TypeAndValue{}}
		pkg, err := (&types.Config{Importer: imp}).Check(p.ImportPath, fset, parsed, info)
		if err != nil {
			t.Fatalf("cannot check %s: %v", p.ImportPath, err)
		}
		for v := range mutableIn(pkg, parsed, info) {
			if v.Type().String() == "sync.Pool" {
				continue // scratch memory, which contains no state
			}
			names = append(names, strings.TrimPrefix(v.Pkg().Path(), module+"/")+"."+v.Name())
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// mutableIn returns the variables that the files of a package modify.
func mutableIn(pkg *types.Package, parsed []*ast.File, info *types.Info) map[*types.Var]bool {
	mutable := map[*types.Var]bool{}
	// global returns the package variable that contains x, or nil.
	global := func(x ast.Expr) *types.Var {
		for {
			switch e := x.(type) {
			case *ast.ParenExpr:
				x = e.X
			case *ast.SelectorExpr:
				if id, ok := e.X.(*ast.Ident); ok {
					if _, ok := info.Uses[id].(*types.PkgName); ok { // belongs to another package
						v, _ := info.Uses[e.Sel].(*types.Var)
						return v
					}
				}
				x = e.X
			case *ast.IndexExpr:
				x = e.X
			case *ast.StarExpr:
				x = e.X
			case *ast.Ident:
				if v, ok := info.Uses[e].(*types.Var); ok && v.Parent() == pkg.Scope() {
					return v
				}
				return nil
			default:
				return nil
			}
		}
	}
	note := func(x ast.Expr) {
		if v := global(x); v != nil {
			mutable[v] = true
		}
	}
	for _, name := range pkg.Scope().Names() {
		if v, ok := pkg.Scope().Lookup(name).(*types.Var); ok && hasLock(v.Type()) {
			mutable[v] = true
		}
	}
	for _, f := range parsed {
		ast.Inspect(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncDecl:
				return n.Recv != nil || n.Name.Name != "init"
			case *ast.AssignStmt:
				if n.Tok != token.DEFINE {
					for _, x := range n.Lhs {
						note(x)
					}
				}
			case *ast.IncDecStmt:
				note(n.X)
			case *ast.RangeStmt:
				if n.Tok == token.ASSIGN {
					note(n.Key)
					note(n.Value)
				}
			case *ast.UnaryExpr:
				if n.Op == token.AND {
					note(n.X)
				}
			case *ast.CallExpr:
				if id, ok := n.Fun.(*ast.Ident); ok && len(n.Args) > 0 && (id.Name == "delete" || id.Name == "clear") {
					note(n.Args[0])
				}
			case *ast.SelectorExpr:
				// A method with a pointer receiver, called on a variable that is
				// not a pointer.
				s := info.Selections[n]
				if s == nil || s.Kind() != types.MethodVal {
					return true
				}
				recv := s.Obj().(*types.Func).Signature().Recv()
				if _, pointer := recv.Type().(*types.Pointer); pointer && !s.Indirect() {
					if _, is := s.Recv().Underlying().(*types.Pointer); !is {
						note(n.X)
					}
				}
			}
			return true
		})
	}
	return mutable
}

// hasLock reports whether a type contains a field that only mutable values have.
func hasLock(t types.Type) bool {
	if p, ok := t.Underlying().(*types.Pointer); ok {
		t = p.Elem()
	}
	if n, ok := t.(*types.Named); ok && n.Obj().Pkg() != nil {
		switch path := n.Obj().Pkg().Path(); {
		case path == "sync" || path == "sync/atomic":
			return true
		case !strings.HasPrefix(path, module): // for example strings.Replacer, which manages its own state
			return false
		}
	}
	s, ok := t.Underlying().(*types.Struct)
	if !ok {
		return false
	}
	for f := range s.Fields() {
		if _, pointer := f.Type().Underlying().(*types.Pointer); !pointer && hasLock(f.Type()) {
			return true
		}
	}
	return false
}

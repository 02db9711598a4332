package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
)

const module = "github.com/weir-run/weir"

// sources are the packages of the module. They are parsed when they are first
// used.
type sources struct {
	root string
	fset *token.FileSet
	pkgs map[string]*pkg // by directory below root
}

// pkg is the relevant part of a package's source.
type pkg struct {
	dir, name, doc string
	structs        map[string]*typeIn
	functions      map[string]bool
	exports        ast.Expr // the type of the field Exports of its registration; may be nil
	exportsFrom    map[string]string
}

// typeIn is a struct type with the imports of its file.
type typeIn struct {
	*ast.StructType
	imports map[string]string // directory below root by name; only packages of the module
}

func newSources(root string) *sources {
	return &sources{root: root, fset: token.NewFileSet(), pkgs: map[string]*pkg{}}
}

// pkg parses the package in dir. It returns nil if it does not exist.
func (s *sources) pkg(dir string) (*pkg, error) {
	if p, ok := s.pkgs[dir]; ok {
		return p, nil
	}
	files, err := os.ReadDir(filepath.Join(s.root, dir))
	if err != nil {
		return nil, err
	}
	var p *pkg
	for _, f := range files {
		if !strings.HasSuffix(f.Name(), ".go") || strings.HasSuffix(f.Name(), "_test.go") {
			continue
		}
		file, err := parser.ParseFile(s.fset, filepath.Join(s.root, dir, f.Name()), nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		if p == nil {
			p = &pkg{dir: dir, name: file.Name.Name, structs: map[string]*typeIn{}, functions: map[string]bool{}}
		}
		p.add(file)
	}
	s.pkgs[dir] = p
	return p, nil
}

func (p *pkg) add(file *ast.File) {
	if file.Doc != nil {
		p.doc = file.Doc.Text()
	}
	imports := map[string]string{}
	for _, spec := range file.Imports {
		path, _ := strconv.Unquote(spec.Path.Value)
		dir, ours := strings.CutPrefix(path, module+"/")
		if !ours {
			continue
		}
		name := dir[strings.LastIndexByte(dir, '/')+1:]
		if spec.Name != nil {
			name = spec.Name.Name
		}
		imports[name] = dir
	}
	ast.Inspect(file, func(n ast.Node) bool {
		if lit, ok := n.(*ast.CompositeLit); ok && (isSelector(lit.Type, "component", "Registration") || isSelector(lit.Type, "database", "Kind")) {
			for _, elt := range lit.Elts {
				kv, ok := elt.(*ast.KeyValueExpr)
				if !ok {
					continue
				}
				if key, ok := kv.Key.(*ast.Ident); ok && key.Name == "Exports" {
					if v, ok := kv.Value.(*ast.CompositeLit); ok {
						p.exports, p.exportsFrom = v.Type, imports
					}
				}
			}
		}
		return true
	})
	for _, decl := range file.Decls {
		switch decl := decl.(type) {
		case *ast.FuncDecl:
			if decl.Recv == nil {
				p.functions[decl.Name.Name] = true
			}
		case *ast.GenDecl:
			for _, spec := range decl.Specs {
				if ts, ok := spec.(*ast.TypeSpec); ok {
					if st, ok := ts.Type.(*ast.StructType); ok {
						p.structs[ts.Name.Name] = &typeIn{st, imports}
					}
				}
			}
		}
	}
}

func isSelector(e ast.Expr, pkg, name string) bool {
	sel, ok := e.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	x, ok := sel.X.(*ast.Ident)
	return ok && x.Name == pkg && sel.Sel.Name == name
}

// args returns the comments on the fields of a component's Arguments, including
// nested blocks, by attribute path.
func (s *sources) args(p *pkg) (map[string]string, error) {
	t := p.structs["Arguments"]
	if t == nil {
		return nil, fmt.Errorf("%s has no struct Arguments", p.dir)
	}
	out := map[string]string{}
	return out, s.walk(out, p, t, "", nil)
}

// exports returns the comments on the fields of a component's exports, or nil if
// it exports nothing.
func (s *sources) exports(p *pkg) (map[string]string, error) {
	if p.exports == nil {
		return nil, nil
	}
	t, from, err := s.resolve(p, &typeIn{imports: p.exportsFrom}, p.exports)
	if err != nil || t == nil {
		return nil, err
	}
	out := map[string]string{}
	return out, s.walk(out, from, t, "", nil)
}

func (s *sources) walk(out map[string]string, p *pkg, t *typeIn, path string, around []*ast.StructType) error {
	for _, outer := range around {
		if outer == t.StructType { // a block may contain itself
			return nil
		}
	}
	around = append(around[:len(around):len(around)], t.StructType)
	for _, f := range t.Fields.List {
		if f.Tag == nil {
			continue
		}
		raw, err := strconv.Unquote(f.Tag.Value)
		if err != nil {
			return err
		}
		tag, ok := reflect.StructTag(raw).Lookup("alloy")
		if !ok {
			continue
		}
		opts := strings.Split(tag, ",")
		at := join(path, opts[0])
		kind := opts[1]
		if kind == "label" {
			continue
		}
		if kind == "attr" || kind == "block" {
			if out[at] = plain(f.Doc.Text()); out[at] == "" {
				return fmt.Errorf("%s: no comment on the field of %s", s.fset.Position(f.Pos()), at)
			}
		}
		if kind == "attr" {
			continue
		}
		inner, innerPkg, err := s.resolve(p, t, f.Type)
		if err != nil {
			return fmt.Errorf("%s: %w", s.fset.Position(f.Pos()), err)
		}
		if inner == nil { // a block without a fixed type, or of a type outside the module
			continue
		}
		if err := s.walk(out, innerPkg, inner, at, around); err != nil {
			return err
		}
	}
	return nil
}

// resolve returns the struct type of a field, or nil if it is not a struct of
// this module.
func (s *sources) resolve(p *pkg, t *typeIn, expr ast.Expr) (*typeIn, *pkg, error) {
	switch x := expr.(type) {
	case *ast.StarExpr:
		return s.resolve(p, t, x.X)
	case *ast.ArrayType:
		return s.resolve(p, t, x.Elt)
	case *ast.StructType:
		return &typeIn{x, t.imports}, p, nil
	case *ast.Ident:
		return p.structs[x.Name], p, nil
	case *ast.SelectorExpr:
		dir, ours := t.imports[x.X.(*ast.Ident).Name]
		if !ours {
			return nil, nil, nil
		}
		other, err := s.pkg(dir)
		if err != nil {
			return nil, nil, err
		}
		st := other.structs[x.Sel.Name]
		if st == nil {
			return nil, nil, fmt.Errorf("%s has no struct %s", dir, x.Sel.Name)
		}
		return st, other, nil
	}
	return nil, nil, nil
}

func join(path, name string) string {
	if path == "" || name == "" {
		return path + name
	}
	return path + "." + name
}

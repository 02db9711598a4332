package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"strings"
)

// comments are the types of packages with their comments, which describe them in the
// OpenAPI document.
type comments map[string]map[string]*ast.TypeSpec // by package path and name

// of is an api.Comments.
func (c comments) of(t reflect.Type) (text string, fields map[string]string) {
	fields = map[string]string{}
	dir, ours := strings.CutPrefix(t.PkgPath(), module+"/")
	if !ours || t.Name() == "" {
		return "", fields
	}
	if c[dir] == nil {
		c[dir] = typesIn(filepath.Join("..", "..", filepath.FromSlash(dir)))
	}
	spec := c[dir][t.Name()]
	if spec == nil {
		return "", fields
	}
	s, ok := spec.Type.(*ast.StructType)
	if !ok {
		return plainComment(spec.Doc.Text()), fields
	}
	for _, f := range s.Fields.List {
		comment := f.Doc.Text()
		if comment == "" {
			comment = f.Comment.Text()
		}
		for _, name := range f.Names {
			fields[name.Name] = plainComment(comment)
		}
	}
	return plainComment(spec.Doc.Text()), fields
}

// plainComment returns a comment as one line.
func plainComment(text string) string { return strings.Join(strings.Fields(text), " ") }

// typesIn returns the types that the files of a directory declare.
func typesIn(dir string) map[string]*ast.TypeSpec {
	types := map[string]*ast.TypeSpec{}
	entries, _ := os.ReadDir(dir) // a missing directory has no comments
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".go") || strings.HasSuffix(e.Name(), "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), filepath.Join(dir, e.Name()), nil, parser.ParseComments)
		if err != nil {
			continue // the compiler reports it
		}
		for _, d := range f.Decls {
			g, ok := d.(*ast.GenDecl)
			if !ok {
				continue
			}
			for _, s := range g.Specs {
				if spec, ok := s.(*ast.TypeSpec); ok {
					if spec.Doc == nil {
						spec.Doc = g.Doc
					}
					types[spec.Name.Name] = spec
				}
			}
		}
	}
	return types
}

package js

import (
	"reflect"

	"github.com/dop251/goja/ast"
)

// visit calls fn for n and all its parts; fn returns whether to descend.
func visit(n ast.Node, fn func(ast.Node) bool) { visitor{fn}.node(n) }

// visitor walks a tree by reflection: goja has no walker, and a handwritten one
// would need a case for each of its seventy kinds of nodes. It is used for
// compiling, not for running.
type visitor struct{ fn func(ast.Node) bool }

func (w visitor) node(n ast.Node) {
	v := reflect.ValueOf(n)
	if n == nil || v.Kind() == reflect.Pointer && v.IsNil() || !w.fn(n) {
		return
	}
	w.fields(v)
}

var nodeType = reflect.TypeFor[ast.Node]()

// fields walks the nodes in a value that is not a node itself.
func (w visitor) fields(v reflect.Value) {
	for v.Kind() == reflect.Pointer || v.Kind() == reflect.Interface {
		if v.IsNil() {
			return
		}
		v = v.Elem()
	}
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			// Declarations of a block are also listed in its statements.
			if name := v.Type().Field(i).Name; name != "DeclarationList" && name != "File" && v.Type().Field(i).IsExported() {
				w.value(v.Field(i))
			}
		}
	case reflect.Slice:
		for i := range v.Len() {
			w.value(v.Index(i))
		}
	}
}

func (w visitor) value(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if v.IsNil() {
			return
		}
		if n, ok := v.Interface().(ast.Node); ok {
			w.node(n)
			return
		}
		w.fields(v)
	case reflect.Struct:
		if v.CanAddr() && v.Addr().Type().Implements(nodeType) {
			w.node(v.Addr().Interface().(ast.Node))
			return
		}
		w.fields(v)
	case reflect.Slice:
		w.fields(v)
	}
}

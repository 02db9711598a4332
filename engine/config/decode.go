package config

import (
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/grafana/alloy/syntax"
	"github.com/grafana/alloy/syntax/ast"

	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/flow"
)

// Decode evaluates the block's arguments into the struct that into points to.
// It works like alloy/syntax: it calls SetToDefault first if the type has it,
// and Validate last. It returns every error in the block, not only the first.
// Validate is called for a block if all its known values could be decoded, even
// if nested blocks are invalid. Numbers that an integer cannot represent are
// errors; alloy/syntax would wrap or truncate them.
//
// Decode does not repeat the errors about references that Resolve returns.
// While a value is provisional (see Scope), errors that depend on it are not
// reported; call Decode again when the value is known. This also applies to
// errors of Validate, unless they mention an attribute or block that is present
// and known. The warnings of a component.Warner are returned as warnings.
func (b *Block) Decode(s *Scope, into any) Diagnostics { return b.decode(s, into, nil) }

// decode is like Decode, for a block with attributes and blocks that into does
// not have. others are their names, for hints.
func (b *Block) decode(s *Scope, into any, others []string) Diagnostics {
	v := reflect.ValueOf(into)
	if v.Kind() != reflect.Pointer || v.Elem().Kind() != reflect.Struct {
		panic(fmt.Sprintf("BUG: cannot decode %s into %T", b.ID, into))
	}
	if b.of == nil {
		b.of = map[ast.Expr][]Reference{}
	}
	d := &decoder{scope: s, of: b.of, name: b.Name, others: others}
	// The label is part of the node's ID, not of its arguments.
	top := *b.stmt
	top.Label = ""
	d.block(&top, v.Elem(), "")
	return d.ds.Sort()
}

// Provisional reports whether a value that the block refers to is not known
// yet, so that Decode must be called again.
func (b *Block) Provisional(s *Scope) bool {
	return slices.ContainsFunc(b.refs, func(r Reference) bool { return s.certainty(r) != certain })
}

// Unready returns why the block cannot be decoded completely: the error of a
// value that it refers to, or an error if such a value is not known yet. It
// returns nil if all values are known.
func (b *Block) Unready(s *Scope) (err error) { return s.findUnready(b.refs) }

func (s *Scope) findUnready(refs []Reference) (err error) {
	for _, r := range refs {
		switch c, why := s.lookupKnown(r); {
		case c != certain && why != nil && why != ErrUnknown:
			return why
		case c != certain:
			err = errNotThere
		}
	}
	return err
}

// errNotThere is the error of Unready for a reference to a node that has not
// been built.
var errNotThere = errors.New("it refers to a node that has no working version")

type decoder struct {
	scope *Scope
	ds    Diagnostics
	of    map[ast.Expr][]Reference

	// name is the name of the top-level block. others are the names of its
	// attributes and blocks that are not decoded here.
	name   string
	others []string
}

// references returns the dotted names in an expression.
func (d *decoder) references(e ast.Expr) []Reference {
	if _, literal := e.(*ast.LiteralExpr); literal {
		return nil
	}
	refs, ok := d.of[e]
	if !ok {
		refs = appendReferences(nil, e)
		d.of[e] = refs
	}
	return refs
}

// outcome describes the result of decoding a value.
type outcome struct {
	failed bool // the value had an error
	open   bool // the value depends on something that is not known yet

	// doubtful are the names of attributes and blocks that are open, and of those
	// that a misspelt name may stand for. Errors of Validate that mention them may
	// be wrong.
	doubtful []string
}

func (o *outcome) merge(p outcome) {
	o.failed = o.failed || p.failed
	o.open = o.open || p.open
	o.doubtful = append(o.doubtful, p.doubtful...)
}

// member returns the outcome of the attribute or block called name.
func (o outcome) member(name string) outcome {
	if o.open {
		o.doubtful = append(o.doubtful, name)
	}
	return o
}

// holds reports whether an error of Validate for a block is reliable.
func (o outcome) holds(stmt *ast.BlockStmt, msg string) bool {
	for _, word := range identifiers.FindAllString(msg, -1) {
		if slices.Contains(o.doubtful, word) {
			return false
		}
	}
	return !o.open || mentioned(stmt, msg) != headerSpan(stmt)
}

func (d *decoder) fail(s Span, msg, hint string) outcome {
	d.ds.add(s, msg, hint)
	return outcome{failed: true}
}

// errDecode means that the diagnostics have already been recorded.
var errDecode = errors.New("mistakes in the block")

// block decodes into an addressable value. path is the path of stmt below the
// top-level block.
func (d *decoder) block(stmt *ast.BlockStmt, v reflect.Value, path string) (o outcome) {
	if u, ok := v.Addr().Interface().(syntax.Unmarshaler); ok {
		err := u.UnmarshalAlloy(func(into any) error {
			p := d.block(stmt, alloc(reflect.ValueOf(into)), path)
			o.merge(p)
			if p.failed {
				return errDecode
			}
			return nil
		})
		if err != nil && !errors.Is(err, errDecode) && !o.open {
			o.merge(d.invalid(stmt, err, o))
		}
		return o
	}
	if def, ok := v.Addr().Interface().(syntax.Defaulter); ok {
		def.SetToDefault()
	}
	target := alloc(v)
	switch target.Kind() {
	case reflect.Struct:
		o = d.structBlock(stmt, target, path)
	case reflect.Map:
		o = d.mapBlock(stmt, target, path)
	case reflect.Interface:
		m := reflect.ValueOf(map[string]any{})
		o = d.mapBlock(stmt, m, path)
		target.Set(m)
	default:
		panic(fmt.Sprintf("BUG: block %s decodes into %s", path, target.Type()))
	}
	if o.failed {
		return o
	}
	if val, ok := v.Addr().Interface().(syntax.Validator); ok {
		if err := val.Validate(); err != nil {
			d.invalid(stmt, err, o) // all values are known, so the blocks around it can be validated too
		}
	}
	if w, ok := v.Addr().Interface().(component.Warner); ok {
		for _, msg := range w.Warnings() {
			if o.holds(stmt, msg) {
				d.ds = append(d.ds, Diagnostic{Span: mentioned(stmt, msg), Severity: Warning, Msg: msg})
			}
		}
	}
	return o
}

func (d *decoder) structBlock(stmt *ast.BlockStmt, v reflect.Value, path string) (o outcome) {
	var (
		fs     = d.scope.tagged(v.Type())
		attrs  = map[string]field{}
		blocks = map[string]func(*ast.BlockStmt) outcome{}
		seen   = map[string]Span{}
		label  *field
	)
	for _, f := range fs {
		switch f.kind {
		case attrField:
			attrs[f.name] = f
		case labelField:
			label = &f
		case blockField:
			blocks[f.name] = d.blockDecoder(f, v, count(stmt.Body, f.name), join(path, f.name))
		case enumField:
			d.enumDecoders(f, v, stmt.Body, path, blocks)
		}
	}
	o.merge(d.label(stmt, v, label))
	for _, st := range stmt.Body {
		switch st := st.(type) {
		case *ast.AttributeStmt:
			name, span := st.Name.Name, spanOf(st.Name)
			f, ok := attrs[name]
			switch first, twice := seen[name]; {
			case blocks[name] != nil:
				o.merge(d.fail(span, fmt.Sprintf("%s is a block, not an attribute", join(path, name)), fmt.Sprintf("write: %s { … }", name)))
			case !ok: // the known values can still be validated
				o.doubtful = append(o.doubtful, absent(stmt.Body, d.misspelt(span, "attribute", path, name, fs))...)
			case twice:
				o.merge(d.fail(span, fmt.Sprintf("attribute %s is set twice", join(path, name)), "first set at "+first.String()))
				d.attribute(st, reflect.New(f.typ).Elem(), path) // to report its errors
			default:
				seen[name] = span
				o.merge(d.attribute(st, f.allocate(v), path).member(name))
			}
		case *ast.BlockStmt:
			name, span := st.GetBlockName(), headerSpan(st)
			_, isAttr := attrs[name]
			switch decode := blocks[name]; {
			case isAttr:
				o.merge(d.fail(span, fmt.Sprintf("%s is an attribute, not a block", join(path, name)), fmt.Sprintf("write: %s = …", name)))
			case decode == nil:
				o.doubtful = append(o.doubtful, absent(stmt.Body, d.misspelt(span, "block", path, name, fs))...)
			default:
				if _, twice := seen[name]; !twice {
					seen[name] = span
				}
				o.merge(decode(st).member(name))
			}
		}
	}
	for _, f := range fs {
		if _, ok := seen[f.name]; ok || f.optional || f.kind == labelField || f.kind == enumField {
			continue
		}
		kind := "attribute"
		if f.kind == blockField {
			kind = "block"
		}
		o.merge(d.fail(headerSpan(stmt), fmt.Sprintf("missing required %s %s", kind, join(path, f.name)), f.toWrite(path)))
	}
	return o
}

// toWrite returns a hint that shows how to write a missing field, if it is not
// obvious.
func (f field) toWrite(path string) string {
	switch {
	case f.kind == blockField && deref(f.typ).Kind() == reflect.Struct:
		var attrs []string
		for _, in := range tagged(deref(f.typ)) {
			if in.kind == attrField && !in.optional {
				attrs = append(attrs, in.name+" = …")
			}
		}
		if len(attrs) > 0 {
			return fmt.Sprintf("write: %s { %s }", f.name, strings.Join(attrs, ", "))
		}
	case path != "" && f.typ == reflect.TypeFor[[]*flow.Receiver]():
		return fmt.Sprintf("write: %s = …, or [] to send to no receiver", f.name)
	}
	return ""
}

// blockDecoder returns the decoder for the n blocks of a field.
func (d *decoder) blockDecoder(f field, v reflect.Value, n int, path string) func(*ast.BlockStmt) outcome {
	next := 0
	start := f.start(v)
	return func(stmt *ast.BlockStmt) outcome {
		fv := alloc(f.allocate(v))
		switch fv.Kind() {
		case reflect.Slice:
			if next == 0 {
				fv.Set(reflect.MakeSlice(fv.Type(), n, n))
			}
			next++
			elem := alloc(fv.Index(next - 1))
			if start.IsValid() {
				elem.Set(start)
			}
			return d.block(stmt, elem, path)
		case reflect.Array:
			next++
			if n != fv.Len() {
				return d.fail(headerSpan(stmt), fmt.Sprintf("block %s must be there %d times, not %d", path, fv.Len(), n), "")
			}
			return d.block(stmt, alloc(fv.Index(next-1)), path)
		}
		next++
		if next > 1 {
			o := d.fail(headerSpan(stmt), fmt.Sprintf("block %s can be there only once", path), "")
			d.block(stmt, alloc(reflect.New(fv.Type()).Elem()), path) // to report its errors
			return o
		}
		if start.IsValid() {
			fv.Set(start)
		}
		return d.block(stmt, fv, path)
	}
}

// enumDecoders adds the decoders for the blocks of an enum field, which
// collects blocks of several kinds in one list.
func (d *decoder) enumDecoders(f field, v reflect.Value, body ast.Body, path string, blocks map[string]func(*ast.BlockStmt) outcome) {
	kinds := map[string]field{}
	for _, k := range tagged(deref(f.typ.Elem())) {
		kinds[f.name+"."+k.name] = k
	}
	n := 0
	for _, st := range body {
		if b, ok := st.(*ast.BlockStmt); ok {
			if _, ok := kinds[b.GetBlockName()]; ok {
				n++
			}
		}
	}
	next := 0
	for name, k := range kinds {
		blocks[name] = func(stmt *ast.BlockStmt) outcome {
			list := alloc(f.allocate(v))
			if next == 0 {
				list.Set(reflect.MakeSlice(list.Type(), n, n))
			}
			next++
			return d.block(stmt, alloc(k.allocate(alloc(list.Index(next-1)))), join(path, name))
		}
	}
}

func (d *decoder) mapBlock(stmt *ast.BlockStmt, m reflect.Value, path string) (o outcome) {
	o.merge(d.label(stmt, m, nil))
	if m.IsNil() {
		m.Set(reflect.MakeMap(m.Type()))
	}
	for _, st := range stmt.Body {
		switch st := st.(type) {
		case *ast.AttributeStmt:
			elem := reflect.New(m.Type().Elem()).Elem()
			o.merge(d.attribute(st, elem, path))
			m.SetMapIndex(reflect.ValueOf(st.Name.Name), elem)
		case *ast.BlockStmt:
			o.merge(d.fail(headerSpan(st), fmt.Sprintf("block %s takes attributes, not blocks", path), ""))
		}
	}
	return o
}

func (d *decoder) label(stmt *ast.BlockStmt, v reflect.Value, f *field) (o outcome) {
	switch {
	case f == nil && stmt.Label != "":
		return d.fail(headerSpan(stmt), fmt.Sprintf("block %s takes no label", stmt.GetBlockName()), "")
	case f != nil && stmt.Label == "":
		return d.fail(headerSpan(stmt), fmt.Sprintf("block %s needs a label", stmt.GetBlockName()), "")
	case f != nil:
		f.allocate(v).SetString(stmt.Label)
	}
	return o
}

// absent returns the names for which body has no attribute or block. Only these
// are candidates for a misspelt name.
func absent(body ast.Body, names []string) []string {
	return slices.DeleteFunc(names, func(name string) bool {
		return slices.ContainsFunc(body, func(s ast.Stmt) bool {
			switch s := s.(type) {
			case *ast.AttributeStmt:
				return s.Name.Name == name
			case *ast.BlockStmt:
				return s.GetBlockName() == name
			}
			return false
		})
	})
}

// misspelt records an unknown attribute or block of the block at path, and
// returns the names that may be meant.
func (d *decoder) misspelt(s Span, kind, path, name string, fs []field) []string {
	have, of := fieldNames(fs), path
	if path == "" {
		have, of = append(have, d.others...), d.name
	}
	hint := DidYouMean(name, have)
	if hint != "" {
		d.fail(s, fmt.Sprintf("unknown %s %s", kind, join(path, name)), hint)
		return identifiers.FindAllString(hint, -1)
	}
	switch inside := inside(name, fs); {
	case inside != "":
		hint = fmt.Sprintf("it belongs in the block %s", join(path, inside))
	case len(have) == 0:
		hint = of + " has no attributes or blocks"
	case len(have) <= maxListed:
		hint = fmt.Sprintf("%s has %s", of, strings.Join(have, ", "))
	default:
		hint = fmt.Sprintf("'weir components %s' lists its attributes and blocks", d.name)
	}
	d.fail(s, fmt.Sprintf("unknown %s %s", kind, join(path, name)), hint)
	return nil
}

// maxListed is the maximum number of names of attributes and blocks in a hint.
const maxListed = 8

// inside returns the only nested block that has an attribute or block called
// name. It returns "" if there is no such block, or more than one.
func inside(name string, fs []field) (block string) {
	for _, f := range fs {
		t := deref(f.typ)
		for f.kind == blockField && (t.Kind() == reflect.Slice || t.Kind() == reflect.Array) {
			t = deref(t.Elem())
		}
		if f.kind != blockField || t.Kind() != reflect.Struct || !slices.Contains(fieldNames(tagged(t)), name) {
			continue
		}
		if block != "" {
			return ""
		}
		block = f.name
	}
	return block
}

// invalid records an error of Validate, or each error if it joins several. It
// ignores errors that are not reliable, given what is known of the block. The
// lines of an error after the first become the detail.
func (d *decoder) invalid(stmt *ast.BlockStmt, err error, known outcome) outcome {
	if many, ok := err.(interface{ Unwrap() []error }); ok {
		for _, e := range many.Unwrap() {
			d.invalid(stmt, e, known)
		}
		return outcome{failed: true}
	}
	msg, detail, _ := strings.Cut(err.Error(), "\n")
	if !known.holds(stmt, msg) {
		return outcome{}
	}
	d.ds = append(d.ds, Diagnostic{Span: mentioned(stmt, msg), Msg: msg, Detail: detail})
	return outcome{failed: true}
}

var identifiers = regexp.MustCompile(`[A-Za-z_][A-Za-z0-9_]*`)

// mentioned returns the position of the first attribute or block that msg
// mentions, or else of the block itself. The errors of Validate have no
// positions.
func mentioned(stmt *ast.BlockStmt, msg string) Span {
	for _, word := range identifiers.FindAllString(msg, -1) {
		for _, s := range stmt.Body {
			switch s := s.(type) {
			case *ast.AttributeStmt:
				if s.Name.Name == word {
					return newSpan(ast.StartPos(s), ast.EndPos(s))
				}
			case *ast.BlockStmt:
				if s.GetBlockName() == word {
					return headerSpan(s)
				}
			}
		}
	}
	return headerSpan(stmt)
}

// fieldNames returns the names of the attributes and blocks in fs.
func fieldNames(fs []field) (names []string) {
	for _, f := range fs {
		switch f.kind {
		case attrField, blockField:
			names = append(names, f.name)
		case enumField:
			for _, k := range tagged(deref(f.typ.Elem())) {
				names = append(names, f.name+"."+k.name)
			}
		}
	}
	return names
}

func count(body ast.Body, name string) (n int) {
	for _, s := range body {
		if b, ok := s.(*ast.BlockStmt); ok && b.GetBlockName() == name {
			n++
		}
	}
	return n
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

// plain replaces the library's type names with plain words.
var plain = strings.NewReplacer(
	`capsule("*flow.Receiver")`, "receiver",
	`capsule("flow.Receiver")`, "receiver",
	`capsule("alloytypes.Secret")`, "secret",
	`capsule("alloytypes.OptionalSecret")`, "secret or string",
)

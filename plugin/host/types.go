package host

import (
	"fmt"
	"reflect"
	"regexp"
	"strings"
	"time"

	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/config"
	"github.com/weir-run/weir/engine/flow"
	"github.com/weir-run/weir/plugin/protocol"
)

// object is the type of a block's content, or of exports. It is made from the fields
// that a plugin describes, and the decoder of the config fills it in like a struct of a
// native component.
type object struct {
	attrs    []*attribute
	blocks   []*nested
	labelled bool
	typ      reflect.Type
	initial  reflect.Value // a typ with the defaults
}

// attribute is an attribute or an export. index is its field. An optional attribute
// without a default is a pointer if its zero value is not nil, so that what is not
// written is not sent: the plugin then uses its own default.
type attribute struct {
	name     string
	required bool
	def      string
	goType   reflect.Type
	index    int
}

// nested is a block in a block.
type nested struct {
	name               string
	required, repeated bool
	content            *object
	index, start       int // fields: the blocks, and the value with which each of them begins
}

var identifier = regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_]*$`)

// newObject returns the type of the fields of a component.
func newObject(fields []*protocol.Field) (*object, error) {
	if len(fields) > 10_000 {
		return nil, fmt.Errorf("it has %d fields", len(fields))
	}
	root := new(object)
	blocks := map[string]*object{"": root}
	seen := map[string]bool{}
	for _, f := range fields {
		around, name := "", f.Path
		if i := strings.LastIndexByte(f.Path, '.'); i >= 0 {
			around, name = f.Path[:i], f.Path[i+1:]
		}
		in := blocks[around]
		if in == nil || !identifier.MatchString(name) || seen[f.Path] {
			return nil, fmt.Errorf("the path %q is not valid", f.Path)
		}
		seen[f.Path] = true
		if f.Type == "block" {
			content := &object{labelled: f.Labelled}
			in.blocks = append(in.blocks, &nested{name: name, required: f.Required, repeated: f.Repeated, content: content})
			blocks[f.Path] = content
			continue
		}
		t, err := typeOf(f.Type)
		if err != nil {
			return nil, fmt.Errorf("the type of %s is not valid: %w", f.Path, err)
		}
		a := &attribute{name: name, required: f.Required, def: f.Default, goType: t}
		if strings.Contains(f.Type, "secret") {
			a.def = "" // it is not shown
		}
		in.attrs = append(in.attrs, a)
	}
	return root, root.build()
}

// typeOf returns the Go type for a type of the protocol.
func typeOf(words string) (reflect.Type, error) {
	if inner, ok := strings.CutSuffix(words, ")"); ok {
		if of, ok := strings.CutPrefix(inner, "list("); ok {
			t, err := typeOf(of)
			if err != nil {
				return nil, err
			}
			return reflect.SliceOf(t), nil
		}
		if of, ok := strings.CutPrefix(inner, "map("); ok {
			t, err := typeOf(of)
			if err != nil {
				return nil, err
			}
			return reflect.MapOf(reflect.TypeFor[string](), t), nil
		}
	}
	switch words {
	case "string":
		return reflect.TypeFor[string](), nil
	case "number":
		return reflect.TypeFor[float64](), nil
	case "bool":
		return reflect.TypeFor[bool](), nil
	case "duration":
		return reflect.TypeFor[time.Duration](), nil
	case "size":
		return reflect.TypeFor[component.Size](), nil
	case "secret":
		return reflect.TypeFor[component.Secret](), nil
	case "secret or string":
		return reflect.TypeFor[component.OptionalSecret](), nil
	case "receiver":
		return reflect.TypeFor[*flow.Receiver](), nil
	case "any":
		return reflect.TypeFor[any](), nil
	}
	return nil, fmt.Errorf("there is no type %q", words)
}

// nilable reports whether values of t can be nil.
func nilable(t reflect.Type) bool {
	return t.Kind() == reflect.Slice || t.Kind() == reflect.Map || t.Kind() == reflect.Interface || t.Kind() == reflect.Pointer
}

// build creates the struct type and its defaults, inner types first.
func (o *object) build() error {
	var fs []reflect.StructField
	add := func(name string, t reflect.Type, tag string) int {
		fs = append(fs, reflect.StructField{Name: name, Type: t, Tag: reflect.StructTag(tag)})
		return len(fs) - 1
	}
	tag := func(name, kind string, required bool) string {
		if required {
			return fmt.Sprintf(`alloy:"%s,%s"`, name, kind)
		}
		return fmt.Sprintf(`alloy:"%s,%s,optional"`, name, kind)
	}
	for i, a := range o.attrs {
		t := a.goType
		if !a.required && a.def == "" && !nilable(t) {
			t = reflect.PointerTo(t)
		}
		a.index = add(fmt.Sprintf("A%d", i), t, tag(a.name, "attr", a.required))
	}
	for i, b := range o.blocks {
		if err := b.content.build(); err != nil {
			return err
		}
		t := reflect.PointerTo(b.content.typ)
		switch {
		case b.repeated:
			t = reflect.SliceOf(b.content.typ)
		case b.required:
			t = b.content.typ
		}
		b.index = add(fmt.Sprintf("B%d", i), t, tag(b.name, "block", b.required))
		b.start = add(fmt.Sprintf("B%dDefault", i), b.content.typ, "")
	}
	if o.labelled {
		add("Label", reflect.TypeFor[string](), `alloy:",label"`)
	}
	o.typ = reflect.StructOf(fs)
	o.initial = reflect.New(o.typ).Elem()
	for _, b := range o.blocks {
		o.initial.Field(b.start).Set(b.content.initial)
	}
	return o.setDefaults()
}

// setDefaults evaluates the defaults.
func (o *object) setDefaults() error {
	for _, a := range o.attrs {
		if a.required || a.def == "" {
			continue
		}
		one := reflect.New(reflect.StructOf([]reflect.StructField{{Name: "V", Type: a.goType, Tag: `alloy:"v,attr"`}}))
		cfg, ds := config.Parse(map[string]string{"default": "x {\nv = " + a.def + "\n}\n"})
		if len(cfg.Blocks) == 1 && !ds.HasErrors() {
			ds = cfg.Blocks[0].Decode(cfg.NewScope(""), one.Interface())
		}
		if ds.HasErrors() {
			return fmt.Errorf("the default %s of %s is not valid: %w", a.def, a.name, ds.Err())
		}
		o.initial.Field(a.index).Set(one.Elem().Field(0))
	}
	return nil
}

// newArgs returns a pointer to a new value with the defaults.
func (o *object) newArgs() any {
	p := reflect.New(o.typ)
	p.Elem().Set(o.initial)
	return p.Interface()
}

package api

import (
	"encoding"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"
	"unicode"
)

// Comments returns the comment on a type, and those on its fields by their Go names.
type Comments func(t reflect.Type) (text string, fields map[string]string)

// schema is a JSON schema, as far as the document needs it.
type schema struct {
	Ref                  string             `json:"$ref,omitempty"`
	Description          string             `json:"description,omitempty"`
	Type                 any                `json:"type,omitempty"` // a name or a list of names
	Format               string             `json:"format,omitempty"`
	Enum                 []string           `json:"enum,omitempty"`
	Properties           map[string]*schema `json:"properties,omitempty"`
	Required             []string           `json:"required,omitempty"`
	Items                *schema            `json:"items,omitempty"`
	AdditionalProperties *schema            `json:"additionalProperties,omitempty"`
	AnyOf                []*schema          `json:"anyOf,omitempty"`
}

// schemas are the schemas of named struct types.
type schemas struct {
	comments Comments
	names    map[reflect.Type]string
	all      map[string]*schema
}

const schemaPath = "#/components/schemas/"

var (
	timeType      = reflect.TypeFor[time.Time]()
	rawType       = reflect.TypeFor[json.RawMessage]()
	marshalerType = reflect.TypeFor[json.Marshaler]()
	textType      = reflect.TypeFor[encoding.TextMarshaler]()
)

// of returns the schema of a type. It panics for types that encoding/json cannot write.
func (s *schemas) of(t reflect.Type) *schema {
	switch {
	case t == timeType:
		return &schema{Type: "string", Format: "date-time"}
	case t == rawType || t.Kind() == reflect.Interface:
		return &schema{} // any JSON
	case t.Implements(marshalerType) && t.Kind() == reflect.Float32:
		return &schema{Type: []string{"number", "null"}} // NaN is null
	case t.Implements(textType) && t.Kind() != reflect.Pointer:
		return &schema{Type: "string"}
	}
	switch t.Kind() {
	case reflect.Pointer:
		return nullable(s.of(t.Elem()))
	case reflect.Struct:
		return &schema{Ref: schemaPath + s.name(t)}
	case reflect.Slice:
		return &schema{Type: "array", Items: s.of(t.Elem())}
	case reflect.Array:
		return &schema{Type: "array", Items: s.of(t.Elem())}
	case reflect.Map:
		return &schema{Type: "object", AdditionalProperties: s.of(t.Elem())}
	case reflect.String:
		return &schema{Type: "string"}
	case reflect.Bool:
		return &schema{Type: "boolean"}
	case reflect.Float32, reflect.Float64:
		return &schema{Type: "number"}
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64, reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return &schema{Type: "integer"}
	}
	panic(fmt.Sprintf("BUG: the API has a value of type %s, which JSON cannot express", t))
}

// nullable returns a schema that also allows null.
func nullable(of *schema) *schema {
	if name, ok := of.Type.(string); ok {
		of.Type = []string{name, "null"}
		return of
	}
	return &schema{AnyOf: []*schema{of, {Type: "null"}}}
}

// name returns the name of a struct type's schema, which it adds.
func (s *schemas) name(t reflect.Type) string {
	if name, ok := s.names[t]; ok {
		return name
	}
	name := exported(t.Name())
	if _, taken := s.all[name]; taken || name == "" {
		pkg := t.PkgPath()[strings.LastIndexByte(t.PkgPath(), '/')+1:]
		name = exported(pkg) + name
	}
	if _, taken := s.all[name]; taken {
		panic("BUG: the API has several types " + name)
	}
	object := &schema{Type: "object", Properties: map[string]*schema{}}
	s.names[t], s.all[name] = name, object
	var fields map[string]string
	object.Description, fields = s.comments(t)
	s.add(object, t, fields)
	return name
}

func exported(name string) string {
	r := []rune(name)
	if len(r) > 0 {
		r[0] = unicode.ToUpper(r[0])
	}
	return string(r)
}

// add adds the fields of a struct type to an object, as encoding/json writes them.
func (s *schemas) add(object *schema, t reflect.Type, comments map[string]string) {
	for f := range t.Fields() {
		tag, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case tag == "-":
			continue
		case f.Anonymous && tag == "":
			inner := f.Type
			if inner.Kind() == reflect.Pointer {
				inner = inner.Elem()
			}
			_, fields := s.comments(inner)
			s.add(object, inner, fields)
			continue
		case !f.IsExported():
			continue
		case tag == "":
			tag = f.Name
		}
		optional := strings.Contains(options, "omitempty") || strings.Contains(options, "omitzero")
		ft := f.Type
		if optional && ft.Kind() == reflect.Pointer {
			ft = ft.Elem() // it is left out instead of null
		}
		of := s.of(ft)
		if text := comments[f.Name]; text != "" {
			of.Description = text
		}
		// A field takes the place of one with its name in an embedded struct.
		if object.Properties[tag] = of; !optional && !slices.Contains(object.Required, tag) {
			object.Required = append(object.Required, tag)
		}
	}
}

package stdlib

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"github.com/weir-run/weir/scripting"
)

const (
	maxDepth  = 100
	maxValues = 500_000
)

func jsonModule() *scripting.Module {
	return &scripting.Module{
		Name: "json",
		Doc: "Lossless JSON: decoding and encoding keep nulls, empty lists, the order of keys and 64-bit integers. " +
			"At most 8 MiB, 100 levels and 500,000 values.",
		Consts: []scripting.Const{{
			Name: "null", Value: scripting.Null,
			Doc: "The null of JSON. It is not the same as a missing value.",
		}},
		Funcs: []scripting.Function{
			{
				Name:   "decode",
				Doc:    "Decodes JSON. 64-bit integers are exact; any other number becomes a float.",
				Params: []scripting.Param{text("s", "The JSON text.")},
				Result: scripting.Result{Kind: scripting.KindAny, Doc: "The value.", Fails: true},
				Fn:     func(a []scripting.Value) (scripting.Value, error) { return decode(a[0].(string)) },
				Examples: []scripting.FunctionExample{
					ex(mapOf("level", "warn", "n", int64(3)), `{"level":"warn","n":3}`),
					ex(list(scripting.Null, list(), mapOf(), 1.5, true), `[null,[],{},1.5,true]`),
					ex(int64(9007199254740993), `9007199254740993`),
					{Args: []scripting.Value{`{"a":`}, Err: "unexpected end"},
					{Args: []scripting.Value{`1 2`}, Err: "after the value"},
				},
			},
			{
				Name: "encode",
				Doc:  "Encodes a value as JSON. The order of keys is kept. NaN, infinities and functions are errors.",
				Params: []scripting.Param{
					{Name: "v", Kind: scripting.KindAny, Doc: "The value."},
					{Name: "indent", Kind: scripting.KindString, Doc: "The indentation of each level; without it, the result is a single line.", Optional: true},
				},
				Result: scripting.Result{Kind: scripting.KindString, Doc: "The JSON text.", Fails: true},
				Fn:     func(a []scripting.Value) (scripting.Value, error) { return encode(a[0], a[1]) },
				Examples: []scripting.FunctionExample{
					ex(`{"a":[1,"x<y",null],"b":0.5}`, mapOf("a", list(int64(1), "x<y", scripting.Null), "b", 0.5)),
					ex(`[]`, list()),
					ex("[\n  1\n]", list(int64(1)), "  "),
				},
			},
			{
				Name: "array",
				Doc:  "Marks a list as a list, for languages in which an empty list and an empty map look the same, and returns it.",
				Params: []scripting.Param{
					{Name: "list", Kind: scripting.KindList, Doc: "The list; by default, a new empty list.", Optional: true},
				},
				Result: scripting.Result{Kind: scripting.KindList, Doc: "The list."},
				Fn: func(a []scripting.Value) (scripting.Value, error) {
					if a[0] == nil {
						return list(), nil
					}
					return a[0], nil
				},
				Examples: []scripting.FunctionExample{ex(list()), ex(list(int64(1)), list(int64(1)))},
			},
		},
	}
}

// mapOf returns a map of alternating keys and values.
func mapOf(kv ...scripting.Value) *scripting.Map {
	m := scripting.NewMap()
	for i := 0; i < len(kv); i += 2 {
		m.Set(kv[i].(string), kv[i+1])
	}
	return m
}

type decoder struct {
	*json.Decoder
	values int
}

func decode(s string) (scripting.Value, error) {
	d := &decoder{Decoder: json.NewDecoder(strings.NewReader(s))}
	d.UseNumber()
	v, err := d.value(0)
	if err == nil {
		if _, end := d.Token(); end == nil {
			err = fmt.Errorf("unexpected data after the value at byte %d", d.InputOffset())
		} else if !errors.Is(end, io.EOF) {
			err = fmt.Errorf("unexpected data after the value: %w", end)
		}
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = errors.New("unexpected end")
	}
	if err != nil {
		return nil, fmt.Errorf("cannot decode JSON: %w", err)
	}
	return v, nil
}

func (d *decoder) value(depth int) (scripting.Value, error) {
	t, err := d.Token()
	if err != nil {
		return nil, err
	}
	if d.values++; d.values > maxValues {
		return nil, fmt.Errorf("more than %d values", maxValues)
	}
	switch t := t.(type) {
	case nil:
		return scripting.Null, nil
	case json.Number:
		return decodeNumber(string(t))
	case json.Delim:
		if depth == maxDepth {
			return nil, fmt.Errorf("more than %d levels", maxDepth)
		}
		if t == '[' {
			return d.list(depth + 1)
		}
		return d.object(depth + 1)
	}
	return t, nil // a string or a boolean
}

func (d *decoder) list(depth int) (scripting.Value, error) {
	l := &scripting.List{}
	for d.More() {
		v, err := d.value(depth)
		if err != nil {
			return nil, err
		}
		l.Items = append(l.Items, v)
	}
	_, err := d.Token()
	return l, err
}

func (d *decoder) object(depth int) (scripting.Value, error) {
	m := scripting.NewMap()
	for d.More() {
		k, err := d.Token()
		if err != nil {
			return nil, err
		}
		v, err := d.value(depth)
		if err != nil {
			return nil, err
		}
		m.Set(k.(string), v)
	}
	_, err := d.Token()
	return m, err
}

func decodeNumber(s string) (scripting.Value, error) {
	// -0 is a float, because an integer would lose its sign.
	if !strings.ContainsAny(s, ".eE") && s != "-0" {
		if i, err := strconv.ParseInt(s, 10, 64); err == nil {
			return i, nil
		}
	}
	f, err := strconv.ParseFloat(s, 64)
	if err != nil {
		return nil, fmt.Errorf("number %s is out of range", s)
	}
	return f, nil
}

func encode(v, indent scripting.Value) (scripting.Value, error) {
	e := &encoder{}
	if err := e.value(v, 0); err != nil {
		return nil, fmt.Errorf("cannot encode JSON: %w", err)
	}
	if e.buf.Len() > scripting.MaxString {
		return nil, errLong("encode JSON")
	}
	if indent == nil || indent == "" {
		return e.buf.String(), nil
	}
	by := indent.(string)
	if len(by) > 16 || strings.Trim(by, " \t") != "" {
		return nil, errors.New("cannot encode JSON: indent must have at most 16 spaces and tabs")
	}
	// Each value adds at most two line breaks, each followed by the indentation
	// of its level.
	if e.buf.Len()+e.values*2*(e.deep*len(by)+1) > 8*scripting.MaxString {
		return nil, errLong("encode JSON")
	}
	var out bytes.Buffer
	if err := json.Indent(&out, e.buf.Bytes(), "", by); err != nil {
		return nil, fmt.Errorf("cannot encode JSON: %w", err)
	}
	if out.Len() > scripting.MaxString {
		return nil, errLong("encode JSON")
	}
	return out.String(), nil
}

type encoder struct {
	buf    bytes.Buffer
	values int
	deep   int // the deepest level
}

func (e *encoder) value(v scripting.Value, depth int) error {
	if depth > maxDepth {
		return fmt.Errorf("more than %d levels", maxDepth)
	}
	if e.values++; e.values > maxValues {
		return fmt.Errorf("more than %d values", maxValues)
	}
	e.deep = max(e.deep, depth)
	if e.buf.Len() > scripting.MaxString {
		return fmt.Errorf("the result is longer than %d bytes", scripting.MaxString) // check early, because it may be very long
	}
	if v == scripting.Null {
		v = nil
	}
	switch v := v.(type) {
	case nil:
		e.buf.WriteString("null")
	case bool:
		e.buf.WriteString(strconv.FormatBool(v))
	case int64:
		e.buf.WriteString(strconv.FormatInt(v, 10))
	case float64:
		return e.float(v)
	case string:
		return e.text(v)
	case *scripting.List:
		e.buf.WriteByte('[')
		for i, item := range v.Items {
			if i > 0 {
				e.buf.WriteByte(',')
			}
			if err := e.value(item, depth+1); err != nil {
				return err
			}
		}
		e.buf.WriteByte(']')
	case *scripting.Map:
		e.buf.WriteByte('{')
		for i, k := range v.Keys() {
			if i > 0 {
				e.buf.WriteByte(',')
			}
			if err := e.text(k); err != nil {
				return err
			}
			e.buf.WriteByte(':')
			item, _ := v.Get(k)
			if err := e.value(item, depth+1); err != nil {
				return err
			}
		}
		e.buf.WriteByte('}')
	case *scripting.Object:
		return fmt.Errorf("a %s has no JSON form", v.Type.Name)
	default:
		return errors.New("a function has no JSON form")
	}
	return nil
}

func (e *encoder) float(f float64) error {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return fmt.Errorf("%v has no JSON form", f)
	}
	b, err := json.Marshal(f)
	e.buf.Write(b)
	return err
}

func (e *encoder) text(s string) error {
	// Use an Encoder instead of Marshal, so that < > & are not escaped.
	enc := json.NewEncoder(&e.buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(s); err != nil {
		return err
	}
	e.buf.Truncate(e.buf.Len() - 1) // Encode adds a line feed
	return nil
}

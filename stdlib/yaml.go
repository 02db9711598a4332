package stdlib

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"github.com/weir-run/weir/scripting"
)

// maxYAML is the maximum size of a YAML text, because the parser needs some
// hundred bytes of memory for each byte of text.
const maxYAML = 1 << 20

func yamlModule() *scripting.Module {
	source := text("s", "The YAML text.")
	return &scripting.Module{
		Name: "yaml",
		Doc: "YAML 1.2 with merge keys (<<). Nulls, empty lists, the order of keys and 64-bit integers are kept. Times, yes, no, on and off are strings. " +
			"At most 1 MiB, 100 levels and 500,000 values; values behind aliases are counted each time.",
		Consts: []scripting.Const{{Name: "null", Value: scripting.Null, Doc: "The null of YAML, the same as the null of json."}},
		Funcs: []scripting.Function{
			{
				Name: "decode", Doc: "Decodes a text with one document; an empty text is null. Keys are strings. Duplicate keys are an error.",
				Params: []scripting.Param{source},
				Result: scripting.Result{Kind: scripting.KindAny, Doc: "The value.", Fails: true},
				Fn: func(a []scripting.Value) (scripting.Value, error) {
					docs, err := decodeYAML(a[0].(string), 1)
					if err != nil || len(docs) == 0 {
						return scripting.Null, err
					}
					return docs[0], nil
				},
				Examples: []scripting.FunctionExample{
					ex(mapOf("jobs", list("api", "web"), "port", int64(80), "tls", true, "country", "no", "ca", scripting.Null), "jobs: [api, web]\nport: 80\ntls: true\ncountry: no\nca:\n"),
					ex(mapOf("a", mapOf("x", int64(1)), "b", mapOf("y", 0.5, "x", int64(1))), "a: &base {x: 1}\nb: {<<: *base, y: 0.5}"),
					{Args: []scripting.Value{"a: 1\na: 2"}, Err: `line 2: duplicate key "a"`},
					{Args: []scripting.Value{"a: 1\n---\nb: 2"}, Err: "more than one document"},
				},
			},
			{
				Name: "decode_all", Doc: "Decodes all documents in a text.",
				Params: []scripting.Param{source},
				Result: scripting.Result{Kind: scripting.KindList, Doc: "The values.", Fails: true},
				Fn: func(a []scripting.Value) (scripting.Value, error) {
					docs, err := decodeYAML(a[0].(string), maxParts)
					if err != nil {
						return nil, err
					}
					return &scripting.List{Items: docs}, nil
				},
				Examples: []scripting.FunctionExample{
					ex(list(mapOf("a", int64(1)), list()), "a: 1\n---\n[]\n"),
					ex(list(), ""),
				},
			},
			{
				Name: "encode", Doc: "Encodes a value as one document. The order of keys is kept. Functions are errors.",
				Params: []scripting.Param{{Name: "v", Kind: scripting.KindAny, Doc: "The value."}},
				Result: scripting.Result{Kind: scripting.KindString, Doc: "The YAML text, with a line feed at its end.", Fails: true},
				Fn:     func(a []scripting.Value) (scripting.Value, error) { return encodeYAML(a[0]) },
				Examples: []scripting.FunctionExample{
					ex("job: api\nports:\n  - 80\n  - \"443\"\nca: null\n", mapOf("job", "api", "ports", list(int64(80), "443"), "ca", scripting.Null)),
				},
			},
		},
	}
}

// decodeYAML decodes up to limit documents. More documents are an error.
func decodeYAML(s string, limit int) (docs []scripting.Value, err error) {
	// The parser of the library panics in some unexpected cases.
	defer func() {
		if r := recover(); r != nil {
			docs, err = nil, fmt.Errorf("cannot decode YAML: %v", r)
		}
	}()
	if len(s) > maxYAML {
		return nil, fmt.Errorf("cannot decode YAML: it is longer than %d bytes", maxYAML)
	}
	d := yaml.NewDecoder(strings.NewReader(s))
	r := &yamlReader{open: map[*yaml.Node]bool{}}
	for {
		var n yaml.Node
		switch err := d.Decode(&n); {
		case errors.Is(err, io.EOF):
			return docs, nil
		case err != nil:
			return nil, fmt.Errorf("cannot decode YAML: %s", strings.TrimPrefix(err.Error(), "yaml: "))
		case len(docs) == limit:
			return nil, fmt.Errorf("cannot decode YAML: line %d: there is more than %s", n.Line, many(limit, "document"))
		}
		v, err := r.value(&n, 0)
		if err != nil {
			return nil, fmt.Errorf("cannot decode YAML: %w", err)
		}
		docs = append(docs, v)
	}
}

func many(n int, what string) string {
	if n == 1 {
		return "one " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// yamlReader converts nodes to values.
type yamlReader struct {
	values int
	open   map[*yaml.Node]bool // anchors that are being read: an alias to one of them would never end
}

func (r *yamlReader) value(n *yaml.Node, depth int) (scripting.Value, error) {
	if n.Kind == yaml.DocumentNode {
		return r.value(n.Content[0], depth)
	}
	if r.values++; r.values > maxValues {
		return nil, fmt.Errorf("line %d: there are more than %d values", n.Line, maxValues)
	}
	if depth == maxDepth && (n.Kind == yaml.SequenceNode || n.Kind == yaml.MappingNode) {
		return nil, fmt.Errorf("line %d: there are more than %d levels", n.Line, maxDepth)
	}
	switch n.Kind {
	case yaml.AliasNode:
		if r.open[n.Alias] {
			return nil, fmt.Errorf("line %d: alias *%s refers to a value that contains it", n.Line, n.Value)
		}
		return r.value(n.Alias, depth)
	case yaml.SequenceNode:
		if err := expect(n, "!!seq"); err != nil {
			return nil, err
		}
		return r.list(n, depth)
	case yaml.MappingNode:
		if err := expect(n, "!!map"); err != nil {
			return nil, err
		}
		m := scripting.NewMap()
		return m, r.entries(m, n, depth)
	case yaml.ScalarNode:
		return scalar(n)
	}
	return scripting.Null, nil // an empty document
}

func expect(n *yaml.Node, tag string) error {
	if got := n.ShortTag(); got != tag {
		return fmt.Errorf("line %d: cannot use the tag %s: it is not supported here", n.Line, truncate(got, 40, "…"))
	}
	return nil
}

func (r *yamlReader) list(n *yaml.Node, depth int) (scripting.Value, error) {
	r.open[n] = true
	defer delete(r.open, n)
	l := &scripting.List{Items: make([]scripting.Value, 0, len(n.Content))}
	for _, c := range n.Content {
		v, err := r.value(c, depth+1)
		if err != nil {
			return nil, err
		}
		l.Items = append(l.Items, v)
	}
	return l, nil
}

// entries sets the entries of a mapping. It sets those of its merge keys first,
// so that its own entries override them.
func (r *yamlReader) entries(m *scripting.Map, n *yaml.Node, depth int) error {
	r.open[n] = true
	defer delete(r.open, n)
	for i := 0; i+1 < len(n.Content); i += 2 {
		if isMerge(n.Content[i]) {
			if err := r.merge(m, n.Content[i+1], depth); err != nil {
				return err
			}
		}
	}
	own := map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		k := n.Content[i]
		if isMerge(k) {
			continue
		}
		if k.Kind == yaml.AliasNode {
			k = k.Alias
		}
		if k.Kind != yaml.ScalarNode {
			return fmt.Errorf("line %d: a key must be a string, a number or another scalar", k.Line)
		}
		if own[k.Value] {
			return fmt.Errorf("line %d: duplicate key %q", k.Line, truncate(k.Value, 40, "…"))
		}
		own[k.Value] = true
		v, err := r.value(n.Content[i+1], depth+1)
		if err != nil {
			return err
		}
		m.Set(k.Value, v)
	}
	return nil
}

func isMerge(k *yaml.Node) bool {
	return k.Kind == yaml.ScalarNode && k.Value == "<<" && k.ShortTag() == "!!merge"
}

// merge sets the entries of the mapping in a merge key, or of a list of mappings,
// in which the first one has precedence.
func (r *yamlReader) merge(m *scripting.Map, n *yaml.Node, depth int) error {
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	from := []*yaml.Node{n}
	if n.Kind == yaml.SequenceNode {
		from = n.Content
	}
	for i := len(from) - 1; i >= 0; i-- {
		f := from[i]
		if f.Kind == yaml.AliasNode {
			f = f.Alias
		}
		switch {
		case f.Kind != yaml.MappingNode:
			return fmt.Errorf("line %d: << takes a mapping or a list of mappings", f.Line)
		case r.open[f]:
			return fmt.Errorf("line %d: << refers to a mapping that contains it", f.Line)
		case depth == maxDepth:
			return fmt.Errorf("line %d: there are more than %d levels", f.Line, maxDepth)
		}
		if r.values++; r.values > maxValues {
			return fmt.Errorf("line %d: there are more than %d values", f.Line, maxValues)
		}
		if err := r.entries(m, f, depth+1); err != nil {
			return err
		}
	}
	return nil
}

// scalar converts a single value.
func scalar(n *yaml.Node) (scripting.Value, error) {
	wrong := func() (scripting.Value, error) {
		return nil, fmt.Errorf("line %d: %q is not a valid %s", n.Line, truncate(n.Value, 40, "…"), n.ShortTag())
	}
	switch n.ShortTag() {
	case "!!null":
		return scripting.Null, nil
	case "!!bool":
		var b bool
		if n.Decode(&b) != nil {
			return wrong()
		}
		return b, nil
	case "!!int":
		var i int64
		if n.Decode(&i) == nil {
			return i, nil
		}
		fallthrough // an integer of more than 64 bits becomes a float, as in JSON
	case "!!float":
		var f float64
		if n.Decode(&f) != nil {
			return wrong()
		}
		return f, nil
	case "!!binary":
		b, err := base64.StdEncoding.DecodeString(strings.Join(strings.Fields(n.Value), ""))
		if err != nil {
			return wrong()
		}
		return string(b), nil
	case "!!str", "!!timestamp", "!!merge":
		return n.Value, nil
	}
	return nil, expect(n, "!!str")
}

func encodeYAML(v scripting.Value) (out scripting.Value, err error) {
	defer func() {
		if r := recover(); r != nil {
			out, err = nil, fmt.Errorf("cannot encode YAML: %v", r)
		}
	}()
	w := &yamlWriter{}
	n, err := w.node(v, 0)
	if err != nil {
		return nil, fmt.Errorf("cannot encode YAML: %w", err)
	}
	var buf bytes.Buffer
	e := yaml.NewEncoder(&buf)
	e.SetIndent(2)
	if err := errors.Join(e.Encode(n), e.Close()); err != nil {
		return nil, fmt.Errorf("cannot encode YAML: %w", err)
	}
	if buf.Len() > scripting.MaxString {
		return nil, errLong("encode YAML")
	}
	return buf.String(), nil
}

// yamlWriter converts values to nodes.
type yamlWriter struct {
	values int
	size   int // approximate size of the text, without indentation
}

func (w *yamlWriter) node(v scripting.Value, depth int) (*yaml.Node, error) {
	if depth > maxDepth {
		return nil, fmt.Errorf("more than %d levels", maxDepth)
	}
	if w.values++; w.values > maxValues {
		return nil, fmt.Errorf("more than %d values", maxValues)
	}
	if w.size += 2 * depth; w.size > scripting.MaxString {
		return nil, errLong("encode YAML")
	}
	if v == scripting.Null {
		v = nil
	}
	plain := func(tag, s string) *yaml.Node {
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: tag, Value: s}
	}
	switch v := v.(type) {
	case nil:
		return plain("!!null", "null"), nil
	case bool:
		return plain("!!bool", strconv.FormatBool(v)), nil
	case int64:
		return plain("!!int", strconv.FormatInt(v, 10)), nil
	case float64:
		return plain("!!float", yamlFloat(v)), nil
	case string:
		return w.text(v), nil
	case *scripting.List:
		n := &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq"}
		for _, item := range v.Items {
			c, err := w.node(item, depth+1)
			if err != nil {
				return nil, err
			}
			n.Content = append(n.Content, c)
		}
		return n, nil
	case *scripting.Map:
		n := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}
		for _, k := range v.Keys() {
			item, _ := v.Get(k)
			c, err := w.node(item, depth+1)
			if err != nil {
				return nil, err
			}
			n.Content = append(n.Content, w.text(k), c)
		}
		return n, nil
	case *scripting.Object:
		return nil, fmt.Errorf("a %s has no YAML form", v.Type.Name)
	}
	return nil, errors.New("a function has no YAML form")
}

// text returns a node that is read back as the same string: quoted if YAML would
// read it as another type, and as base64 if it is not valid UTF-8.
func (w *yamlWriter) text(s string) *yaml.Node {
	w.size += len(s)
	if !utf8.ValidString(s) {
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!binary", Value: base64.StdEncoding.EncodeToString([]byte(s))}
	}
	n := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: s}
	if mustQuote(s) {
		n.Style = yaml.DoubleQuotedStyle
	}
	return n
}

// mustQuote reports whether the library would write a string as a merge key, as a
// block that it cannot read again, or as a boolean of YAML 1.1.
func mustQuote(s string) bool {
	switch strings.ToLower(s) {
	case "<<", "y", "n", "yes", "no", "on", "off":
		return true
	}
	return strings.Contains(s, "\n") && (strings.ContainsAny(s, "\t\r") || s[0] == ' ' || s[0] == '\n')
}

func yamlFloat(f float64) string {
	switch {
	case math.IsNaN(f):
		return ".nan"
	case math.IsInf(f, 1):
		return ".inf"
	case math.IsInf(f, -1):
		return "-.inf"
	}
	s := strconv.FormatFloat(f, 'g', -1, 64)
	if !strings.ContainsAny(s, ".e") {
		s += ".0" // otherwise, it would be read back as an integer
	}
	return s
}

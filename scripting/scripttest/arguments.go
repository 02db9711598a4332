package scripttest

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/weir-run/weir/engine/config"
	"github.com/weir-run/weir/scripting"
)

// noPosition is where a block is that no file has.
var noPosition = config.Span{File: "arguments"}

var identifier = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// attributes writes the arguments of a component as the body of its block in
// the config language, so that they are checked as in a config. fields are
// what the block may have: {} may be a block, a map, or an empty list.
func attributes(args scripting.Value, fields []config.Field) (string, error) {
	switch a := args.(type) {
	case nil:
		return "", nil
	case *scripting.List:
		if len(a.Items) == 0 {
			return "", nil
		}
		return "", errors.New(`they must have names, as in { keep = { "api" } }`)
	case *scripting.Map:
		var b strings.Builder
		err := writeBody(&b, a, "", fields)
		return b.String(), err
	}
	return "", fmt.Errorf("they must be a table such as { keep = { \"api\" } }, not a %s", typeName(args))
}

func writeBody(b *strings.Builder, m *scripting.Map, within string, fields []config.Field) error {
	for _, k := range sortedKeys(m) {
		v, _ := m.Get(k)
		if !identifier.MatchString(k) {
			return fmt.Errorf("%q is no name of an argument", k)
		}
		if k == "forward_to" {
			return errors.New("forward_to is the test's own: what the component sends is what metrics returns")
		}
		var field config.Field
		if i := slices.IndexFunc(fields, func(f config.Field) bool { return f.Path == within+k }); i >= 0 {
			field = fields[i]
		}
		inner, isMap := v.(*scripting.Map)
		if isMap && inner.Len() == 0 && strings.HasPrefix(field.Type, "list") {
			v, isMap = &scripting.List{}, false
		}
		if blocks := blocksOf(v, field); blocks != nil {
			for _, inner := range blocks {
				b.WriteString(k + " {\n")
				if err := writeBody(b, inner, within+k+".", fields); err != nil {
					return err
				}
				b.WriteString("}\n")
			}
			continue
		}
		b.WriteString(k + " = ")
		if err := writeValue(b, v); err != nil {
			return fmt.Errorf("%s: %w", k, err)
		}
		b.WriteByte('\n')
	}
	return nil
}

// blocksOf returns the bodies of the blocks that v is: a map is one, a list of
// maps several. It is nil for what is no block.
func blocksOf(v scripting.Value, f config.Field) []*scripting.Map {
	list, _ := v.(*scripting.List)
	m, isMap := v.(*scripting.Map)
	switch {
	case !f.Block, list == nil && !isMap:
		return nil
	case isMap && f.Repeated && m.Len() == 0:
		return []*scripting.Map{}
	case isMap:
		return []*scripting.Map{m}
	}
	blocks := make([]*scripting.Map, 0, len(list.Items))
	for _, e := range list.Items {
		m, ok := e.(*scripting.Map)
		if !ok {
			return nil
		}
		blocks = append(blocks, m)
	}
	return blocks
}

func writeValue(b *strings.Builder, v scripting.Value) error {
	switch v := v.(type) {
	case string:
		b.WriteString(strconv.Quote(v))
	case bool:
		b.WriteString(strconv.FormatBool(v))
	case int64:
		b.WriteString(strconv.FormatInt(v, 10))
	case float64:
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return fmt.Errorf("%s is no value of the config", show(v))
		}
		text := strconv.FormatFloat(v, 'g', -1, 64)
		if !strings.ContainsAny(text, ".e") {
			text += ".0"
		}
		b.WriteString(text)
	case *scripting.List:
		b.WriteByte('[')
		for i, e := range v.Items {
			if i > 0 {
				b.WriteString(", ")
			}
			if err := writeValue(b, e); err != nil {
				return err
			}
		}
		b.WriteByte(']')
	case *scripting.Map:
		b.WriteByte('{')
		for i, k := range sortedKeys(v) {
			if i > 0 {
				b.WriteString(", ")
			}
			e, _ := v.Get(k)
			b.WriteString(strconv.Quote(k) + " = ")
			if err := writeValue(b, e); err != nil {
				return err
			}
		}
		b.WriteByte('}')
	default:
		return fmt.Errorf("a %s is no value of the config", typeName(v))
	}
	return nil
}

// unplaced leaves out positions in what writeBody wrote, which nobody can look
// at.
func unplaced(err error) error {
	ds, ok := errors.AsType[config.Diagnostics](err)
	if !ok {
		return err
	}
	var out []error
	for _, d := range ds {
		d.Span = config.Span{}
		out = append(out, d)
	}
	return errors.Join(out...)
}

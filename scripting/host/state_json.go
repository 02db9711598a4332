package host

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

// appendValueJSON appends a value as JSON: exact integers, maps in their order,
// and numbers that JSON cannot represent as strings.
func appendValueJSON(dst []byte, v scripting.Value) []byte {
	switch v := v.(type) {
	case bool:
		return strconv.AppendBool(dst, v)
	case int64:
		return strconv.AppendInt(dst, v, 10)
	case float64:
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return appendTextJSON(dst, strconv.FormatFloat(v, 'g', -1, 64))
		}
		if v == math.Trunc(v) && math.Abs(v) < 1e15 {
			return strconv.AppendFloat(dst, v, 'f', -1, 64)
		}
		return strconv.AppendFloat(dst, v, 'g', -1, 64)
	case string:
		return appendTextJSON(dst, v)
	case *scripting.List:
		dst = append(dst, '[')
		for i, e := range v.Items {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = appendValueJSON(dst, e)
		}
		return append(dst, ']')
	case *scripting.Map:
		dst = append(dst, '{')
		for i, k := range v.Keys() {
			if i > 0 {
				dst = append(dst, ',')
			}
			e, _ := v.Get(k)
			dst = appendValueJSON(append(appendTextJSON(dst, k), ':'), e)
		}
		return append(dst, '}')
	}
	return append(dst, "null"...)
}

func appendTextJSON(dst []byte, s string) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(s); err != nil {
		panic("BUG: a string is no JSON: " + err.Error())
	}
	return append(dst, bytes.TrimSuffix(b.Bytes(), []byte("\n"))...)
}

// readValueJSON parses one JSON value with nothing after it.
func readValueJSON(text string) (scripting.Value, error) {
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	v, err := decodeValueJSON(d)
	if err == nil {
		if _, end := d.Token(); !errors.Is(end, io.EOF) {
			err = errors.New("something follows the value")
		}
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read %q as JSON: %w; text is written in quotes", text, err)
	}
	return v, nil
}

func decodeValueJSON(d *json.Decoder) (scripting.Value, error) {
	t, err := d.Token()
	if err != nil {
		return nil, err
	}
	switch t := t.(type) {
	case nil:
		return scripting.Null, nil
	case json.Number:
		if n, err := t.Int64(); err == nil {
			return n, nil
		}
		return t.Float64()
	case json.Delim:
		if t == '[' {
			l := &scripting.List{}
			for d.More() {
				e, err := decodeValueJSON(d)
				if err != nil {
					return nil, err
				}
				l.Items = append(l.Items, e)
			}
			_, err = d.Token()
			return l, err
		}
		m := scripting.NewMap()
		for d.More() {
			k, err := d.Token()
			if err != nil {
				return nil, err
			}
			e, err := decodeValueJSON(d)
			if err != nil {
				return nil, err
			}
			m.Set(k.(string), e)
		}
		_, err = d.Token()
		return m, err
	}
	return t, nil
}

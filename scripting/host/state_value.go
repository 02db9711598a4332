package host

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/weir-run/weir/scripting"
	"github.com/weir-run/weir/scripting/state"
)

// Lists and maps in state have a binary form, so that they share nothing with a
// script, their size is known and they can be written to disk directly. A value
// is a kind, with the numbers of package state for scalars, followed by: the
// byte of a bool, the varint of an int, the 8 bytes of a float, the length and
// bytes of a string, the length and elements of a list, or the length of a map
// and its keys and values in order.
const (
	formList = 'l'
	formMap  = 'm'
)

// maxStateDepth is the maximum nesting of a value.
const maxStateDepth = 20

// stateValue converts a value to the form of package state.
func stateValue(v scripting.Value) (state.Value, error) {
	if v == scripting.Null {
		return state.Value{Kind: state.Null}, nil
	}
	switch v := v.(type) {
	case nil:
		return state.Value{}, nil
	case bool:
		return state.BoolValue(v), nil
	case int64:
		return state.IntValue(v), nil
	case float64:
		return state.FloatValue(v), nil
	case string:
		return state.StringValue(v), nil
	}
	b, err := appendStateForm(nil, v, 0)
	return state.Value{Kind: state.Composite, Data: string(b)}, err
}

func appendStateForm(dst []byte, v scripting.Value, depth int) ([]byte, error) {
	if depth > maxStateDepth {
		return nil, fmt.Errorf("cannot keep a value that nests deeper than %d", maxStateDepth)
	}
	text := func(s string) { dst = append(binary.AppendUvarint(dst, uint64(len(s))), s...) }
	if v == scripting.Null {
		return append(dst, byte(state.Null)), nil
	}
	var err error
	switch v := v.(type) {
	case nil:
		dst = append(dst, byte(state.Null))
	case bool:
		dst = append(dst, byte(state.Bool), byte(state.BoolValue(v).Bits))
	case int64:
		dst = binary.AppendVarint(append(dst, byte(state.Int)), v)
	case float64:
		dst = binary.LittleEndian.AppendUint64(append(dst, byte(state.Float)), math.Float64bits(v))
	case string:
		dst = append(dst, byte(state.String))
		text(v)
	case *scripting.List:
		dst = binary.AppendUvarint(append(dst, formList), uint64(len(v.Items)))
		for _, e := range v.Items {
			if dst, err = appendStateForm(dst, e, depth+1); err != nil {
				return nil, err
			}
		}
	case *scripting.Map:
		dst = binary.AppendUvarint(append(dst, formMap), uint64(v.Len()))
		for _, k := range v.Keys() {
			text(k)
			e, _ := v.Get(k)
			if dst, err = appendStateForm(dst, e, depth+1); err != nil {
				return nil, err
			}
		}
	default:
		return nil, fmt.Errorf("cannot keep a %s in state: it must be text, a number, a bool, or a list or map of these", scripting.TypeName(v))
	}
	return dst, nil
}

// StateValue converts a value from package state. An error means that it is
// damaged, or that another version stored it.
func StateValue(v state.Value) (scripting.Value, error) {
	switch v.Kind {
	case state.None:
		return nil, nil
	case state.Null:
		return scripting.Null, nil
	case state.Bool:
		return v.Bits != 0, nil
	case state.Int:
		return int64(v.Bits), nil
	case state.Float:
		return v.Float(), nil
	case state.String:
		return v.Data, nil
	}
	r := formReader{b: v.Data}
	out := r.value(0)
	if r.bad || r.b != "" {
		return nil, errors.New("cannot read a value in state: it is damaged")
	}
	return out, nil
}

// formReader reads the output of appendStateForm.
type formReader struct {
	b   string
	bad bool
}

func (r *formReader) takeBytes(n int) string {
	if r.bad || n < 0 || n > len(r.b) {
		r.bad = true
		return "\x00\x00\x00\x00\x00\x00\x00\x00"[:min(max(n, 0), 8)]
	}
	s := r.b[:n]
	r.b = r.b[n:]
	return s
}

func (r *formReader) uvarint() uint64 {
	v, n := binary.Uvarint([]byte(r.b[:min(len(r.b), binary.MaxVarintLen64)]))
	r.takeBytes(n)
	r.bad = r.bad || n <= 0
	return v
}

// length reads a length. Each element takes at least one byte.
func (r *formReader) length() int {
	n := r.uvarint()
	if n > uint64(len(r.b)) {
		r.bad = true
		return 0
	}
	return int(n)
}

func (r *formReader) value(depth int) scripting.Value {
	if depth > maxStateDepth {
		r.bad = true
	}
	if r.bad {
		return nil
	}
	switch kind := r.takeBytes(1)[0]; kind {
	case byte(state.Null):
		return scripting.Null
	case byte(state.Bool):
		return r.takeBytes(1)[0] != 0
	case byte(state.Int):
		v, n := binary.Varint([]byte(r.b[:min(len(r.b), binary.MaxVarintLen64)]))
		r.takeBytes(n)
		r.bad = r.bad || n <= 0
		return v
	case byte(state.Float):
		return math.Float64frombits(binary.LittleEndian.Uint64([]byte(r.takeBytes(8))))
	case byte(state.String):
		return r.takeBytes(r.length())
	case formList:
		l := &scripting.List{Items: make([]scripting.Value, r.length())}
		for i := range l.Items {
			l.Items[i] = r.value(depth + 1)
		}
		return l
	case formMap:
		m := scripting.NewMap()
		for range r.length() {
			key := r.takeBytes(r.length())
			m.Set(key, r.value(depth+1))
		}
		return m
	}
	r.bad = true
	return nil
}

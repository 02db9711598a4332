package state

import "math"

// ValueKind is the type of a Value.
type ValueKind uint8

// The kinds of values. Their numbers are on disk.
const (
	None ValueKind = iota // no value
	Null
	Bool
	Int
	Float
	String
	Composite // a list or a map, encoded by the caller
)

// Value is an immutable value. Values can be compared with ==.
type Value struct {
	Kind ValueKind
	Bits uint64 // of a bool, an int, a float
	Data string // of a string, a composite
}

// BoolValue returns a Value of b.
func BoolValue(b bool) Value {
	v := Value{Kind: Bool}
	if b {
		v.Bits = 1
	}
	return v
}

// IntValue returns a Value of n.
func IntValue(n int64) Value { return Value{Kind: Int, Bits: uint64(n)} }

// FloatValue returns a Value of f.
func FloatValue(f float64) Value { return Value{Kind: Float, Bits: math.Float64bits(f)} }

// StringValue returns a Value of s.
func StringValue(s string) Value { return Value{Kind: String, Data: s} }

// Float returns the value of a Float, or the nearest float of an Int. It
// returns 0 for other kinds.
func (v Value) Float() float64 {
	switch v.Kind {
	case Float:
		return math.Float64frombits(v.Bits)
	case Int:
		return float64(int64(v.Bits))
	}
	return 0
}

// entryOverhead is the approximate size of an entry in addition to its key and
// value: its position in a chunk, and in the index.
const entryOverhead = 128

// EntrySize returns the size of an entry that counts against MaxBytes.
func EntrySize(key string, v Value) int64 { return entryOverhead + int64(len(key)+len(v.Data)) }

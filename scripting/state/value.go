package state

import "math"

// ValueKind is what a Value is.
type ValueKind uint8

// The kinds of values. Their numbers are on disk.
const (
	None ValueKind = iota // no value
	Null
	Bool
	Int
	Float
	String
	Composite // a list or a map, in the form that who made it gave it
)

// Value is an immutable value. Two are the same value if they are ==.
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

// Float returns the number that a Float is, and that an Int is about; 0 of
// others.
func (v Value) Float() float64 {
	switch v.Kind {
	case Float:
		return math.Float64frombits(v.Bits)
	case Int:
		return float64(int64(v.Bits))
	}
	return 0
}

// entryOverhead is about what an entry takes beside its key and value: its
// place in a chunk, and in the index.
const entryOverhead = 128

// EntrySize is what an entry counts against MaxBytes.
func EntrySize(key string, v Value) int64 { return entryOverhead + int64(len(key)+len(v.Data)) }

package scripting

import (
	"strings"
	"unsafe"
)

// longText is how long a text is whose parts are copied, in bytes.
const longText = 256

// Part returns a part of a text, as a copy if the text is long and the part short:
// a part that a script keeps would keep all of the text in memory, and count for
// itself alone.
func Part(part, text string) string {
	if len(text) <= longText || len(part) > len(text)/2 {
		return part
	}
	return strings.Clone(part)
}

// ownParts copies the parts of a text that are in what a function returned, as
// Part does. It writes to lists and maps.
func ownParts(v Value, text string) Value {
	switch v := v.(type) {
	case string:
		if within(v, text) {
			return Part(v, text)
		}
	case *List:
		for i, x := range v.Items {
			v.Items[i] = ownParts(x, text)
		}
	case *Map:
		for i, k := range v.keys {
			x := ownParts(v.values[k], text)
			if within(k, text) {
				delete(v.values, k) // an assignment would leave the key as it is
				k = Part(k, text)
				v.keys[i] = k
			}
			v.values[k] = x
		}
	}
	return v
}

// within reports whether a text lies within the memory of another one.
func within(part, text string) bool {
	from, at := uintptr(unsafe.Pointer(unsafe.StringData(text))), uintptr(unsafe.Pointer(unsafe.StringData(part)))
	return len(part) > 0 && at >= from && at < from+uintptr(len(text))
}

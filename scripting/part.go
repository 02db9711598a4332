package scripting

import (
	"strings"
	"unsafe"
)

// longText is the minimum length of a text whose parts are copied, in bytes.
const longText = 256

// Part returns a substring of a text. If the text is long and the substring is
// short, it returns a copy: otherwise, a script that keeps the substring would
// keep the whole text in memory, although only the substring is counted.
func Part(part, text string) string {
	if len(text) <= longText || len(part) > len(text)/2 {
		return part
	}
	return strings.Clone(part)
}

// Parts does the same as Part for the scripts of one VM. The zero value is
// ready to use. It is not safe for concurrent use.
//
// A substring that is longer than half of its text shares the memory of the
// text. Parts keeps the last of these texts, so that a substring of a substring
// is compared with the whole text.
type Parts struct {
	whole [4]string
	next  int  // index in whole of the text that is replaced next
	any   bool // whole has a text
}

// Of returns the result of Part if part shares the memory of text. Otherwise,
// it returns part.
func (p *Parts) Of(part, text string) string {
	if !p.Long(text) {
		return part
	}
	whole := p.wholeOf(text)
	if !sharesMemory(part, whole) {
		return part
	}
	if 2*len(part) > len(whole) && len(part) < len(text) {
		p.remember(whole)
	}
	return Part(part, whole)
}

// Long reports whether Of copies some substrings of text.
func (p *Parts) Long(text string) bool {
	return len(text) > longText || p.any && len(p.wholeOf(text)) > longText
}

// Forget releases the texts. It must be called when a call of a script ends,
// because Parts keeps them in memory.
func (p *Parts) Forget() { *p = Parts{} }

// wholeOf returns the text that shares memory with text.
func (p *Parts) wholeOf(text string) string {
	if !p.any {
		return text
	}
	for _, w := range p.whole {
		if len(w) > len(text) && sharesMemory(text, w) {
			return w
		}
	}
	return text
}

func (p *Parts) remember(text string) {
	for _, w := range p.whole {
		if unsafe.StringData(w) == unsafe.StringData(text) && len(w) == len(text) {
			return
		}
	}
	p.any = true
	p.whole[p.next] = text
	p.next = (p.next + 1) % len(p.whole)
}

// ownParts copies the substrings of text in the result of a function in the
// same way as Parts. It modifies lists and maps.
func ownParts(v Value, text string) Value {
	switch v := v.(type) {
	case string:
		if sharesMemory(v, text) {
			return Part(v, text)
		}
	case *List:
		for i, x := range v.Items {
			v.Items[i] = ownParts(x, text)
		}
	case *Map:
		for i, k := range v.keys {
			x := ownParts(v.values[k], text)
			if sharesMemory(k, text) {
				delete(v.values, k) // an assignment would keep the old key
				k = Part(k, text)
				v.keys[i] = k
			}
			v.values[k] = x
		}
	}
	return v
}

// sharesMemory reports whether a text lies within the memory of another one.
func sharesMemory(part, text string) bool {
	from, at := uintptr(unsafe.Pointer(unsafe.StringData(text))), uintptr(unsafe.Pointer(unsafe.StringData(part)))
	return len(part) > 0 && at >= from && at < from+uintptr(len(text))
}

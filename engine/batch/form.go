package batch

import (
	"encoding/binary"
	"unsafe"
)

// form points to the first byte of the encoded labels of a series:
//
//	len(cuts) cuts len(own) own
//
// with varint lengths. own is a wire. It contains all labels, or the labels
// that are not in the series' Tags. cuts tell how to merge both in order. They
// are pairs of varints: the number of bytes of own that come next, and the
// number of labels of the Tags that follow them. The rest of own comes last. A
// form does not contain the values of the Tags, so series of many targets can
// share one. It is immutable.
//
// It is a pointer and not a string to save memory, because there are millions
// of them.
type form byte

// formOf returns the form whose bytes are b.
func formOf(b []byte) *form { return (*form)(unsafe.SliceData(b)) }

// noLabels is the form of all series without labels.
var noLabels = formOf([]byte{0, 0})

// parts returns the two parts of a form: cuts and own.
func (f *form) parts() (cuts, own string) {
	p := unsafe.Pointer(f)
	n, w := int(*f), 1
	if n >= 0x80 {
		n, w = varintAt(p)
	}
	if n > 0 {
		cuts = unsafe.String((*byte)(unsafe.Add(p, w)), n)
	}
	p = unsafe.Add(p, w+n)
	if n, w = int(*(*byte)(p)), 1; n >= 0x80 {
		n, w = varintAt(p)
	}
	if n > 0 { // otherwise p+w is behind the end of the form
		own = unsafe.String((*byte)(unsafe.Add(p, w)), n)
	}
	return cuts, own
}

func varintAt(p unsafe.Pointer) (v, n int) {
	for shift := 0; ; shift += 7 {
		c := *(*byte)(unsafe.Add(p, n))
		v |= int(c&0x7f) << shift
		n++
		if c < 0x80 {
			return v, n
		}
	}
}

// formSize returns the length of a form.
func formSize(cuts, own int) int {
	return uvarintSize(cuts) + cuts + uvarintSize(own) + own
}

// appendFormHead appends a form up to its own labels, which are own bytes long.
func appendFormHead(dst, cuts []byte, own int) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(cuts)))
	dst = append(dst, cuts...)
	return binary.AppendUvarint(dst, uint64(own))
}

// cutForm splits the first form off s.
func cutForm(s string) (cuts, own, rest string) {
	n, w := uvarint(s)
	cuts, s = s[w:w+n], s[w+n:]
	n, w = uvarint(s)
	return cuts, s[w : w+n], s[w+n:]
}

// Tags are the labels that many series share, such as the labels of a target.
// They are immutable.
type Tags struct {
	wire string
	ends []uint32 // the end of each label
}

// NewTags returns Tags with the labels of a wire, which it copies.
func NewTags(wire []byte) *Tags {
	t := &Tags{wire: string(wire)}
	for w := t.wire; len(w) > 0; {
		_, _, w = cutLabel(w)
		t.ends = append(t.ends, uint32(len(t.wire)-len(w)))
	}
	return t
}

// Is reports whether the tags are the labels of a wire.
func (t *Tags) Is(wire []byte) bool { return t.wire == string(wire) }

// split appends the labels of wire that are not in t to own, and the positions
// of the labels of t to cuts. ok is false if wire does not contain all labels
// of t.
func (t *Tags) split(own, cuts, wire []byte) (_, _ []byte, ok bool) {
	i, at, since := 0, 0, len(own)
	for len(wire) > 0 {
		first := i
		for i < len(t.ends) {
			tag := t.wire[at:t.ends[i]]
			if len(wire) < len(tag) || string(wire[:len(tag)]) != tag {
				break
			}
			wire, at = wire[len(tag):], int(t.ends[i])
			i++
		}
		if i > first {
			cuts = binary.AppendUvarint(cuts, uint64(len(own)-since))
			cuts = binary.AppendUvarint(cuts, uint64(i-first))
			since = len(own)
			continue
		}
		n, w := binary.Uvarint(wire[1:])
		end := 1 + w + int(n)
		own, wire = append(own, wire[:end]...), wire[end:]
	}
	return own, cuts, i == len(t.ends)
}

// pieces iterates over the wire of a series, which alternates between its own
// labels and its Tags.
type pieces struct {
	cuts, own string
	tags      *Tags
	i, at     int // the number of tag labels returned so far, and their bytes
}

func (s *Series) pieces() pieces {
	cuts, own := s.form.parts()
	return pieces{cuts: cuts, own: own, tags: s.tags}
}

// size returns the total number of bytes. Call it before next.
func (p *pieces) size() int {
	if p.tags == nil {
		return len(p.own)
	}
	return len(p.own) + len(p.tags.wire)
}

// appendTo appends the remaining pieces.
func (p *pieces) appendTo(dst []byte) []byte {
	at, own := 0, p.own
	for cuts := p.cuts; len(cuts) > 0; {
		n, k, w := int(cuts[0]), 0, 1
		if n >= 0x80 {
			n, w = uvarint(cuts)
		}
		cuts = cuts[w:]
		if k, w = int(cuts[0]), 1; k >= 0x80 {
			k, w = uvarint(cuts)
		}
		cuts = cuts[w:]
		p.i += k
		end := int(p.tags.ends[p.i-1])
		dst = append(append(dst, own[:n]...), p.tags.wire[at:end]...)
		own, at = own[n:], end
	}
	return append(dst, own...)
}

// next returns the series' next own labels and the labels of its Tags that
// follow them. Both are empty at the end.
func (p *pieces) next() (own, tags string) {
	if len(p.cuts) == 0 {
		own, p.own = p.own, ""
		return own, ""
	}
	n, w := uvarint(p.cuts)
	k, v := uvarint(p.cuts[w:])
	p.cuts = p.cuts[w+v:]
	p.i += k
	from, to := p.at, int(p.tags.ends[p.i-1])
	own, p.own, p.at = p.own[:n], p.own[n:], to
	return own, p.tags.wire[from:to]
}

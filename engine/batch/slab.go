package batch

import "unsafe"

// Slab makes handles that begin together, in memory that several of them share:
// allocations of their own would cost each a sixth more, and the collector its
// work. That memory lives as long as any of them, so there are few to one:
// many only where more is expected.
//
// What many begin with is mostly what those of another slab began with: targets
// of a fleet differ in their Tags. Then both have the same forms.
//
// The zero value is ready. It is not safe for concurrent use; the handles are.
type Slab struct {
	series   []Series // to be made handles of
	forms    []byte   // its free capacity is for forms
	expected int

	// While many are expected:
	sharing bool
	key     uint64 // of the first in forms
	others  string // forms of another slab that may come next
	shared  int    // how many were another slab's
}

const (
	slabSeries = 8    // handles of a slab when no more are expected
	slabMost   = 128  // and when more are
	slabBytes  = 8192 // most for their labels
	slabLeast  = 64   // least, for it to be an object of its own
)

// Expect says that about n handles will be made now, and when n is 0, that all
// of them were.
func (p *Slab) Expect(n int) {
	p.publish()
	if n > 0 {
		p.forms = nil
	}
	p.expected, p.sharing = n, n > 0
	p.others, p.shared = "", 0
}

// Series returns a new handle for the labels of a wire, of which hash is the
// Hash. wire is copied, but for the labels of tags if it has them all; tags
// may be nil.
func (p *Slab) Series(hash uint64, wire []byte, tags *Tags) *Series {
	if len(p.series) == 0 {
		p.series = make([]Series, p.together())
	}
	p.expected--
	s := &p.series[0]
	p.series = p.series[1:]
	s.hash, s.id = hash, ids.acquireID()
	if tags != nil && len(tags.ends) > 0 {
		var ownRoom [1024]byte
		var cutsRoom [64]byte
		if own, cuts, ok := tags.split(ownRoom[:0], cutsRoom[:0], wire); ok {
			s.form, s.tags = p.form(cuts, own), tags
			return s
		}
	}
	if s.form = noLabels; len(wire) > 0 {
		s.form = p.form(nil, wire)
	}
	return s
}

// together is how many handles are in one memory now.
func (p *Slab) together() int { return max(slabSeries, min(p.expected, slabMost)) }

// form returns a form of those parts.
func (p *Slab) form(cuts, own []byte) *form {
	var key uint64
	if p.sharing {
		key = Hash(own) + Hash(cuts)
		if f := p.find(key, cuts, own); f != nil {
			p.shared++
			return f
		}
	}
	n := formSize(len(cuts), len(own))
	if cap(p.forms)-len(p.forms) < n {
		p.publish()
		many := p.together()
		if p.shared > 0 { // little is not
			many = slabSeries
		}
		p.forms, p.key = make([]byte, 0, max(n, slabLeast, min(n*many, slabBytes))), key
	}
	at := len(p.forms)
	p.forms = append(appendFormHead(p.forms, cuts, len(own)), own...)
	return formOf(p.forms[at:])
}

// lookAhead is how many forms another slab may have between two of this one.
const lookAhead = 16

// find returns another slab's form of those parts, nil for none that is near.
func (p *Slab) find(key uint64, cuts, own []byte) *form {
	rest := p.others
	for i := 0; i < lookAhead && rest != ""; i++ {
		if f := p.findForm(rest, cuts, own); f != nil {
			return f
		}
		_, _, rest = cutForm(rest)
	}
	return p.findForm(published.find(key), cuts, own)
}

// findForm returns the first one of forms if it has those parts.
func (p *Slab) findForm(forms string, cuts, own []byte) *form {
	if forms == "" {
		return nil
	}
	c, o, rest := cutForm(forms)
	if o != string(own) || c != string(cuts) {
		return nil
	}
	p.others = rest
	return (*form)(unsafe.StringData(forms))
}

// publish lets other slabs have the forms that were made.
func (p *Slab) publish() {
	if p.sharing && len(p.forms) > 0 {
		published.add(p.key, p.forms)
	}
}

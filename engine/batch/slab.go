package batch

import "unsafe"

// Slab creates handles that are created together, in shared memory. Separate
// allocations would take about a sixth more memory per handle and cause more
// work for the garbage collector. A block lives as long as any handle in it, so
// blocks are small, except when many handles are expected.
//
// Handles created together mostly have the same labels as the handles of
// another slab: the targets of a fleet differ only in their Tags. Both slabs
// then share their forms.
//
// The zero value is ready to use. A Slab is not safe for concurrent use; its
// handles are.
type Slab struct {
	series   []Series // unused handles
	forms    []byte   // its free capacity is for new forms
	expected int

	// Used while many handles are expected:
	sharing bool
	key     uint64 // of the first form in forms
	others  string // the next forms of another slab
	shared  int    // the number of forms shared with another slab
}

const (
	slabSeries = 8    // handles per block if no more are expected
	slabMost   = 128  // maximum handles per block if more are expected
	slabBytes  = 8192 // maximum bytes per block for their labels
	slabLeast  = 64   // minimum bytes for a separate object
)

// Expect announces that about n handles will be created now. If n is 0, all of
// them have been created.
func (p *Slab) Expect(n int) {
	p.publish()
	if n > 0 {
		p.forms = nil
	}
	p.expected, p.sharing = n, n > 0
	p.others, p.shared = "", 0
}

// Series returns a new handle for the labels of wire. hash must be Hash(wire).
// wire is copied, except for the labels of tags if wire contains all of them.
// tags may be nil.
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

// together returns the number of handles in one block now.
func (p *Slab) together() int { return max(slabSeries, min(p.expected, slabMost)) }

// form returns a form with the given parts.
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
		if p.shared > 0 { // a small remainder is not
			many = slabSeries
		}
		p.forms, p.key = make([]byte, 0, max(n, slabLeast, min(n*many, slabBytes))), key
	}
	at := len(p.forms)
	p.forms = append(appendFormHead(p.forms, cuts, len(own)), own...)
	return formOf(p.forms[at:])
}

// lookAhead is the maximum number of forms in another slab between two
// consecutive forms of this slab.
const lookAhead = 16

// find returns another slab's form with the given parts, or nil if there is
// none within lookAhead.
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

// findForm returns the first form in forms if it has the given parts.
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

// publish makes the new forms available to other slabs.
func (p *Slab) publish() {
	if p.sharing && len(p.forms) > 0 {
		published.add(p.key, p.forms)
	}
}

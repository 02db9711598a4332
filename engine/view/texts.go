package view

import (
	"hash/maphash"
	"strings"
)

// Texts hands out the strings that scripts get, by pointers to memory that is
// never written to again, without an allocation for each. It is for one
// goroutine; the zero value is ready for use.
type Texts struct {
	seed  maphash.Seed
	known *[knownTexts]knownText // nil until the first
	block *strings.Builder       // of copies
	// Those of copies are by themselves: a script that keeps one keeps its block.
	copies, others []string
}

// knownText is a string that came before: the second time it is kept, so that
// those that never come again, such as ids, cost no more than a look.
type knownText struct {
	hash uint64
	text *string // nil: it came once
}

const (
	knownTexts = 256
	headBlock  = 64   // strings
	textBlock  = 2048 // bytes
)

// Short returns a copy of s, which may be a part of something large that is not
// to be kept alive by it. It is for short strings, many of which come again.
func (t *Texts) Short(s string) *string {
	if t.known == nil {
		t.seed, t.known = maphash.MakeSeed(), new([knownTexts]knownText)
	}
	h := maphash.String(t.seed, s)
	k := &t.known[h%knownTexts]
	switch {
	case k.hash != h:
		*k = knownText{hash: h}
	case k.text == nil:
		c := strings.Clone(s)
		k.text = &c
		return k.text
	case *k.text == s:
		return k.text
	}
	return put(&t.copies, t.copied(s))
}

// copied returns a copy of s in a block of such.
func (t *Texts) copied(s string) string {
	if len(s) > textBlock/4 {
		return strings.Clone(s)
	}
	if t.block == nil || t.block.Cap()-t.block.Len() < len(s) {
		t.block = new(strings.Builder)
		t.block.Grow(textBlock)
	}
	at := t.block.Len()
	t.block.WriteString(s) // within its capacity: what it was is not moved
	return t.block.String()[at:]
}

// Long returns s itself.
func (t *Texts) Long(s string) *string { return put(&t.others, s) }

// put returns where s is in a block, which goes on where it is not full.
func put(block *[]string, s string) *string {
	if len(*block) == cap(*block) {
		*block = make([]string, 0, headBlock)
	}
	*block = append(*block, s)
	return &(*block)[len(*block)-1]
}

// Forget lets go of what Long was given.
func (t *Texts) Forget() { t.others = nil }

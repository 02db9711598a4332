package view

import (
	"hash/maphash"
	"strings"
)

// Texts returns pointers to immutable strings for scripts without an allocation
// for each string. It is not safe for concurrent use. The zero value is ready
// to use.
type Texts struct {
	seed  maphash.Seed
	known *[knownTexts]knownText // nil until the first call
	block *strings.Builder       // memory for copies
	// Copies have their own blocks, because a script that keeps a string keeps its
	// block alive.
	copies, others []string
}

// knownText is a slot for a repeated string. A string is stored when it comes
// for the second time, so that strings that never repeat, such as IDs, cost
// only a look-up.
type knownText struct {
	hash uint64
	text *string // nil: it has come only once
}

const (
	knownTexts = 256
	headBlock  = 64   // strings
	textBlock  = 2048 // bytes
)

// Short returns a copy of s, so that s may be a substring of a large string
// without keeping it alive. Use it for short strings that often repeat.
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

// copied returns a copy of s in the block for copies.
func (t *Texts) copied(s string) string {
	if len(s) > textBlock/4 {
		return strings.Clone(s)
	}
	if t.block == nil || t.block.Cap()-t.block.Len() < len(s) {
		t.block = new(strings.Builder)
		t.block.Grow(textBlock)
	}
	at := t.block.Len()
	t.block.WriteString(s) // within its capacity, so earlier strings do not move
	return t.block.String()[at:]
}

// Long returns s itself.
func (t *Texts) Long(s string) *string { return put(&t.others, s) }

// put stores s in a block and returns its address. It starts a new block if the
// block is full.
func put(block *[]string, s string) *string {
	if len(*block) == cap(*block) {
		*block = make([]string, 0, headBlock)
	}
	*block = append(*block, s)
	return &(*block)[len(*block)-1]
}

// Forget releases the strings that were passed to Long.
func (t *Texts) Forget() { t.others = nil }

package scrape

import (
	"crypto/rand"
	"encoding/binary"
	"hash/maphash"
	"math/bits"
)

// fingerprint represents a text whose length is known. Two texts of the same
// length have the same fingerprint with a probability of 2^-64, whatever a target
// writes, as long as it does not know the keys.
//
// It is NH of UMAC with 64-bit words, as in VMAC: a key is added to each word,
// the words are multiplied in pairs, and the products are summed modulo 2^128.
// The last words of a text may overlap the preceding ones, which keeps different
// texts of the same length different. Long texts, which are rare, get two hashes
// of the standard library.
//
// Source: Black, Halevi, Krawczyk, Krovetz, Rogaway: UMAC, section 4.2;
// https://www.rfc-editor.org/rfc/rfc4418
type fingerprint struct{ hi, lo uint64 }

// nhWords is the number of words with a key, except the last two of a text.
const nhWords = 64

// fingerprintKeys are the random keys of the process. They are never written
// again.
var (
	nhKeys   = newNHKeys()
	longKeys = [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()}
)

func newNHKeys() (keys [nhWords + 2]uint64) {
	var b [8 * len(keys)]byte
	rand.Read(b[:]) // never fails
	for i := range keys {
		keys[i] = binary.LittleEndian.Uint64(b[8*i:])
	}
	return keys
}

func fingerprintOf(b []byte) fingerprint {
	n := len(b)
	if n < 16 {
		return fingerprintOfFew(b)
	}
	if n > 8*nhWords+16 {
		return fingerprint{maphash.Bytes(longKeys[0], b), maphash.Bytes(longKeys[1], b)}
	}
	last := b[n-16:]
	hi, lo := bits.Mul64(binary.LittleEndian.Uint64(last)+nhKeys[nhWords], binary.LittleEndian.Uint64(last[8:])+nhKeys[nhWords+1])
	var carry uint64
	i := uint(0)
	for ; len(b) > 32; b = b[32:] {
		h, l := bits.Mul64(binary.LittleEndian.Uint64(b)+nhKeys[i%nhWords], binary.LittleEndian.Uint64(b[8:])+nhKeys[(i+1)%nhWords])
		lo, carry = bits.Add64(lo, l, 0)
		hi, _ = bits.Add64(hi, h, carry)
		h, l = bits.Mul64(binary.LittleEndian.Uint64(b[16:])+nhKeys[(i+2)%nhWords], binary.LittleEndian.Uint64(b[24:])+nhKeys[(i+3)%nhWords])
		lo, carry = bits.Add64(lo, l, 0)
		hi, _ = bits.Add64(hi, h, carry)
		i += 4
	}
	if len(b) > 16 {
		h, l := bits.Mul64(binary.LittleEndian.Uint64(b)+nhKeys[i%nhWords], binary.LittleEndian.Uint64(b[8:])+nhKeys[(i+1)%nhWords])
		lo, carry = bits.Add64(lo, l, 0)
		hi, _ = bits.Add64(hi, h, carry)
	}
	return fingerprint{hi, lo}
}

// fingerprintOfFew is for texts shorter than two words.
func fingerprintOfFew(b []byte) fingerprint {
	n := len(b)
	var x, y uint64
	switch {
	case n >= 8:
		x, y = binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint64(b[n-8:])
	case n >= 4:
		x, y = uint64(binary.LittleEndian.Uint32(b)), uint64(binary.LittleEndian.Uint32(b[n-4:]))
	case n > 0:
		x = uint64(b[0]) | uint64(b[n/2])<<8 | uint64(b[n-1])<<16
	}
	hi, lo := bits.Mul64(x+nhKeys[nhWords], y+nhKeys[nhWords+1])
	return fingerprint{hi, lo}
}

// slot returns the hash of the fingerprint for a table.
func (f fingerprint) slot() uint64 { return f.hi ^ f.lo }

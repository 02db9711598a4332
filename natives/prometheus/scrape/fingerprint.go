package scrape

import (
	"crypto/rand"
	"encoding/binary"
	"hash/maphash"
	"math/bits"
)

// fingerprint stands in for a text of known length: two texts of one length
// have the same one with a probability of 2^-64, whatever a target writes, as
// long as it does not know the keys.
//
// It is NH of UMAC with words of 64 bits, as VMAC has it: the sum of the
// products of two words each, after a key was added to each word, modulo 2^128.
// A text's last words may overlap those before, which leaves texts of one length
// as different as they were. Long ones, of which there are few, get two hashes of
// the standard library.
//
// Source: Black, Halevi, Krawczyk, Krovetz, Rogaway: UMAC, section 4.2;
// https://www.rfc-editor.org/rfc/rfc4418
type fingerprint struct{ hi, lo uint64 }

// nhWords is how many words of a text have keys, but for the last two.
const nhWords = 64

// fingerprintKeys are the process's own. They are never written again.
var (
	nhKeys   = newNHKeys()
	longKeys = [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()}
)

func newNHKeys() (keys [nhWords + 2]uint64) {
	var b [8 * len(keys)]byte
	rand.Read(b[:]) // which never fails
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

// fingerprintOfFew is for texts that are shorter than two words.
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

// slot returns a hash of it for a table.
func (f fingerprint) slot() uint64 { return f.hi ^ f.lo }

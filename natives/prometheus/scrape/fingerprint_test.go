package scrape

import (
	"bytes"
	"encoding/binary"
	"math/big"
	"slices"
	"testing"
)

// TestFingerprint: the fingerprint is NH over the words of a text, and every bit
// and the order of words matter.
func TestFingerprint(t *testing.T) {
	for _, n := range []int{0, 1, 2, 3, 4, 7, 8, 9, 15, 16, 17, 31, 32, 33, 47, 48, 49, 64, 65, 80, 255, 8*nhWords + 15, 8*nhWords + 16, 8*nhWords + 17, 700} {
		seen := map[fingerprint]string{}
		text := make([]byte, n)
		for i := range text {
			text[i] = byte(i * 7)
		}
		check := func(what string, b []byte) {
			t.Helper()
			f := fingerprintOf(b)
			if f != fingerprintOf(bytes.Clone(b)) {
				t.Fatalf("%d bytes, %s: another one in another place", n, what)
			}
			if was, ok := seen[f]; ok && was != string(b) {
				t.Errorf("%d bytes, %s: that of another text", n, what)
			}
			seen[f] = string(b)
			if n >= 16 && n <= 8*nhWords+16 {
				if want := slowNH(b); f != want {
					t.Errorf("%d bytes, %s: %x, want %x", n, what, f, want)
				}
			}
		}
		check("as it is", text)
		for bit := range 8 * n {
			b := bytes.Clone(text)
			b[bit/8] ^= 1 << (bit % 8)
			check("a bit changed", b)
		}
		if n >= 48 {
			b := bytes.Clone(text)
			copy(b, text[16:32])
			copy(b[16:], text[:16])
			check("two words changed places", b)
		}
	}
}

// slowNH is the definition by the authors of UMAC.
func slowNH(b []byte) fingerprint {
	n := len(b)
	var words, keys []uint64
	for at := 0; at+16 < n; at += 16 {
		words = append(words, binary.LittleEndian.Uint64(b[at:]), binary.LittleEndian.Uint64(b[at+8:]))
	}
	keys = append(slices.Clone(nhKeys[:len(words)]), nhKeys[nhWords:]...)
	words = append(words, binary.LittleEndian.Uint64(b[n-16:]), binary.LittleEndian.Uint64(b[n-8:]))
	sum := new(big.Int)
	for i := 0; i < len(words); i += 2 {
		x, y := new(big.Int).SetUint64(words[i]+keys[i]), new(big.Int).SetUint64(words[i+1]+keys[i+1])
		sum.Add(sum, x.Mul(x, y))
	}
	var out [24]byte
	sum.FillBytes(out[:])
	return fingerprint{binary.BigEndian.Uint64(out[8:]), binary.BigEndian.Uint64(out[16:])}
}

// TestTable: indexes are found by hash after other indexes were added, also if
// hashes are equal, until the table is cleared.
func TestTable(t *testing.T) {
	var tab table
	if i, _ := tab.first(7); i >= 0 {
		t.Error("an empty one has something")
	}
	for _, n := range []int{0, 1, 6, 7, 100, 3} {
		tab.reset(n)
		if tab.room() < n {
			t.Fatalf("room for %d of %d", tab.room(), n)
		}
		for i := range tab.room() {
			tab.add(uint64(i/3), i) // three of each hash
		}
		for i := range tab.room() {
			got, slot := tab.first(uint64(i / 3))
			for got != i && got >= 0 {
				got, slot = tab.next(slot)
			}
			if got != i {
				t.Errorf("of %d, %d is not found", tab.room(), i)
			}
		}
		if i, slot := tab.first(1 << 40); i >= 0 {
			for i >= 0 { // the search ends
				i, slot = tab.next(slot)
			}
		}
		tab.drop()
		if i, _ := tab.first(0); i >= 0 {
			t.Error("a dropped one has something")
		}
	}
}

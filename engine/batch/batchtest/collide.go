// Package batchtest contains hostile labels and random batches for tests. Use it in tests only.
package batchtest

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/bits"
	"math/rand/v2"
	"strings"

	"github.com/cespare/xxhash/v2"

	"github.com/weir-run/weir/engine/batch"
)

// The primes of XXH64, and the inverse of the second.
//
// Source: https://github.com/Cyan4973/xxHash/blob/dev/doc/xxhash_spec.md
const (
	prime1  uint64 = 11400714785074694791
	prime2  uint64 = 14029467366897019727
	inverse uint64 = 839798700976720815
)

// Colliding returns n different sets of sorted labels whose encodings (see
// batch.AppendLabels) have the same XXH64 with seed 0. A table that uses this
// hash stores them all in one slot. Anybody can compute such labels: XXH64
// feeds eight bytes at a time into each of its four states, and every step can
// be inverted, so the next eight bytes can undo the difference made by eight
// other bytes.
func Colliding(n int) [][]batch.Label {
	set := func(value string) []batch.Label {
		return []batch.Label{{Name: batch.NameLabel, Value: "hostile"}, {Name: "v", Value: value}}
	}
	// The value ends two stripes of 32 bytes. Their position depends on its
	// length.
	value := []byte(strings.Repeat("a", 64))
	var wire []byte
	at := 0
	for ; ; value = append(value, 'a') {
		wire = batch.AppendLabels(nil, set(string(value)))
		if at = len(wire) - 64; len(wire)%32 == 0 {
			break
		}
	}
	state := prime1
	state += prime2
	for i := 0; i < at; i += 32 {
		state = bits.RotateLeft64(state+binary.LittleEndian.Uint64(wire[i:])*prime2, 31) * prime1
	}
	after := func(x uint64) uint64 { return bits.RotateLeft64(state+x*prime2, 31) * prime1 }
	const ascii = 0x7f7f7f7f7f7f7f7f
	random := rand.New(rand.NewPCG(1, 2))
	first, second := value[len(value)-64:], value[len(value)-32:]
	want := after(binary.LittleEndian.Uint64(first)) + binary.LittleEndian.Uint64(second)*prime2
	sets := [][]batch.Label{set(string(value))}
	for len(sets) < n {
		x := random.Uint64() & ascii
		y := (want - after(x)) * inverse
		if y&^ascii != 0 {
			continue // not UTF-8
		}
		binary.LittleEndian.PutUint64(first, x)
		binary.LittleEndian.PutUint64(second, y)
		if bytes.IndexByte(value, '\n') >= 0 || bytes.IndexByte(value, '"') >= 0 || bytes.IndexByte(value, '\\') >= 0 {
			continue // so that every text format contains them unchanged
		}
		sets = append(sets, set(string(value)))
	}
	hash := xxhash.Sum64(wire)
	for _, s := range sets {
		if xxhash.Sum64(batch.AppendLabels(nil, s)) != hash {
			panic(fmt.Sprintf("BUG: %q does not collide", s))
		}
	}
	return sets
}

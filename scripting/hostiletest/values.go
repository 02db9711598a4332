package hostiletest

// MaxValueCase is how long a case of FuzzValues may be: what it calls and with
// what is in fewer bytes.
const MaxValueCase = 64

// ValueSeeds are cases of FuzzValues that call, in each of its places, some
// functions with each of the values.
func ValueSeeds() [][]byte {
	var out [][]byte
	for place := range byte(4) {
		for i := range 60 {
			fn, val := i*37, i*5+int(place)
			// The place, the table or the language's functions, which one, one or two
			// values with the second one wrapped.
			out = append(out, []byte{place, byte(i % 4), byte(fn), byte(fn >> 8), 2, byte(val), 0, 0, byte(val + 3), 0, 1, byte(i)})
		}
	}
	return out
}

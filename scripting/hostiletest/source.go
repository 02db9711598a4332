package hostiletest

import (
	"encoding/json"
	"strings"
)

// Source is a text that nests: Before, then Unit many times, then Middle, then
// Close as many times, then After.
type Source struct {
	Before, Unit, Middle, Close, After string
	N                                  int
}

// Text is the text, of at most limit bytes.
func (s Source) Text(limit int) string {
	n := max(0, s.N)
	if size := len(s.Unit) + len(s.Close); size > 0 {
		n = max(0, min(n, (limit-len(s.Before)-len(s.Middle)-len(s.After))/size))
	}
	text := s.Before + strings.Repeat(s.Unit, n) + s.Middle + strings.Repeat(s.Close, n) + s.After
	return text[:min(len(text), limit)]
}

// Encode is the case of a Child.
func (s Source) Encode() []byte {
	data, err := json.Marshal(s)
	if err != nil {
		panic(err)
	}
	return data
}

// DecodeSource is the opposite of Encode.
func DecodeSource(data []byte) (s Source, err error) {
	err = json.Unmarshal(data, &s)
	return s, err
}

// Sources are all of the units behind all of the beginnings, as often as fits
// into any file.
func Sources(befores []string, units [][3]string) []Source {
	var out []Source
	for _, b := range befores {
		for _, u := range units {
			out = append(out, Source{Before: b, Unit: u[0], Middle: u[1], Close: u[2], N: 1 << 20})
		}
	}
	return out
}

package secretfilter

import (
	"encoding/binary"
	"slices"
	"strings"
)

// scanner finds which of many words occur in a line, ignoring case. It checks
// every second byte: if a word begins there or one byte before, the three bytes
// at that position, folded and hashed, have one of a few values.
type scanner struct {
	bits  [windows / 64]uint64
	at    [windows]uint16 // index in lists, 0 for none
	lists [][]*word
	tiny  []*word // words of one byte
	all   []*word
}

// word is a word and the rules with this keyword.
type word struct {
	text  string // lower case
	rules []int
}

const windows = 1 << 16

// fold removes the difference between cases, and other differences.
const fold = 0x202020

func window(three uint32) uint32 {
	return ((three&0xffffff | fold) * 0x9e3779b1) >> 16
}

func newScanner(words map[string][]int) *scanner {
	s := &scanner{lists: [][]*word{nil}}
	for text, rules := range words {
		slices.Sort(rules)
		w := &word{text, slices.Compact(rules)}
		s.all = append(s.all, w)
		switch {
		case len(text) == 1:
			s.tiny = append(s.tiny, w)
		case len(text) == 2:
			s.each(func(b uint32) { s.put(w, bytesAt(text, 0)|b<<16); s.put(w, b|bytesAt(text, 0)<<8) })
		case len(text) == 3:
			s.put(w, bytesAt(text, 0))
			s.each(func(b uint32) { s.put(w, b|bytesAt(text, 0)<<8) })
		default:
			s.put(w, bytesAt(text, 0))
			s.put(w, bytesAt(text, 1))
		}
	}
	return s
}

// each calls f with all bytes.
func (s *scanner) each(f func(uint32)) {
	for c := range uint32(256) {
		f(c)
	}
}

// bytesAt returns up to three bytes of text, starting at i.
func bytesAt(text string, i int) (n uint32) {
	for k, c := range []byte(text[i:min(i+3, len(text))]) {
		n |= uint32(c) << (8 * k)
	}
	return n
}

func (s *scanner) put(w *word, three uint32) {
	h := window(three)
	if s.at[h] == 0 {
		s.bits[h/64] |= 1 << (h % 64)
		s.at[h] = uint16(len(s.lists))
		s.lists = append(s.lists, nil)
	}
	if l := &s.lists[s.at[h]]; !slices.Contains(*l, w) {
		*l = append(*l, w)
	}
}

// scan adds the rules whose words occur in line to found.
func (s *scanner) scan(line string, found *rulesFound) {
	var high uint32
	n := len(line)
	if n < 4 {
		s.slowly(line, found)
		return
	}
	for i := 0; i+4 <= n; i += 2 {
		four := uint32(line[i]) | uint32(line[i+1])<<8 | uint32(line[i+2])<<16 | uint32(line[i+3])<<24
		high |= four
		if h := window(four); s.bits[h/64]&(1<<(h%64)) != 0 {
			s.verify(line, i, h, found)
		}
	}
	four := binary.LittleEndian.Uint32([]byte(line[n-4:]))
	s.verify(line, n-4, window(four), found)
	s.verify(line, n-3, window(four>>8), found)
	switch {
	case (high|four)&0x80808080 != 0:
		s.slowly(line, found) // the lower case of other letters may be an ASCII letter
	case len(s.tiny) > 0:
		for _, w := range s.tiny {
			if strings.Contains(strings.ToLower(line), w.text) {
				found.add(w.rules)
			}
		}
	}
}

// verify searches for the words that a window of line may stand for.
func (s *scanner) verify(line string, i int, h uint32, found *rulesFound) {
	for _, w := range s.lists[s.at[h]] {
		if hasFold(line, i, w.text) || hasFold(line, i-1, w.text) || hasFold(line, i+1, w.text) {
			found.add(w.rules)
		}
	}
}

// hasFold reports whether line contains the lower-case text at i, ignoring case.
func hasFold(line string, i int, text string) bool {
	if i < 0 || i+len(text) > len(line) {
		return false
	}
	for k := range len(text) {
		c := line[i+k]
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		if c != text[k] {
			return false
		}
	}
	return true
}

// slowly is scan for lines with any letters.
func (s *scanner) slowly(line string, found *rulesFound) {
	lower := strings.ToLower(line)
	for _, w := range s.all {
		if strings.Contains(lower, w.text) {
			found.add(w.rules)
		}
	}
}

// rulesFound is a set of rules, by number.
type rulesFound struct {
	bits []uint64
	any  bool
}

func (f *rulesFound) reset(n int) {
	f.bits = slices.Grow(f.bits[:0], (n+63)/64)[:(n+63)/64]
	clear(f.bits)
	f.any = false
}

func (f *rulesFound) add(rules []int) {
	for _, r := range rules {
		f.bits[r/64] |= 1 << (r % 64)
	}
	f.any = true
}

package target

import (
	"fmt"
	"strconv"
)

// Body is the page of a target: a template whose digits are overwritten for every
// scrape, so that serving it costs a copy and a few digits per line.
type Body struct {
	text  []byte
	names []string // names of the samples, by line
	nums  []number
	churn []int // positions in text of the generations of lines
	lives int   // number of scrapes after which a line is renamed
}

// number is a value in the template. It counts in units of its last digit: at
// scrape n of a target with the given salt, it is base + (n+salt mod lap)·step. A
// counter is reset after each lap, as if its process had been restarted.
type number struct {
	at, end         int // position of its text: digits, one of which may be a dot
	base, step, lap uint64
	sequence        bool // the value is base + n for every target
}

// SequenceBase is the value of a sequence series at scrape 0. At scrape n, it is
// SequenceBase + n.
const SequenceBase = 1_000_000_000

// SequencePrefix is the prefix of the names of sequence series.
const SequencePrefix = "weirbench_sequence_"

// generationDigits is the width of the label value that changes with churn.
const generationDigits = 8

// Append appends the body of scrape n, counted from 1, of the target with that
// number.
func (b *Body) Append(dst []byte, target, n int) []byte {
	start := len(dst)
	dst = append(dst, b.text...)
	out := dst[start:]
	salt := uint64(target) * 7919 % 1009
	for i := range b.nums {
		m := &b.nums[i]
		v := m.base + uint64(n)
		if !m.sequence {
			v = m.base + (uint64(n)+salt)%m.lap*m.step
		}
		putDigits(out[m.at:m.end], v)
	}
	for i, at := range b.churn {
		// The lines take turns, so that each scrape renames the same number of
		// lines.
		putDigits(out[at:at+generationDigits], uint64((n+i)/b.lives))
	}
	return dst
}

// putDigits writes v over the digits in text, from the right, and keeps a dot.
func putDigits(text []byte, v uint64) {
	for i := len(text) - 1; i >= 0; i-- {
		if text[i] == '.' {
			continue
		}
		text[i] = byte('0' + v%10)
		v /= 10
	}
}

// Len returns the number of samples.
func (b *Body) Len() int { return len(b.names) }

// Bytes returns the size of a scrape.
func (b *Body) Bytes() int { return len(b.text) }

// Count returns the number of samples for whose names keep returns true.
func (b *Body) Count(keep func(name string) bool) (n int) {
	for _, name := range b.names {
		if keep(name) {
			n++
		}
	}
	return n
}

// writer builds a body.
type writer struct {
	Body
	format    Format
	idle      int // samples that do not change
	rng       uint64
	sequences int // number of sequences written so far
}

// rand returns a number below n. The numbers are the same in every run.
func (w *writer) rand(n uint64) uint64 {
	w.rng = w.rng*6364136223846793005 + 1442695040888963407
	return (w.rng >> 33) % n
}

// family begins a family. kind is its type in Prometheus's terms.
func (w *writer) family(name, kind, help string) {
	if w.format == OpenMetrics && kind == "counter" {
		name = name[:len(name)-len("_total")]
	}
	w.text = fmt.Appendf(w.text, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, kind)
}

// isIdle reports whether the next n lines belong to something idle. A tenth of
// all lines do.
func (w *writer) isIdle(n int) bool {
	if (w.idle+n)*10 > len(w.names)+n {
		return false
	}
	w.idle += n
	return true
}

// series writes a line up to its value.
func (w *writer) series(name, labels string) {
	w.text = append(w.text, name...)
	sep := byte('{')
	if w.lives > 0 {
		w.text = append(w.text, `{generation="`...)
		w.Body.churn = append(w.Body.churn, len(w.text))
		w.text = append(w.text, "00000000\""...)
		sep = ','
	}
	if labels != "" {
		w.text = append(append(w.text, sep), labels...)
	}
	if labels != "" || sep == ',' {
		w.text = append(w.text, '}')
	}
	w.text = append(w.text, ' ')
	w.names = append(w.names, name)
}

// value ends a line with a value of the given shape: digits, with an optional dot
// and exponent. It increases by step units of the last digit with every scrape,
// unless it rests.
func (w *writer) value(shape string, step uint64, rests bool) {
	end := 0
	for end < len(shape) && shape[end] != 'e' {
		end++
	}
	at := len(w.text)
	w.text = append(append(w.text, shape...), '\n')
	if rests {
		return
	}
	base, digits := uint64(0), 0
	for _, c := range []byte(shape[:end]) {
		if c != '.' {
			base = base*10 + uint64(c-'0')
			digits++
		}
	}
	limit := uint64(1)
	for range digits {
		limit *= 10
	}
	lap := min(longestLap, (limit-1-base)/step+1)
	if lap < 2 {
		panic("BUG: " + shape + " has no digits to move")
	}
	w.nums = append(w.nums, number{at: at, end: at + end, base: base, step: step, lap: lap})
}

// longestLap is the lap of values with more digits: those of a histogram, which
// must be reset together.
const longestLap = 50_000

// sequence writes a family of one series that counts the scrapes.
func (w *writer) sequence() {
	name := SequencePrefix + strconv.Itoa(w.sequences) + "_total"
	w.sequences++
	w.family(name, "counter", "Rises by one at every scrape.")
	w.text = append(append(w.text, name...), ' ')
	at := len(w.text)
	w.text = append(strconv.AppendInt(w.text, SequenceBase, 10), '\n')
	w.nums = append(w.nums, number{at: at, end: len(w.text) - 1, base: SequenceBase, sequence: true})
	w.names = append(w.names, name)
}

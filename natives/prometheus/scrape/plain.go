package scrape

import (
	"unicode/utf8"
	"unsafe"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/exemplar"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/textparse"
)

// plain parses the most common kind of sample line: a name, labels in braces
// whose values contain no escape sequences, a space, a value, and an optional
// timestamp, which are parsed as in a layout. The only other white space may be
// one space after a comma, as VictoriaMetrics writes it. plain replaces textparse
// for a line that is not the expected one, because starting textparse in the
// middle of a body costs as much as several lines.
//
// plain refuses every line that a lexer could read differently. The remaining
// lines mean the same in both formats, except that OpenMetrics does not allow the
// space after a comma.
type plain struct {
	textparse.Parser // nil: plain implements only the methods for sample lines

	format  format
	text    []byte // name and labels
	name    int    // length of the name
	labels  []int  // positions in text: start and end of the name of each label, then of its value
	v       float64
	t       int64
	hasT    bool
	next    int // end of the line
	builder labels.ScratchBuilder
}

// line parses the line that starts at p and reports whether it is a plain one.
// variable parses the variable part of a line, as layout.variable does.
func (l *plain) line(b []byte, p int, variable func(b []byte, flags lineFlags) (float64, int64, int, bool)) bool {
	i := p
	for ; i < len(b) && (isLetter(b[i]) || b[i] == ':' || i > p && isDigit(b[i])); i++ {
	}
	if i == p || i == len(b) {
		return false
	}
	l.name, l.labels = i-p, l.labels[:0]
	if b[i] == '{' {
		if i = l.braces(b, p, i+1); i < 0 {
			return false
		}
	}
	if i == len(b) || b[i] != ' ' {
		return false
	}
	l.text = b[p:i]
	i++
	n, ok := 0, false
	if l.v, _, n, ok = variable(b[i:], 0); ok {
		l.hasT = false
	} else if l.v, l.t, n, ok = variable(b[i:], lineHasT); ok {
		l.hasT = true
	}
	l.next = i + n
	return ok
}

// braces parses the labels from i, the position after the opening brace, and
// returns the position after the closing one. p is the start of the line. It
// returns -1 if the labels are not plain.
func (l *plain) braces(b []byte, p, i int) int {
	for {
		name := i
		for ; i < len(b) && (isLetter(b[i]) || i > name && isDigit(b[i])); i++ {
		}
		if i == name || i+1 >= len(b) || b[i] != '=' || b[i+1] != '"' {
			return -1
		}
		value := i + 2
		ascii := true
		for i = value; i < len(b) && b[i] != '"'; i++ {
			if c := b[i]; c < ' ' || c == '\\' {
				return -1
			} else if c >= utf8.RuneSelf {
				ascii = false
			}
		}
		if i+1 >= len(b) || !ascii && !utf8.Valid(b[value:i]) {
			return -1
		}
		l.labels = append(l.labels, name-p, value-2-p, value-p, i-p)
		switch b[i+1] {
		case '}':
			return i + 2
		case ',':
			i += 2
			if i < len(b) && b[i] == ' ' && l.format == textFormat {
				i++
			}
		default:
			return -1
		}
	}
}

func isLetter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' || c == '_' }
func isDigit(c byte) bool  { return c >= '0' && c <= '9' }

// Series implements textparse.Parser.
func (l *plain) Series() ([]byte, *int64, float64) {
	if l.hasT {
		return l.text, &l.t, l.v
	}
	return l.text, nil, l.v
}

// Labels sets ls to the sorted labels, including the name. Numbers in them stay
// as they are written; see intake.normalise.
func (l *plain) Labels(ls *labels.Labels) {
	// The builder copies the strings when it creates the labels.
	text := unsafe.String(unsafe.SliceData(l.text), len(l.text))
	l.builder.Reset()
	l.builder.Add(model.MetricNameLabel, text[:l.name])
	for i := 0; i < len(l.labels); i += 4 {
		l.builder.Add(text[l.labels[i]:l.labels[i+1]], text[l.labels[i+2]:l.labels[i+3]])
	}
	l.builder.Sort()
	*ls = l.builder.Labels()
}

// Exemplar returns false: plain lines have no exemplar.
func (l *plain) Exemplar(*exemplar.Exemplar) bool { return false }

// StartTimestamp returns 0: bodies with start timestamps have no layout.
func (l *plain) StartTimestamp() int64 { return 0 }

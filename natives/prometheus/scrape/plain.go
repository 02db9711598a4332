package scrape

import (
	"unicode/utf8"
	"unsafe"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/exemplar"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/textparse"
)

// plain parses one sample line of the kind that nearly all are: a name, labels
// in braces whose values have nothing escaped, and a space, with no other white
// space but one space after a comma, which VictoriaMetrics has; then a value, and
// maybe a timestamp, as a layout takes them. It stands in for textparse where a
// line is not the one that was expected: to start textparse in the middle of a
// body costs as much as several lines.
//
// Whatever may be something else for a lexer is refused. What is left means the
// same in both formats, but that OpenMetrics has no space after a comma.
type plain struct {
	textparse.Parser // nil: this has only what a sample line is asked

	format  format
	text    []byte // name and labels
	name    int    // length of the name
	labels  []int  // in text: where each label's name starts and ends, and its value
	v       float64
	t       int64
	hasT    bool
	next    int // where the line ends
	builder labels.ScratchBuilder
}

// line parses the line that starts at p, and reports whether it is a plain one.
// variable parses what may change in a line, as layout.variable does.
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

// braces parses labels from i on, which is behind the opening brace, up to
// behind the closing one, in the line that starts at p. It returns -1 if they are
// not plain.
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

// Series returns what textparse's parsers do.
func (l *plain) Series() ([]byte, *int64, float64) {
	if l.hasT {
		return l.text, &l.t, l.v
	}
	return l.text, nil, l.v
}

// Labels sets ls to the labels, with the name, in order. Numbers in them stay as
// they are written: intake.normalise is for those.
func (l *plain) Labels(ls *labels.Labels) {
	// The builder copies what it is given when it makes labels.
	text := unsafe.String(unsafe.SliceData(l.text), len(l.text))
	l.builder.Reset()
	l.builder.Add(model.MetricNameLabel, text[:l.name])
	for i := 0; i < len(l.labels); i += 4 {
		l.builder.Add(text[l.labels[i]:l.labels[i+1]], text[l.labels[i+2]:l.labels[i+3]])
	}
	l.builder.Sort()
	*ls = l.builder.Labels()
}

// Exemplar says that there is none.
func (l *plain) Exemplar(*exemplar.Exemplar) bool { return false }

// StartTimestamp says that there is none: bodies that have some have no layout.
func (l *plain) StartTimestamp() int64 { return 0 }

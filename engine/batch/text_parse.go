package batch

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/value"
)

// TextOptions supply the data that the text form does not contain. The zero
// value is usable.
type TextOptions struct {
	// T is the time of rows without a time, in Unix ms for samples and Unix ns for
	// log lines.
	T int64
	// Source is the Source of the batch.
	Source uint64
	// Series returns the handle for sorted labels; meta may be nil. If Series is
	// nil, each set of labels and metadata gets one new handle. Both an Interner's
	// Intern and a test's map of handles can be used.
	Series func(sorted []Label, meta *Metadata) *Series
}

// SyntaxError is an error in the text form.
type SyntaxError struct {
	Line, Col int // Line starts at 1; Col is in bytes
	Msg       string
}

func (e *SyntaxError) Error() string { return fmt.Sprintf("%d:%d: %s", e.Line, e.Col, e.Msg) }

// ParseText parses a batch in text form: the output of AppendText, or a scrape
// body in the classic format with times in ms. Rows stay in order. A label with
// an empty value is treated as missing. Parsing stops at the first error with a
// *SyntaxError.
func ParseText(text string, o TextOptions) (*Metrics, error) {
	p := textParser{o: o, b: &Metrics{Source: o.Source}, said: families{}, handles: map[handleKey]*Series{}}
	for text != "" {
		p.number++
		p.line, text, _ = strings.Cut(text, "\n")
		p.line = strings.TrimSuffix(p.line, "\r")
		p.pos = 0
		if err := p.parseLine(); err != nil {
			return nil, err
		}
	}
	return p.b, nil
}

type textParser struct {
	o       TextOptions
	b       *Metrics
	said    families
	handles map[handleKey]*Series
	labels  []Label

	line   string
	number int
	pos    int
}

type handleKey struct {
	wire string
	meta Metadata
}

func (p *textParser) parseLine() error {
	p.space()
	switch {
	case p.pos == len(p.line):
		return nil
	case p.line[p.pos] == '#':
		return p.comment()
	}
	return p.row()
}

func (p *textParser) row() error {
	s, err := p.series()
	if err != nil {
		return err
	}
	row := len(p.b.Series)
	v, t := 0.0, p.o.T
	if p.space(); p.next() == '{' {
		h, err := p.histogram()
		if err != nil {
			return err
		}
		h.Row = row
		if h.Int != nil {
			v = h.Int.Sum
		} else {
			v = h.Float.Sum
		}
		p.b.Histograms = append(p.b.Histograms, h)
	} else if v, err = p.float("a value"); err != nil {
		return err
	}
	if p.space(); p.pos < len(p.line) && p.next() != '#' && !strings.HasPrefix(p.line[p.pos:], "st@") {
		if t, err = p.time(); err != nil {
			return err
		}
	}
	if p.space(); strings.HasPrefix(p.line[p.pos:], "st@") {
		p.pos += len("st@")
		st, err := p.time()
		if err != nil {
			return err
		}
		p.b.Starts = append(p.b.Starts, Start{Row: row, T: st})
	}
	for p.space(); p.next() == '#'; p.space() {
		e, err := p.exemplar()
		if err != nil {
			return err
		}
		e.Row = row
		p.b.Exemplars = append(p.b.Exemplars, e)
	}
	if p.pos < len(p.line) {
		return p.errorf("unexpected %q after the value", p.line[p.pos:])
	}
	p.b.Series, p.b.T, p.b.V = append(p.b.Series, s), append(p.b.T, t), append(p.b.V, v)
	return nil
}

func (p *textParser) series() (*Series, error) {
	start := p.pos
	p.labels = p.labels[:0]
	if name := p.plain(isNameByte); name != "" {
		p.labels = append(p.labels, Label{NameLabel, name})
	} else if p.next() != '{' {
		return nil, p.errorf("want a series, have %q", p.line[p.pos:])
	}
	at := p.pos
	if p.space(); p.next() == '{' && (at == p.pos || !p.histogramAhead()) {
		var err error
		if p.labels, err = p.labelSet(p.labels, true); err != nil {
			return nil, err
		}
	} else {
		p.pos = at
	}
	p.labels = slices.DeleteFunc(p.labels, func(l Label) bool { return l.Value == "" })
	slices.SortFunc(p.labels, func(a, b Label) int { return strings.Compare(a.Name, b.Name) })
	var name string
	for i, l := range p.labels {
		if i > 0 && p.labels[i-1].Name == l.Name {
			p.pos = start
			return nil, p.errorf("label %s appears twice", l.Name)
		}
		if l.Name == NameLabel {
			name = l.Value
		}
	}
	meta := p.said.metadataOf(name)
	if meta != nil && *meta == (Metadata{}) { // an empty help text is no metadata
		meta = nil
	}
	return p.handle(meta), nil
}

// handle returns the handle for p.labels; meta may be nil.
func (p *textParser) handle(meta *Metadata) *Series {
	if p.o.Series != nil {
		return p.o.Series(p.labels, meta)
	}
	key := handleKey{wire: string(AppendLabels(nil, p.labels))}
	if meta != nil {
		key.meta = *meta
	}
	s := p.handles[key]
	if s == nil {
		s = NewSeries(p.labels)
		if meta != nil {
			s.SetMeta(meta)
		}
		p.handles[key] = s
	}
	return s
}

// histogramAhead reports whether the brace at the current position opens a
// histogram, that is, a key and a colon follow.
func (p *textParser) histogramAhead() bool {
	rest := strings.TrimLeft(p.line[p.pos+1:], " \t")
	key := strings.TrimLeft(rest, "abcdefghijklmnopqrstuvwxyz_")
	return len(key) < len(rest) && strings.HasPrefix(strings.TrimLeft(key, " \t"), ":")
}

// labelSet appends the labels between braces. If named is true, a quoted string
// without a value is the metric name.
func (p *textParser) labelSet(dst []Label, named bool) ([]Label, error) {
	p.pos++
	for {
		if p.space(); p.next() == '}' {
			p.pos++
			return dst, nil
		}
		var name string
		var err error
		quoted := p.next() == '"'
		if quoted {
			name, err = p.quoted()
		} else if name = p.plain(isLabelByte); name == "" {
			err = p.errorf("want a label name")
		}
		if err != nil {
			return nil, err
		}
		if p.space(); p.next() == '=' {
			p.pos++
			p.space()
			v, err := p.quoted()
			if err != nil {
				return nil, err
			}
			dst = append(dst, Label{name, v})
		} else if quoted && named {
			dst = append(dst, Label{NameLabel, name})
		} else {
			return nil, p.errorf("want = after label %s", name)
		}
		if p.space(); p.next() == ',' {
			p.pos++
		} else if p.next() != '}' {
			return nil, p.errorf("want , or } after label %s", name)
		}
	}
}

func (p *textParser) exemplar() (e Exemplar, err error) {
	p.pos++
	if p.space(); p.next() != '{' {
		return e, p.errorf("want { of an exemplar's labels")
	}
	if e.Labels, err = p.sortedLabels(nil); err != nil {
		return e, err
	}
	p.space()
	if e.Value, err = p.float("an exemplar's value"); err != nil {
		return e, err
	}
	if p.space(); p.pos < len(p.line) && p.next() != '#' {
		e.HasT = true
		e.T, err = p.time()
	}
	return e, err
}

// comment parses metadata and ignores other comments.
func (p *textParser) comment() error {
	p.pos++
	p.space()
	kind := p.plain(isNameByte)
	if kind != "TYPE" && kind != "HELP" && kind != "UNIT" {
		return nil
	}
	p.space()
	var name string
	if p.next() == '"' {
		var err error
		if name, err = p.quoted(); err != nil {
			return err
		}
	} else if name = p.plain(isNameByte); name == "" {
		return p.errorf("want a metric name after %s", kind)
	}
	p.space()
	text := strings.TrimRight(p.line[p.pos:], " \t")
	if kind == "TYPE" {
		if text == "-" {
			p.said[name] = nil
			return nil
		}
		t, ok := parseType(text)
		if !ok {
			return p.errorf("unknown metric type %q", text)
		}
		p.amend(name, func(m *Metadata) { m.Type = t })
		return nil
	}
	if s, err := strconv.Unquote(text); err == nil && strings.HasPrefix(text, `"`) {
		text = s
	} else {
		text = unescape(text)
	}
	if kind == "HELP" {
		p.amend(name, func(m *Metadata) { m.Help = text })
	} else {
		p.amend(name, func(m *Metadata) { m.Unit = text })
	}
	return nil
}

// amend changes the metadata of a name in a copy, because the rows above keep
// the old metadata.
func (p *textParser) amend(name string, change func(*Metadata)) {
	var m Metadata
	if old := p.said[name]; old != nil {
		m = *old
	}
	change(&m)
	p.said[name] = &m
}

func parseType(s string) (model.MetricType, bool) {
	switch t := model.MetricType(s); t {
	case "untyped":
		return model.MetricTypeUnknown, true
	case model.MetricTypeCounter, model.MetricTypeGauge, model.MetricTypeHistogram, model.MetricTypeGaugeHistogram,
		model.MetricTypeSummary, model.MetricTypeInfo, model.MetricTypeStateset, model.MetricTypeUnknown:
		return t, true
	}
	return "", false
}

// unescape resolves the two escapes of help texts in scrape bodies.
func unescape(s string) string {
	if strings.IndexByte(s, '\\') < 0 {
		return s
	}
	return strings.NewReplacer(`\\`, `\`, `\n`, "\n").Replace(s)
}

func (p *textParser) time() (int64, error) {
	word := p.word()
	t, err := strconv.ParseInt(word, 10, 64)
	if err != nil {
		return 0, p.errorf("want a time in Unix ms, have %q", word)
	}
	p.pos += len(word)
	return t, nil
}

func (p *textParser) float(what string) (float64, error) {
	word := p.word()
	v, ok := parseFloat(word)
	if !ok {
		return 0, p.errorf("want %s, have %q", what, word)
	}
	p.pos += len(word)
	return v, nil
}

func parseFloat(s string) (float64, bool) {
	if s == "stale" {
		return Stale(), true
	}
	if hex, ok := strings.CutPrefix(s, "NaN(0x"); ok {
		bits, err := strconv.ParseUint(strings.TrimSuffix(hex, ")"), 16, 64)
		v := math.Float64frombits(bits)
		return v, err == nil && v != v && strings.HasSuffix(hex, ")")
	}
	v, err := strconv.ParseFloat(s, 64)
	if err != nil || strings.IndexByte(s, '_') >= 0 {
		return 0, false
	}
	if v != v {
		v = math.Float64frombits(value.NormalNaN)
	}
	return v, true
}

// word returns the text up to the next space.
func (p *textParser) word() string {
	rest := p.line[p.pos:]
	if i := strings.IndexAny(rest, " \t"); i >= 0 {
		return rest[:i]
	}
	return rest
}

// quoted parses a string in double quotes.
func (p *textParser) quoted() (string, error) {
	rest := p.line[p.pos:]
	if !strings.HasPrefix(rest, `"`) {
		return "", p.errorf("want a string in double quotes")
	}
	q, err := strconv.QuotedPrefix(rest)
	if err == nil {
		var s string
		if s, err = strconv.Unquote(q); err == nil {
			p.pos += len(q)
			return s, nil
		}
	}
	return "", p.errorf("bad string %s", rest)
}

func (p *textParser) plain(ok func(c byte, first bool) bool) string {
	start := p.pos
	for p.pos < len(p.line) && ok(p.line[p.pos], p.pos == start) {
		p.pos++
	}
	return p.line[start:p.pos]
}

func isLabelByte(c byte, first bool) bool {
	return c == '_' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || !first && '0' <= c && c <= '9'
}

func isNameByte(c byte, first bool) bool { return c == ':' || isLabelByte(c, first) }

func (p *textParser) space() {
	for p.pos < len(p.line) && (p.line[p.pos] == ' ' || p.line[p.pos] == '\t') {
		p.pos++
	}
}

// next returns the byte at the current position, or 0 at the end.
func (p *textParser) next() byte {
	if p.pos < len(p.line) {
		return p.line[p.pos]
	}
	return 0
}

func (p *textParser) errorf(format string, args ...any) error {
	return &SyntaxError{Line: p.number, Col: p.pos + 1, Msg: fmt.Sprintf(format, args...)}
}

package batch

import (
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// The text form of log lines:
//
//	{app="api",env="prod"} @2025-01-01T00:00:00.000000001Z {trace_id="a1"} level=info msg="started in 3 ms"
//	{app="api"} {"level":"warn"}
//	{app="api"} "two\nlines, a byte \xff, or nothing"
//
// Each line is one row: stream, time, metadata, text. Time and metadata are
// optional. A time is RFC 3339 in UTC with up to nanosecond precision. The text
// is the rest of the line, or a string in double quotes with Go's escapes. Text
// is quoted if it could not be read back otherwise: if it is empty or not
// printable, begins with a quote, @, # or metadata, or ends in a space. Empty
// lines and lines that begin with # are ignored.

// AppendLogsText appends b in text form to dst. The text does not contain
// b.Source and does not record which of several equal streams had which handle.
// ParseLogsText reads it.
func AppendLogsText(dst []byte, b *Logs) []byte { return appendLogsText(dst, b, nil) }

// AppendLogsTextAt is like AppendLogsText, but omits times that equal t (Unix
// ns). ParseLogsText restores them with TextOptions{T: t}.
func AppendLogsTextAt(dst []byte, b *Logs, t int64) []byte { return appendLogsText(dst, b, &t) }

func appendLogsText(dst []byte, b *Logs, implied *int64) []byte {
	for i, s := range b.Stream {
		dst = AppendStream(dst, s)
		if implied == nil || b.T[i] != *implied {
			dst = append(dst, " @"...)
			dst = time.Unix(0, b.T[i]).UTC().AppendFormat(dst, time.RFC3339Nano)
		}
		if meta := b.MetaOf(i); len(meta) > 0 {
			dst = append(dst, ' ')
			dst = AppendMeta(dst, meta)
		}
		dst = append(dst, ' ')
		dst = appendLine(dst, b.Line[i])
		dst = append(dst, '\n')
	}
	return dst
}

// AppendStream appends a stream in text form: {label="value",…}.
func AppendStream(dst []byte, s *Stream) []byte {
	dst = append(dst, '{')
	sep := false
	for n, v := range s.Labels() {
		if sep {
			dst = append(dst, ',')
		}
		dst = appendLabel(dst, n, v)
		sep = true
	}
	return append(dst, '}')
}

// AppendMeta appends metadata in text form: {name="value",…}.
func AppendMeta(dst []byte, meta []Label) []byte {
	dst = append(dst, '{')
	for i, l := range meta {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendLabel(dst, l.Name, l.Value)
	}
	return append(dst, '}')
}

func appendLine(dst []byte, line string) []byte {
	if isPlainLine(line) {
		return append(dst, line...)
	}
	return strconv.AppendQuote(dst, line)
}

// isPlainLine reports whether a line can be written without quotes.
func isPlainLine(line string) bool {
	if line == "" || strings.IndexByte(`"@# `, line[0]) >= 0 || line[len(line)-1] == ' ' || metaAhead(line) || !utf8.ValidString(line) {
		return false
	}
	return !strings.ContainsFunc(line, func(r rune) bool { return !unicode.IsPrint(r) })
}

// metaAhead reports whether s begins with metadata: a brace, a name and an
// equals sign. JSON never begins like this.
func metaAhead(s string) bool {
	if !strings.HasPrefix(s, "{") {
		return false
	}
	s = strings.TrimLeft(s[1:], " \t")
	name := strings.TrimLeft(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_")
	if q, err := strconv.QuotedPrefix(s); err == nil && q[0] == '"' {
		name = s[len(q):]
	}
	return len(name) < len(s) && strings.HasPrefix(strings.TrimLeft(name, " \t"), "=")
}

// ParseLogsText parses a batch of log lines in text form. Rows stay in order.
// o.T is in Unix ns, and o.Series is called without metadata. Parsing stops at
// the first error with a *SyntaxError.
func ParseLogsText(text string, o TextOptions) (*Logs, error) {
	p := logsParser{textParser: textParser{o: o, handles: map[handleKey]*Series{}}, b: &Logs{Source: o.Source}}
	for text != "" {
		p.number++
		p.line, text, _ = strings.Cut(text, "\n")
		p.line = strings.TrimSuffix(p.line, "\r")
		p.pos = 0
		if p.space(); p.pos == len(p.line) || p.next() == '#' {
			continue
		}
		if err := p.row(); err != nil {
			return nil, err
		}
	}
	return p.b, nil
}

type logsParser struct {
	textParser
	b *Logs
}

func (p *logsParser) row() error {
	if p.next() != '{' {
		return p.errorf(`want a stream such as {app="api"}, have %q`, p.line[p.pos:])
	}
	labels, err := p.sortedLabels(p.labels[:0])
	if err != nil {
		return err
	}
	p.labels = slices.DeleteFunc(labels, func(l Label) bool { return l.Value == "" })
	stream, t := p.handle(nil), p.o.T
	if p.space(); p.next() == '@' {
		if t, err = p.instant(); err != nil {
			return err
		}
	}
	var meta []Label
	if p.space(); metaAhead(p.line[p.pos:]) {
		if meta, err = p.sortedLabels(nil); err != nil {
			return err
		}
	}
	p.space()
	line := strings.TrimRight(p.line[p.pos:], " \t")
	switch {
	case line == "":
		return p.errorf(`want the line; an empty one is ""`)
	case line[0] == '"':
		if line, err = p.quoted(); err != nil {
			return err
		}
		if p.space(); p.pos < len(p.line) {
			return p.errorf("unexpected %q after the line, which is in quotes from its first to its last byte", p.line[p.pos:])
		}
	case line[0] == '@', line[0] == '#':
		return p.errorf("a line that begins with %c is written in double quotes", line[0])
	}
	if meta != nil && p.b.Meta == nil {
		p.b.Meta = make([][]Label, len(p.b.Line))
	}
	if p.b.Meta != nil {
		p.b.Meta = append(p.b.Meta, meta)
	}
	p.b.Stream, p.b.T, p.b.Line = append(p.b.Stream, stream), append(p.b.T, t), append(p.b.Line, line)
	return nil
}

// sortedLabels appends the labels between braces, sorted by name. Each name
// must be unique.
func (p *textParser) sortedLabels(dst []Label) ([]Label, error) {
	start, from := p.pos, len(dst)
	dst, err := p.labelSet(dst, false)
	if err != nil {
		return nil, err
	}
	slices.SortFunc(dst[from:], func(a, b Label) int { return strings.Compare(a.Name, b.Name) })
	for i := from + 1; i < len(dst); i++ {
		if dst[i-1].Name == dst[i].Name {
			p.pos = start
			return nil, p.errorf("label %s appears twice", dst[i].Name)
		}
	}
	return dst, nil
}

// instant parses a time such as @2025-01-01T00:00:00Z and returns it in Unix
// ns.
func (p *logsParser) instant() (int64, error) {
	p.pos++
	word := p.word()
	t, err := time.Parse(time.RFC3339Nano, word)
	if err == nil && time.Unix(0, t.UnixNano()).Equal(t) {
		p.pos += len(word)
		return t.UnixNano(), nil
	}
	return 0, p.errorf("want a time such as @2025-01-01T00:00:00.000000001Z, have %q", "@"+word)
}

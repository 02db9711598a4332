package config

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Write prints the diagnostics like a compiler: position and message, the
// source line with the place underlined, and the hint. The detail follows.
// files maps paths to contents, as Config.Files does; without its file, a
// diagnostic has no source line. Control characters are replaced, so the output
// cannot control the terminal.
func (ds Diagnostics) Write(w io.Writer, files map[string]string, color bool) error {
	paint := func(code, s string) string {
		if !color {
			return s
		}
		return "\x1b[" + code + "m" + s + "\x1b[0m"
	}
	var b strings.Builder
	for _, d := range ds {
		hue := "31;1"
		if d.Severity == Warning {
			hue = "33;1"
		}
		if pos := Printable(d.Span.String()); pos != "" {
			b.WriteString(paint("1", pos+":") + " ")
		}
		b.WriteString(paint(hue, d.Severity.String()+":") + " " + paint("1", Printable(d.Msg)) + "\n")
		if line, ok := sourceLine(files[d.File], d.Line); ok {
			no := strconv.Itoa(d.Line)
			text, under := underline(line, d.Span)
			fmt.Fprintf(&b, "  %s %s\n", paint("34", no+" |"), text)
			fmt.Fprintf(&b, "  %s %s\n", paint("34", strings.Repeat(" ", len(no))+" |"), paint(hue, under))
		}
		if d.Detail != "" {
			b.WriteString(indent(Printable(d.Detail)) + "\n")
		}
		if d.Hint != "" {
			b.WriteString("  " + paint("36", "hint:") + " " + Printable(d.Hint) + "\n")
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func sourceLine(text string, n int) (string, bool) {
	if n < 1 {
		return "", false
	}
	for range n - 1 {
		i := strings.IndexByte(text, '\n')
		if i < 0 {
			return "", false
		}
		text = text[i+1:]
	}
	line, _, _ := strings.Cut(text, "\n")
	return strings.TrimSuffix(line, "\r"), strings.TrimSpace(text) != ""
}

// Printable returns s with U+FFFD in place of each control character except
// newline and tab, and of invalid UTF-8. Untrusted text can then be printed on
// a terminal.
func Printable(s string) string {
	return strings.Map(func(r rune) rune {
		if r != '\n' && r != '\t' && control(r) {
			return utf8.RuneError
		}
		return r
	}, s)
}

func control(r rune) bool {
	return r < ' ' || r >= 0x7f && r < 0xa0 || r == utf8.RuneError
}

// maxSnippet is the maximum length of the shown part of a line, in characters.
const maxSnippet = 160

// underline returns the printable line and the marker below it. A tab counts as
// four columns, as it is printed; other control characters become U+FFFD. Long
// lines are cut around the place.
func underline(line string, s Span) (text, under string) {
	from := min(max(s.Col-1, 0), len(line))
	to := min(s.EndCol, len(line)) // exclusive
	if s.EndLine > s.Line {
		to = len(strings.TrimRight(line, " \t"))
	}
	to = max(to, min(from+1, len(line)))
	var t, u strings.Builder
	first := 0
	if n := utf8.RuneCountInString(line[:from]); n > maxSnippet/2 {
		first = n - maxSnippet/4
		t.WriteString("…")
		u.WriteByte(' ')
	}
	n := 0
	for i, r := range line {
		n++
		if n <= first {
			continue
		}
		if n-first > maxSnippet {
			t.WriteString("…")
			break
		}
		shown := string(r)
		switch {
		case r == '\t':
			shown = "    "
		case control(r):
			shown = "\ufffd"
		}
		t.WriteString(shown)
		mark := " "
		if i >= from && i < to {
			mark = "^"
		}
		u.WriteString(strings.Repeat(mark, utf8.RuneCountInString(shown)))
	}
	under = strings.TrimRight(u.String(), " ")
	if !strings.Contains(under, "^") { // past the end of the line
		under = u.String() + "^"
	}
	return t.String(), under
}

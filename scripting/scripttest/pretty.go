package scripttest

import (
	"fmt"
	"io"
	"strings"
	"time"
)

// pos is file:line:col as far as they are known.
func (p *Problem) pos() string {
	switch {
	case p.Line == 0:
		return p.File
	case p.Col == 0:
		return fmt.Sprintf("%s:%d", p.File, p.Line)
	}
	return fmt.Sprintf("%s:%d:%d", p.File, p.Line, p.Col)
}

// String returns all that is known about a problem, on several lines.
func (p *Problem) String() string {
	var b strings.Builder
	first, rest, _ := strings.Cut(p.Msg, "\n")
	fmt.Fprintf(&b, "%s: %s\n", p.pos(), first)
	if p.Source != "" {
		fmt.Fprintf(&b, "  %d | %s\n", p.Line, p.Source)
	}
	if rest != "" {
		b.WriteString(rest + "\n")
	}
	b.WriteString(p.Diff)
	return b.String()
}

// Pretty writes reports for people.
type Pretty struct {
	W io.Writer
	// Paint colours text with an ANSI code such as "31"; nil: it does not.
	Paint func(code, text string) string
	// Clean makes text fit for a terminal; nil: as it is.
	Clean func(string) string
}

func (p Pretty) paint(code, text string) string {
	if p.Paint == nil {
		return text
	}
	return p.Paint(code, text)
}

func (p Pretty) clean(s string) string {
	if p.Clean == nil {
		return s
	}
	return p.Clean(s)
}

// File writes what became of a file: a line, and all there is to know of what
// failed.
func (p Pretty) File(f File) {
	bad, pending := 0, 0
	for _, t := range f.Tests {
		switch t.Status {
		case Failed, Broken:
			bad++
		case Pending:
			pending++
		}
	}
	word := p.paint("32", "ok  ")
	if bad > 0 || f.Problem != nil {
		word = p.paint("31;1", "FAIL")
	}
	line := fmt.Sprintf("%s  %s  %s", word, p.clean(f.Name), count(len(f.Tests), "test"))
	if pending > 0 {
		line += fmt.Sprintf(", %d pending", pending)
	}
	if f.Updated > 0 {
		line += fmt.Sprintf(", %s rewritten", count(f.Updated, "example"))
	}
	if s := f.Snapshots.String(); s != "" {
		line += ", " + s
	}
	fmt.Fprintf(p.W, "%s  %s\n", line, f.Elapsed.Round(10*time.Microsecond))
	for _, t := range f.Tests {
		if t.Status == Failed || t.Status == Broken {
			fmt.Fprintf(p.W, "  %s %s\n", p.paint("31", "failed:"), p.clean(t.Name))
			p.problem(t.Problem)
			for _, l := range t.Output {
				fmt.Fprintf(p.W, "      > %s\n", p.clean(l))
			}
		}
	}
	for _, name := range f.Snapshots.Obsolete {
		fmt.Fprintf(p.W, "  %s %s; weir test --update removes it\n", p.paint("33", "obsolete snapshot:"), p.clean(name))
	}
	if f.Problem != nil {
		p.problem(f.Problem)
	}
}

func (p Pretty) problem(pr *Problem) {
	head, rest, _ := strings.Cut(pr.String(), "\n")
	fmt.Fprintf(p.W, "    %s\n", p.clean(head))
	for l := range strings.Lines(rest) {
		l = p.clean(strings.TrimSuffix(l, "\n"))
		switch {
		case strings.HasPrefix(l, "- "):
			l = p.paint("31", l)
		case strings.HasPrefix(l, "+ "):
			l = p.paint("32", l)
		}
		fmt.Fprintf(p.W, "      %s\n", l)
	}
}

// Summary writes the last lines.
func (p Pretty) Summary(r *Report) {
	for _, name := range r.Orphans {
		fmt.Fprintf(p.W, "%s %s: the test file does not exist; weir test --update removes it\n", p.paint("33", "obsolete snapshots:"), p.clean(name))
	}
	bad := r.Count(Failed) + r.Count(Broken)
	line := fmt.Sprintf("%d passed", r.Count(Passed))
	if bad > 0 {
		line += fmt.Sprintf(", %d failed", bad)
	}
	if n := r.Count(Pending); n > 0 {
		line += fmt.Sprintf(", %d pending", n)
	}
	hue := "32"
	if bad > 0 {
		hue = "31;1"
	} else if strings.Contains(line, "pending") {
		hue = "33"
	}
	fmt.Fprintf(p.W, "%s in %s\n", p.paint(hue, line), r.Elapsed.Round(100*time.Microsecond))
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

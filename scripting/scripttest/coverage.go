package scripttest

import (
	"fmt"
	"io"
	"strings"

	"github.com/weir-run/weir/scripting"
)

// Coverage is what tests ran of scripts and of the modules they require.
type Coverage struct {
	Files []FileCoverage // in order of name
}

// FileCoverage is what ran of one file.
type FileCoverage struct {
	Name     string
	Text     string
	Lines    []LineCoverage   // those that statements begin in, in order
	Branches []BranchCoverage // ifs, in order of their lines
}

// LineCoverage is how often all of a line ran: of several statements, the one
// that ran least counts.
type LineCoverage struct {
	Line int
	Hits int64
}

// BranchCoverage is an if: how often each of its arms was taken. The last is
// that of the else, also of one that is not written.
type BranchCoverage struct {
	Line int
	Arms []int64
	Hits int64 // of the if itself
}

// Share counts parts and those of them that ran.
type Share struct{ Ran, All int }

// Percent is 100 when there is nothing to run.
func (s Share) Percent() float64 {
	if s.All == 0 {
		return 100
	}
	return 100 * float64(s.Ran) / float64(s.All)
}

func (s Share) sum(o Share) Share { return Share{s.Ran + o.Ran, s.All + o.All} }

func (s *Share) add(ran bool) {
	s.All++
	if ran {
		s.Ran++
	}
}

// LineShare is how many lines ran.
func (f *FileCoverage) LineShare() (s Share) {
	for _, l := range f.Lines {
		s.add(l.Hits > 0)
	}
	return s
}

// BranchShare is how many arms of ifs were taken.
func (f *FileCoverage) BranchShare() (s Share) {
	for _, b := range f.Branches {
		for _, n := range b.Arms {
			s.add(n > 0)
		}
	}
	return s
}

// Total is the share of lines and of branches over all files.
func (c *Coverage) Total() (lines, branches Share) {
	for i := range c.Files {
		lines = lines.sum(c.Files[i].LineShare())
		branches = branches.sum(c.Files[i].BranchShare())
	}
	return lines, branches
}

// coverageOf collects what was counted. Test files, which are compiled like
// scripts, are left out.
func coverageOf(targets []target) *Coverage {
	tests, suites := map[string]bool{}, map[*suite]bool{}
	c := &Coverage{}
	for _, t := range targets {
		tests[t.test.Path] = true
	}
	for _, t := range targets {
		if suites[t.suite] {
			continue
		}
		suites[t.suite] = true
		for _, f := range t.suite.probe.Coverage.Files() {
			if !tests[f.File.Path] {
				c.Files = append(c.Files, fileCoverage(f))
			}
		}
	}
	return c
}

func fileCoverage(c *scripting.Covered) FileCoverage {
	f := FileCoverage{Name: c.File.Name, Text: c.File.Text}
	for _, s := range c.Statements { // in order of their text
		hits := c.Hits(s.Counter)
		i := len(f.Lines) - 1
		for i >= 0 && f.Lines[i].Line > s.Line {
			i--
		}
		if i >= 0 && f.Lines[i].Line == s.Line {
			f.Lines[i].Hits = min(f.Lines[i].Hits, hits)
			continue
		}
		f.Lines = append(f.Lines[:i+1], append([]LineCoverage{{s.Line, hits}}, f.Lines[i+1:]...)...)
	}
	for _, b := range c.Branches {
		out := BranchCoverage{Line: b.Line, Hits: c.Hits(b.If)}
		rest := out.Hits
		for _, arm := range b.Arms {
			out.Arms = append(out.Arms, c.Hits(arm))
			rest -= c.Hits(arm)
		}
		out.Arms = append(out.Arms, max(rest, 0)) // an error in a condition takes no arm; it counts as else
		f.Branches = append(f.Branches, out)
	}
	return f
}

// missed are the lines that did not run, as "12-14, 20"; lines between that
// begin no statement join them.
func (f *FileCoverage) missed() string {
	var parts []string
	first, last := 0, 0
	end := func() {
		switch {
		case first == 0:
		case first == last:
			parts = append(parts, fmt.Sprint(first))
		default:
			parts = append(parts, fmt.Sprintf("%d-%d", first, last))
		}
		first = 0
	}
	for _, l := range f.Lines {
		if l.Hits > 0 {
			end()
			continue
		}
		if first == 0 {
			first = l.Line
		}
		last = l.Line
	}
	end()
	return strings.Join(parts, ", ")
}

// WriteCoverage writes a table for people.
func WriteCoverage(w io.Writer, c *Coverage) error {
	var b strings.Builder
	width := len("coverage")
	for _, f := range c.Files {
		width = max(width, len(f.Name))
	}
	row := func(name, lines, branches, missed string) {
		b.WriteString(strings.TrimRight(fmt.Sprintf("%-*s  %7s  %8s  %s", width, name, lines, branches, missed), " ") + "\n")
	}
	percent := func(s Share) string {
		if s.All == 0 {
			return "-"
		}
		return fmt.Sprintf("%.1f%%", s.Percent())
	}
	row("coverage", "lines", "branches", "lines that did not run")
	for _, f := range c.Files {
		row(f.Name, percent(f.LineShare()), percent(f.BranchShare()), f.missed())
	}
	lines, branches := c.Total()
	row("total", percent(lines), percent(branches), "")
	_, err := io.WriteString(w, b.String())
	return err
}

// WriteLCOV writes what genhtml and editors read.
//
// Format: https://man7.org/linux/man-pages/man1/geninfo.1.html#TRACEFILE_FORMAT
func WriteLCOV(w io.Writer, c *Coverage) error {
	var b strings.Builder
	for _, f := range c.Files {
		fmt.Fprintf(&b, "TN:\nSF:%s\n", f.Name)
		for i, br := range f.Branches {
			for arm, n := range br.Arms {
				taken := fmt.Sprint(n)
				if br.Hits == 0 {
					taken = "-" // which is: the if was never reached
				}
				fmt.Fprintf(&b, "BRDA:%d,%d,%d,%s\n", br.Line, i, arm, taken)
			}
		}
		branches, lines := f.BranchShare(), f.LineShare()
		fmt.Fprintf(&b, "BRF:%d\nBRH:%d\n", branches.All, branches.Ran)
		for _, l := range f.Lines {
			fmt.Fprintf(&b, "DA:%d,%d\n", l.Line, l.Hits)
		}
		fmt.Fprintf(&b, "LF:%d\nLH:%d\nend_of_record\n", lines.All, lines.Ran)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

package scripttest

import (
	"encoding/json"
	"encoding/xml"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/weir-run/weir/scripting/node"
)

// WriteJSON writes a report as one JSON object: passed, failed, errors,
// pending, seconds, and files with their tests.
func WriteJSON(w io.Writer, r *Report) error {
	type benchmark struct {
		File     string            `json:"file"`
		Name     string            `json:"name"`
		Line     int               `json:"line"`
		Records  int               `json:"records,omitempty"` // none: it is about a function
		Measured *Measured         `json:"measured,omitempty"`
		Baseline *Measured         `json:"baseline,omitempty"`
		Worse    string            `json:"worse,omitempty"`
		Problem  *node.TestProblem `json:"problem,omitempty"`
	}
	type mutant struct {
		File    string `json:"file"`
		Line    int    `json:"line"`
		Column  int    `json:"column"`
		Change  string `json:"change"`
		Covered bool   `json:"covered"`
	}
	type mutants struct {
		Tested    int      `json:"tested"`
		Killed    int      `json:"killed"`
		Ignored   int      `json:"ignored"`
		Left      int      `json:"left"` // the time was not enough for them
		Survivors []mutant `json:"survivors"`
	}
	whole := func(text string) string { return text }
	out := struct {
		Passed     int             `json:"passed"`
		Failed     int             `json:"failed"`
		Errors     int             `json:"errors"`
		Pending    int             `json:"pending"`
		Seconds    float64         `json:"seconds"`
		Files      []node.TestFile `json:"files"`
		Benchmarks []benchmark     `json:"benchmarks,omitempty"`
		Mutants    *mutants        `json:"mutants,omitempty"`
	}{r.Count(Passed), r.Count(Failed), r.Count(Broken), r.Count(Pending), r.Elapsed.Seconds(), []node.TestFile{}, nil, nil}
	for _, f := range r.Files {
		out.Files = append(out.Files, fileResult(f, whole))
	}
	for i := range r.Benchmarks {
		b := &r.Benchmarks[i]
		one := benchmark{File: b.File, Name: b.Name, Line: b.Line, Records: b.Records, Baseline: b.Baseline, Worse: b.Worse(), Problem: problemResult(b.Problem, whole)}
		if b.Problem == nil {
			one.Measured = b.measured()
		}
		out.Benchmarks = append(out.Benchmarks, one)
	}
	if m := r.Mutants; m != nil {
		out.Mutants = &mutants{m.Tested, m.Killed, m.Ignored, m.Left, []mutant{}}
		for _, s := range m.Survivors {
			out.Mutants.Survivors = append(out.Mutants.Survivors, mutant{s.File, s.Line, s.Col, s.Change, s.Covered})
		}
	}
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	return enc.Encode(out)
}

// WriteJUnit writes a report as the XML that CI systems read: a suite for each
// file, failure for an assertion that does not hold, error for anything else.
//
// Format: https://github.com/testmoapp/junitxml
func WriteJUnit(w io.Writer, r *Report) error {
	type detail struct {
		Message string `xml:"message,attr,omitempty"`
		Text    string `xml:",chardata"`
	}
	type testcase struct {
		Name      string  `xml:"name,attr"`
		Classname string  `xml:"classname,attr"`
		File      string  `xml:"file,attr"`
		Line      int     `xml:"line,attr,omitempty"`
		Time      string  `xml:"time,attr"`
		Failure   *detail `xml:"failure"`
		Error     *detail `xml:"error"`
		Skipped   *detail `xml:"skipped"`
		Out       string  `xml:"system-out,omitempty"`
	}
	type testsuite struct {
		Name     string     `xml:"name,attr"`
		Tests    int        `xml:"tests,attr"`
		Failures int        `xml:"failures,attr"`
		Errors   int        `xml:"errors,attr"`
		Skipped  int        `xml:"skipped,attr"`
		Time     string     `xml:"time,attr"`
		Cases    []testcase `xml:"testcase"`
	}
	seconds := func(d time.Duration) string { return strconv.FormatFloat(d.Seconds(), 'f', 6, 64) }
	about := func(p *Problem) *detail {
		first, _, _ := strings.Cut(p.Msg, "\n")
		return &detail{Message: xmlText(first), Text: xmlText(p.String())}
	}
	out := struct {
		XMLName  xml.Name    `xml:"testsuites"`
		Tests    int         `xml:"tests,attr"`
		Failures int         `xml:"failures,attr"`
		Errors   int         `xml:"errors,attr"`
		Skipped  int         `xml:"skipped,attr"`
		Time     string      `xml:"time,attr"`
		Suites   []testsuite `xml:"testsuite"`
	}{Failures: r.Count(Failed), Errors: r.Count(Broken), Skipped: r.Count(Pending), Time: seconds(r.Elapsed)}
	for _, f := range r.Files {
		s := testsuite{Name: f.Name, Time: seconds(f.Elapsed)}
		for _, t := range f.Tests {
			c := testcase{
				Name: xmlText(t.Name), Classname: f.Name, File: f.Name, Line: t.Line, Time: seconds(t.Elapsed),
				Out: xmlText(strings.Join(t.Output, "\n")),
			}
			switch t.Status {
			case Failed:
				s.Failures++
				c.Failure = about(t.Problem)
			case Broken:
				s.Errors++
				c.Error = about(t.Problem)
			case Pending:
				s.Skipped++
				c.Skipped = &detail{}
				if t.Problem != nil {
					c.Skipped.Message = xmlText(t.Problem.Msg)
				}
			}
			s.Cases = append(s.Cases, c)
		}
		if f.Problem != nil {
			s.Errors++
			s.Cases = append(s.Cases, testcase{Name: "load", Classname: f.Name, File: f.Name, Line: f.Problem.Line, Time: seconds(0), Error: about(f.Problem)})
		}
		s.Tests = len(s.Cases)
		out.Tests += s.Tests
		out.Suites = append(out.Suites, s)
	}
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return err
	}
	enc := xml.NewEncoder(w)
	enc.Indent("", "  ")
	if err := enc.Encode(out); err != nil {
		return err
	}
	_, err := io.WriteString(w, "\n")
	return err
}

// xmlText leaves out what XML cannot have; encoding/xml escapes the rest.
func xmlText(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' && r != '\n' && r != '\t' || r == 0xFFFE || r == 0xFFFF {
			return '�'
		}
		return r
	}, s)
}

// WriteTAP writes a report in the Test Anything Protocol, with what is known
// of a failure as a YAML block.
//
// Version 13, whose readers refuse a report that says it is 14.
//
// Format: https://testanything.org/tap-version-13-specification.html
func WriteTAP(w io.Writer, r *Report) error {
	var b strings.Builder
	n := 0
	line := func(ok bool, name, directive string, p *Problem) {
		n++
		word := "ok"
		if !ok {
			word = "not ok"
		}
		name = strings.NewReplacer("\\", "\\\\", "#", "\\#", "\n", " ", "\r", " ").Replace(name)
		fmt.Fprintf(&b, "%s %d - %s%s\n", word, n, name, directive)
		if p == nil || ok {
			return
		}
		fmt.Fprintf(&b, "  ---\n  message: %s\n  at: %s\n", yamlString(p.Msg), yamlString(p.pos()))
		if p.Diff != "" {
			fmt.Fprintf(&b, "  diff: %s\n", yamlString(p.Diff))
		}
		b.WriteString("  ...\n")
	}
	for _, f := range r.Files {
		for _, t := range f.Tests {
			directive := ""
			if t.Status == Pending {
				directive = " # SKIP"
				if t.Problem != nil {
					directive += " " + strings.ReplaceAll(t.Problem.Msg, "\n", " ")
				}
			}
			line(t.Status == Passed || t.Status == Pending, f.Name+": "+t.Name, directive, t.Problem)
		}
		if f.Problem != nil {
			line(false, f.Name, "", f.Problem)
		}
	}
	_, err := fmt.Fprintf(w, "TAP version 13\n1..%d\n%s", n, b.String())
	return err
}

// yamlString is a YAML double-quoted string, of which a JSON string is one.
func yamlString(s string) string {
	out, err := json.Marshal(s)
	if err != nil {
		panic("BUG: " + err.Error())
	}
	return string(out)
}

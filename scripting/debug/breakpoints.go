package debug

import (
	"cmp"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/google/go-dap"

	"github.com/weir-run/weir/scripting"
)

// points are the breakpoints of a session.
type points struct {
	last   int // id
	bySrc  map[string][]*point
	byLine map[place][]*point
	paths  map[string]string // of the client, by names of files
}

type place struct {
	file string
	line int
}

// point is a breakpoint.
type point struct {
	id        int
	requested int // line
	at        place
	invalid   string // why it cannot be used; "" if it can
	message   string // why it is nowhere; "" if it is somewhere
	condition string
	log       string
	count     *counted // nil: it stops always
	hits      int
	failed    bool // an error of the condition has been shown
}

func newPoints() points {
	return points{bySrc: map[string][]*point{}, byLine: map[place][]*point{}, paths: map[string]string{}}
}

// set replaces the breakpoints of a source.
func (ps *points) set(files []scripting.DebugFile, source string, requested []dap.SourceBreakpoint) (out []*point) {
	for _, r := range requested {
		ps.last++
		p := &point{id: ps.last, requested: r.Line, condition: strings.TrimSpace(r.Condition), log: r.LogMessage}
		var err error
		if p.count, err = parseCount(r.HitCondition); err != nil {
			p.invalid = err.Error()
		}
		out = append(out, p)
	}
	ps.bySrc[source] = out
	ps.bind(files)
	return out
}

// bind finds the statements of the breakpoints. It returns those that have moved.
func (ps *points) bind(files []scripting.DebugFile) (changed []*point) {
	clear(ps.byLine)
	for source, list := range ps.bySrc {
		f := fileOf(files, source)
		if f != nil {
			ps.paths[f.Name] = source
		}
		for _, p := range list {
			before := *p
			p.find(f)
			if p.message == "" {
				ps.byLine[p.at] = append(ps.byLine[p.at], p)
			}
			if before.at != p.at || before.message != p.message {
				changed = append(changed, p)
			}
		}
	}
	return changed
}

// find finds the first statement from the requested line on.
func (p *point) find(f *scripting.DebugFile) {
	p.at, p.message = place{}, p.invalid
	if p.invalid != "" {
		return
	}
	if f == nil {
		p.message = "the node does not use this file"
		return
	}
	i, _ := slices.BinarySearch(f.Lines, p.requested)
	if i == len(f.Lines) {
		p.message = "there is no statement in this line or below it"
		return
	}
	p.at = place{f.Name, f.Lines[i]}
}

func (p *point) shown() dap.Breakpoint {
	return dap.Breakpoint{Id: p.id, Verified: p.message == "", Message: p.message, Line: cmp.Or(p.at.line, p.requested)}
}

// at returns the breakpoints of a statement.
func (ps *points) at(st scripting.DebugStatement) []*point {
	if !st.First || len(ps.byLine) == 0 {
		return nil
	}
	return ps.byLine[place{st.File, st.Line}]
}

// fileOf returns the file of the script that is a file of the client, or nil. The
// client may have the file somewhere else than weir: then the ends of the paths are
// compared.
func fileOf(files []scripting.DebugFile, source string) *scripting.DebugFile {
	source = slashed(source)
	for i, f := range files {
		if f.Path != "" && slashed(f.Path) == source || f.Path == "" && shippedPath(f.Name) == source {
			return &files[i]
		}
	}
	for i, f := range files {
		if f.Path != "" && strings.HasSuffix(source, "/"+path.Clean(slashed(f.Name))) {
			return &files[i]
		}
	}
	return nil
}

func slashed(p string) string { return strings.ReplaceAll(p, `\`, "/") }

// shippedPath is a path for a script that ships with weir and is in no file.
func shippedPath(name string) string { return "weir:" + name }

// counted is a condition for the number of hits.
type counted struct {
	op string
	n  int
}

var countRe = regexp.MustCompile(`^\s*(==|=|>=|<=|>|<|%|)\s*(\d{1,9})\s*$`)

func parseCount(text string) (*counted, error) {
	if strings.TrimSpace(text) == "" {
		return nil, nil
	}
	m := countRe.FindStringSubmatch(text)
	if m == nil {
		return nil, fmt.Errorf("cannot use the hit count %q: write a number, or a number after ==, >, >=, <, <= or %%", text)
	}
	n, err := strconv.Atoi(m[2])
	if err != nil || n == 0 && m[1] == "%" {
		return nil, fmt.Errorf("cannot use the hit count %q: the number must be greater than 0", text)
	}
	return &counted{m[1], n}, nil
}

func (c *counted) stops(hits int) bool {
	switch c.op {
	case ">":
		return hits > c.n
	case ">=":
		return hits >= c.n
	case "<":
		return hits < c.n
	case "<=":
		return hits <= c.n
	case "%":
		return hits%c.n == 0
	}
	return hits == c.n
}

// hits reports whether the script stops at a breakpoint. It writes the message of a
// logpoint instead.
func (s *Session) hits(b *point, p scripting.Paused) bool {
	if b.condition != "" {
		v, err := p.Evaluate(0, b.condition)
		if err != nil {
			s.mu.Lock()
			first := !b.failed
			b.failed = true
			s.mu.Unlock()
			if first {
				s.Print(Stderr, fmt.Sprintf("%s:%d: cannot evaluate the condition %s: %v", b.at.file, b.at.line, b.condition, err))
			}
			return first
		}
		if !v.True {
			return false
		}
	}
	s.mu.Lock()
	b.hits++
	n := b.hits
	s.mu.Unlock()
	if b.count != nil && !b.count.stops(n) {
		return false
	}
	if b.log == "" {
		return true
	}
	s.Print(Console, logged(b.log, p))
	return false
}

var logRe = regexp.MustCompile(`\{[^{}]*\}`)

// logged returns the message of a logpoint with the values of the expressions in
// braces.
func logged(text string, p scripting.Paused) string {
	return logRe.ReplaceAllStringFunc(text, func(x string) string {
		v, err := p.Evaluate(0, x[1:len(x)-1])
		if err != nil {
			return "{" + err.Error() + "}"
		}
		if s, err := strconv.Unquote(v.Value); err == nil {
			return s
		}
		return v.Value
	})
}

package process

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/weir-run/weir/engine/regex"
)

// MultilineArguments are the arguments of stage.multiline.
type MultilineArguments struct {
	// The regular expression that the first line of a block matches.
	Expression string `alloy:"firstline,attr"`
	// How many lines a block has at most; 0 for any number. A block of 16 MiB is sent
	// as it is, and so are those that wait when all have 64 MiB together.
	MaxLines uint64 `alloy:"max_lines,attr,optional"`
	// How long to wait for the next line of a block.
	MaxWaitTime time.Duration `alloy:"max_wait_time,attr,optional"`
	// Whether line ends at the ends of lines are removed before they are joined.
	TrimNewlines bool `alloy:"trim_newlines,attr,optional"`
}

// SetToDefault sets the limits.
func (a *MultilineArguments) SetToDefault() {
	*a = MultilineArguments{MaxLines: 128, MaxWaitTime: 3 * time.Second, TrimNewlines: true}
}

// Validate checks that there is an expression and a positive time.
func (a *MultilineArguments) Validate() error {
	_, err := compileRegexp("firstline", a.Expression)
	if a.MaxWaitTime <= 0 {
		err = errors.Join(err, errors.New("max_wait_time must be greater than 0"))
	}
	return err
}

// multilineStage joins the lines of a block. The block has the time, labels,
// values and metadata of its first line.
type multilineStage struct {
	*MultilineArguments
	first  *regex.Regexp
	groups *groups
}

func (a *MultilineArguments) compile(c *compiler) (stage, error) {
	first, err := compileRegexp("firstline", a.Expression)
	if err != nil {
		return nil, err
	}
	s := &multilineStage{MultilineArguments: a, first: first}
	s.groups = c.groups(*a, func(g *group) entry {
		e := g.first
		e.line = string(g.text)
		return e
	})
	return s, nil
}

func (s *multilineStage) run(_ context.Context, p *pass) {
	until := p.pl.clock.Now().Add(s.MaxWaitTime).UnixNano()
	var rows []int
	var open []*group
	for _, r := range append([]int(nil), p.rows...) {
		first, err := s.first.Match(p.line[r], p.guard())
		if err != nil {
			p.tooSlow(r)
			rows = append(rows, r)
			continue
		}
		g := s.groups.groupOf(p, r, first)
		if g == nil { // the line precedes the first block
			rows = append(rows, r)
			continue
		}
		if first {
			if g.lines > 0 {
				rows = s.groups.completeGroup(p, g, rows)
			}
			g.first = p.entry(r)
			g.first.line = "" // the line is in text
			g.first.ownMemory()
		}
		line := p.line[r]
		if s.TrimNewlines {
			line = strings.TrimRight(line, "\r\n")
		}
		if g.lines > 0 && len(g.text) > 0 {
			g.text = append(g.text, '\n')
		}
		g.text = append(g.text, line...)
		g.lines++
		cut := s.groups.grown(p, g)
		p.pl.mem.counts.multilineCut.Add(float64(cut))
		if cut > 0 || uint64(g.lines) == s.MaxLines {
			rows = s.groups.completeGroup(p, g, rows)
			continue
		}
		if !g.touched {
			g.touched = true
			open = append(open, g)
		}
	}
	for _, g := range open {
		if g.lines > 0 {
			s.groups.setDeadline(g, until)
		}
	}
	s.groups.hold(p, open)
	p.rows = rows
}

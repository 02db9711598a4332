package process

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"time"
)

// CRIArguments are the arguments of stage.cri.
type CRIArguments struct {
	// How many streams may have the beginning of a line waiting for its end. When
	// there are more, all are sent as they are.
	MaxPartialLines int `alloy:"max_partial_lines,attr,optional"`
	// Maximum size of a line that is joined from parts. 0 uses only the built-in limits:
	// 16 MiB per line, and 64 MiB for all waiting parts. If those are exceeded, the
	// parts are sent as they are.
	MaxPartialLineSize uint64 `alloy:"max_partial_line_size,attr,optional"`
	// Whether lines are cut at max_partial_line_size.
	MaxPartialLineSizeTruncate bool `alloy:"max_partial_line_size_truncate,attr,optional"`
}

// SetToDefault lets 100 streams wait.
func (a *CRIArguments) SetToDefault() { *a = CRIArguments{MaxPartialLines: 100} }

// Validate checks that max_partial_lines is positive.
func (a *CRIArguments) Validate() error {
	if a.MaxPartialLines <= 0 {
		return fmt.Errorf("max_partial_lines is %d, must be greater than 0", a.MaxPartialLines)
	}
	return nil
}

// Warnings names arguments that have no effect.
func (a *CRIArguments) Warnings() []string {
	if (a.MaxPartialLineSize > 0) != a.MaxPartialLineSizeTruncate {
		return []string{"max_partial_line_size and max_partial_line_size_truncate have no effect without each other"}
	}
	return nil
}

// criStage reads the lines that container runtimes of Kubernetes write: time,
// stream, P for a part or F for the end of a line, and text. It joins the parts
// by stream.
//
// Format:
// https://github.com/kubernetes/design-proposals-archive/blob/main/node/kubelet-cri-logging.md
type criStage struct {
	CRIArguments
	*criKept
	flags, stream, content, time int // slots, negative for values that no stage reads
	derived                      *derivation
	kept                         *groups
}

// criKept is the state that survives reloads in addition to the groups.
type criKept struct{ waiting atomic.Int64 }

// endWait is how long a part waits for the end of its line. The end arrives as
// soon as the program writes it.
const endWait = time.Minute

func (a *CRIArguments) compile(c *compiler) (stage, error) {
	s := &criStage{CRIArguments: *a, flags: c.wanted("flags"), stream: c.wanted("stream"), content: c.wanted("content"), time: c.wanted("time")}
	s.derived = c.deriveStream()
	key := struct {
		name string
		CRIArguments
	}{"cri", *a}
	s.criKept = keepState(c, key, func() *criKept { return new(criKept) })
	s.kept = c.groups(key, s.finish)
	return s, nil
}

// finish returns the row of a group: the row of the last part with the text of
// all parts.
func (s *criStage) finish(g *group) entry {
	s.waiting.Add(-1)
	e := g.first
	e.line = string(g.text)
	return e
}

func (s *criStage) run(_ context.Context, p *pass) {
	rows := make([]int, 0, len(p.rows))
	var touched []*group
	for _, r := range p.rows {
		part, ok := parseCRI(p.line[r])
		if !ok {
			rows = append(rows, r)
			continue
		}
		s.extract(p, r, part)
		g := s.kept.groupOf(p, r, part.partial)
		switch {
		case part.partial:
			if !g.touched {
				g.touched = true
				touched = append(touched, g)
			}
			s.add(p, r, g)
			s.append(p, g, p.line[r])
			if n := s.kept.grown(p, g); n > 0 {
				p.pl.mem.counts.criFlushed.Add(float64(n))
				rows = s.kept.completeGroup(p, g, rows)
				continue
			}
			s.kept.setDeadline(g, p.pl.clock.Now().Add(endWait).UnixNano())
		case g != nil && g.lines > 0:
			s.append(p, g, p.line[r])
			g.first = p.entry(r)
			rows = s.kept.completeGroup(p, g, rows)
		default:
			rows = append(rows, r)
		}
	}
	p.rows = rows
	s.kept.hold(p, touched)
}

// extract replaces the line by the text of a part and sets the labels, values and
// time from the other fields.
func (s *criStage) extract(p *pass, row int, c criPart) {
	flag := "F"
	if c.partial {
		flag = "P"
	}
	p.setWanted(s.flags, row, value{text, flag})
	p.setWanted(s.stream, row, value{text, c.stream})
	p.setWanted(s.content, row, value{text, c.content})
	p.setWanted(s.time, row, value{text, c.time})
	p.setLine(row, c.content)
	if t, err := time.Parse(time.RFC3339Nano, c.time); err == nil {
		p.setTime(row, t.UnixNano())
	}
	p.setStream(row, s.derived.derive(p.stream[row], []value{{text, c.stream}}))
}

// add copies the row of a part to its group.
func (s *criStage) add(p *pass, row int, g *group) {
	if g.lines == 0 && s.waiting.Add(1) > int64(s.MaxPartialLines) {
		s.tooMany(p, g)
	}
	g.first = p.entry(row)
	g.first.ownMemory()
	g.first.line = ""
	g.lines++
}

// append adds text to a group, up to the maximum size.
func (s *criStage) append(p *pass, g *group, line string) {
	if s.MaxPartialLineSizeTruncate && s.MaxPartialLineSize > 0 {
		room := int(s.MaxPartialLineSize) - len(g.text)
		if len(line) > room {
			line = line[:max(room, 0)]
			p.pl.mem.counts.criTruncated.Inc()
		}
	}
	g.text = append(g.text, line...)
}

// tooMany makes all groups except but leave soon.
func (s *criStage) tooMany(p *pass, but *group) {
	n := 0
	s.kept.mu.Lock()
	for _, g := range s.kept.by {
		if g != but && g.wait != never && g.wait != 0 {
			g.wait = 0
			n++
		}
	}
	s.kept.mu.Unlock()
	p.pl.mem.counts.criFlushed.Add(float64(n))
	p.pl.mem.wakeAt(0)
}

// criPart is a line in the format of a container runtime.
type criPart struct {
	time, stream, content string
	partial               bool
}

// parseCRI parses a line. ok is false if the line is not in CRI format. Fields
// may be separated by several spaces. A line without a flag is complete. The text
// keeps its leading spaces.
func parseCRI(line string) (c criPart, ok bool) {
	var rest string
	c.time, rest, ok = strings.Cut(line, " ")
	if !ok || c.time == "" {
		return c, false
	}
	rest = strings.TrimLeft(rest, " ")
	c.stream, rest, _ = strings.Cut(rest, " ")
	if c.stream != "stdout" && c.stream != "stderr" {
		return c, false
	}
	// If there are several tags, the first one is the flag.
	flags, content, _ := strings.Cut(strings.TrimLeft(rest, " "), " ")
	switch flag, _, _ := strings.Cut(flags, ":"); flag {
	case "P":
		c.partial, c.content = true, content
	case "F":
		c.content = content
	default:
		c.content = rest
	}
	return c, true
}

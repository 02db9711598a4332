package scripting

import (
	"slices"
	"strings"
	"sync"
	"sync/atomic"
)

// Probe measures what scripts do, for those who test them. It is safe for
// concurrent use; nil measures nothing.
type Probe struct {
	// Coverage counts the statements that run; nil: it does not.
	Coverage *Coverage
	// Statements counts, as instructions, the statements of a language whose VM
	// does not count what it runs. It makes scripts slower.
	Statements bool

	instructions atomic.Int64
}

// Ran adds the instructions of one call.
func (p *Probe) Ran(instructions int64) {
	if p != nil {
		p.instructions.Add(instructions)
	}
}

// Instructions is what all calls have run so far. The same calls of the same
// scripts add up to the same on every machine.
func (p *Probe) Instructions() int64 { return p.instructions.Load() }

// Coverage counts the statements that run, by file. It is safe for concurrent
// use. The zero value is useful.
type Coverage struct {
	mu    sync.Mutex
	files map[string]*Covered // by path
}

// Covered is what ran of one file. A counter is a number from 0 on, given by
// the language that compiled the file.
type Covered struct {
	File File
	// Statements are counters of statements, with the lines they begin in.
	Statements []Counted
	// Branches are the ifs.
	Branches []Branch

	hits []atomic.Int64
}

// Counted is a counter and the line that it stands for.
type Counted struct{ Line, Counter int }

// Branch is an if: the counter of the statement, and one for each of its arms
// but the last, which runs when no other does.
type Branch struct {
	Line int
	If   int
	Arms []int
}

// Of returns what counts in a file that was compiled with so many counters: a
// file that several components use has one. Files that ship with weir are not
// counted, and nil is returned.
func (c *Coverage) Of(f File, counters int, statements []Counted, branches []Branch) *Covered {
	if f.Path == "" {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	known := c.files[f.Path]
	if known != nil && known.File.Text == f.Text {
		return known
	}
	if c.files == nil {
		c.files = map[string]*Covered{}
	}
	known = &Covered{File: f, Statements: statements, Branches: branches, hits: make([]atomic.Int64, counters)}
	c.files[f.Path] = known
	return known
}

// Files are those that were compiled, sorted by name.
func (c *Coverage) Files() []*Covered {
	c.mu.Lock()
	defer c.mu.Unlock()
	var out []*Covered
	for _, f := range c.files {
		out = append(out, f)
	}
	slices.SortFunc(out, func(a, b *Covered) int { return strings.Compare(a.File.Name, b.File.Name) })
	return out
}

// Hit counts.
func (c *Covered) Hit(counter int) { c.hits[counter].Add(1) }

// Hits returns how often a counter was hit.
func (c *Covered) Hits(counter int) int64 { return c.hits[counter].Load() }

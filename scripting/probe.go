package scripting

import (
	"slices"
	"strings"
	"sync"
	"sync/atomic"
)

// Probe measures what scripts do in tests. It is safe for concurrent use. A nil
// Probe measures nothing.
type Probe struct {
	// Coverage counts the executed statements; it may be nil.
	Coverage *Coverage
	// Statements enables counting statements as instructions, for a language whose
	// VM does not count instructions. It makes scripts slower.
	Statements bool

	instructions atomic.Int64
}

// Ran adds the instructions of one call.
func (p *Probe) Ran(instructions int64) {
	if p != nil {
		p.instructions.Add(instructions)
	}
}

// Instructions returns the number of instructions in all calls so far. It is
// the same on every machine for the same calls of the same scripts.
func (p *Probe) Instructions() int64 { return p.instructions.Load() }

// Coverage counts the executed statements by file. It is safe for concurrent
// use. The zero value is ready to use.
type Coverage struct {
	mu    sync.Mutex
	files map[string]*Covered // by path
}

// Covered contains the counters of one file. The language that compiled the
// file numbers them from 0.
type Covered struct {
	File File
	// Statements are the counters of statements, with their first lines.
	Statements []Counted
	// Branches are the if statements.
	Branches []Branch

	hits []atomic.Int64
}

// Counted is a counter and its line.
type Counted struct{ Line, Counter int }

// Branch is an if statement: the counter of the statement, and the counters of
// its branches except the last, which runs if no other branch does.
type Branch struct {
	Line int
	If   int
	Arms []int
}

// Of returns the counters of a file that was compiled with the given number of
// counters. Several components that use a file share them. It returns nil for
// files that ship with weir, which are not counted.
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

// Files returns the compiled files, sorted by name.
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

// Hit increments a counter.
func (c *Covered) Hit(counter int) { c.hits[counter].Add(1) }

// Hits returns the value of a counter.
func (c *Covered) Hits(counter int) int64 { return c.hits[counter].Load() }

package view

import (
	"strings"
	"sync"

	"github.com/weir-run/weir/engine/batch"
)

// Column contains one label, or the name, of every series, as passed to a
// projected callback. Values are cached by series and shared between series.
// The address of a value never changes, so a VM can return it without copying.
//
// All methods are safe for concurrent use.
type Column struct {
	use
	name string
	memo batch.Memo[*string] // nil if the label is missing
	max  int

	mu     sync.Mutex
	shared map[string]*string
}

// Column returns the column of a label, or the metric names if name is "name".
// Any label, including a label called "name", is also found as "labels."+name.
// A Column is valid for one batch; requesting it again for the next batch is
// cheap.
func (m *Window) Column(name string) *Column {
	if c, ok := m.cols[name]; ok {
		return c
	}
	g := m.cache
	label, isLabel := strings.CutPrefix(name, "labels.")
	switch {
	case m.logs: // lines have no metric name, so any name is a label
	case !isLabel && name == "name":
		label = batch.NameLabel
	case label == batch.NameLabel:
		label = "" // the metric name does not count as a label
	}
	c, _ := remembered(g, g.columns, name, func() (*Column, error) {
		return &Column{name: label, max: g.opts.MaxValues, shared: map[string]*string{}}, nil
	})
	cache(m, m.cols, name, c)
	return c
}

// At returns the value of a series, or nil if it is missing. The string is
// immutable.
func (c *Column) At(s *batch.Series) *string {
	if v, ok := c.memo.Get(s); ok {
		return v
	}
	text := s.Label(c.name)
	if text == "" {
		if s.Released() {
			return nil
		}
		return c.memo.Put(s, nil)
	}
	v := c.share(text)
	if s.Released() {
		return v
	}
	return c.memo.Put(s, v)
}

func (c *Column) share(text string) *string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if v, ok := c.shared[text]; ok {
		return v
	}
	if len(c.shared) >= c.max {
		clear(c.shared)
	}
	// Clone, because text is a substring of a series' labels and would keep all of
	// them alive.
	text = strings.Clone(text)
	c.shared[text] = &text
	return &text
}

package view

import (
	"strings"
	"sync"

	"github.com/weir-run/weir/engine/batch"
)

// Column is one label, or the name, of every series: what a projected callback
// gets. Values are remembered by series and shared between series, each at an
// address that does not change, so that a VM can hand them out without copying.
//
// All methods are safe for concurrent use.
type Column struct {
	use
	name string
	memo batch.Memo[*string] // nil when the label is missing
	max  int

	mu     sync.Mutex
	shared map[string]*string
}

// Column returns the column of a label, or of the metric name for "name". A
// label of that name, as any other, is also found as "labels.name". It
// serves one batch; asking again in the next one is cheap.
func (m *Window) Column(name string) *Column {
	if c, ok := m.cols[name]; ok {
		return c
	}
	g := m.cache
	label, isLabel := strings.CutPrefix(name, "labels.")
	switch {
	case m.logs: // where any name is a label's
	case !isLabel && name == "name":
		label = batch.NameLabel
	case label == batch.NameLabel:
		label = "" // the name is no label
	}
	c, _ := remembered(g, g.columns, name, func() (*Column, error) {
		return &Column{name: label, max: g.opts.MaxValues, shared: map[string]*string{}}, nil
	})
	cache(m, m.cols, name, c)
	return c
}

// At returns the value of a series, nil when it is missing. The string is
// never written to.
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
	// text is a part of a series' labels and must not keep them all alive.
	text = strings.Clone(text)
	c.shared[text] = &text
	return &text
}

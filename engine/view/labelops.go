package view

import (
	"fmt"

	"github.com/weir-run/weir/engine/batch"
)

// labelEdit is an edit of a label that is the same for every series.
type labelEdit struct {
	op   byte // '=' set, '-' drop, '>' rename, '&' keep
	a, b string
}

// editMemo caches the result of an edit for each series.
type editMemo struct {
	use
	op   uint64
	memo batch.Memo[*batch.Series]
}

func (e labelEdit) apply(b *batch.Builder) {
	switch e.op {
	case '=':
		b.Set(e.a, e.b)
	case '-':
		b.Set(e.a, "")
	case '>':
		if v := b.Get(e.a); v != "" {
			b.Set(e.b, v)
			b.Set(e.a, "")
		}
	case '&':
		keepLabels(b, e.a)
	}
}

// SetLabelAll sets a label of every row. An empty value removes it.
func (m *Window) SetLabelAll(name, value string) error {
	if err := checkLabelName(name, m.logs); err != nil {
		return err
	}
	if err := checkLabelValue(name, value); err != nil {
		return err
	}
	if err := m.chargeRows(len(m.series.rows), len(name)+len(value)); err != nil {
		return err
	}
	m.editAll(labelEdit{'=', name, value})
	return nil
}

// DropLabel removes a label from every row.
func (m *Window) DropLabel(name string) error {
	if err := checkLabelName(name, m.logs); err != nil {
		return err
	}
	m.editAll(labelEdit{'-', name, ""})
	return nil
}

// RenameLabel renames a label of every row that has it. If the row already has
// a label with the new name, it is replaced.
func (m *Window) RenameLabel(name, to string) error {
	if err := checkLabelName(name, m.logs); err != nil {
		return err
	}
	if err := checkLabelName(to, m.logs); err != nil {
		return err
	}
	if name != to {
		m.editAll(labelEdit{'>', name, to})
	}
	return nil
}

func (m *Window) editAll(k labelEdit) {
	m.traceEdit()
	m.flush()
	e, ok := m.edits[k]
	if !ok {
		e = m.cache.edit(k)
		cache(m, m.edits, k, e)
	}
	from := m.currentShape()
	if from != nil {
		if st := from.step(op{e.op, k.op}); st != nil {
			m.setShape(st.to)
			return
		}
	}
	m.passing = false
	for i, s := range m.series.rows {
		if len(m.flags) > 0 && m.flags[i]&isDropped != 0 {
			continue
		}
		d, ok := e.memo.Get(s)
		if !ok {
			m.edit.Reset(s)
			k.apply(&m.edit)
			d = m.derived(&e.memo, s)
		}
		if d != s {
			m.series.write()[i] = d
		}
	}
	m.done(from, op{e.op, k.op}, !m.passing)
}

// derived converts m.edit to a handle derived from s and caches it.
func (m *Window) derived(memo *batch.Memo[*batch.Series], s *batch.Series) *batch.Series {
	d, lasting := m.cache.derive(s, &m.edit, m.now)
	if !lasting {
		m.passing = true
		return d
	}
	return memo.Put(s, d)
}

// MapLabel replaces a label of every row that has it with the result of fn for
// its value. fn is called once per distinct value. Its results are cached for
// site, which identifies the function. site must be the same in every VM of the
// cache, for example a pointer into its shared code. If site is nil, nothing is
// cached beyond this call.
//
// If keep is true, the label does not change. Otherwise, an empty result
// removes it. An error of fn stops the operation. It is returned unchanged and
// is not cached.
func (m *Window) MapLabel(site any, name string, fn func(value string) (to string, keep bool, err error)) error {
	m.traceEdit()
	if err := checkLabelName(name, m.logs); err != nil {
		return err
	}
	m.flush()
	var st *mapSite
	k := siteKey{site, name}
	if st = m.sites[k]; st == nil {
		if site == nil {
			st = newSite(0, m.cache.opts.MaxValues)
		} else {
			st = m.cache.site(k)
			cache(m, m.sites, k, st)
		}
	}
	from := m.currentShape()
	if from != nil {
		if known := from.step(op{st.op, 'm'}); known != nil {
			m.setShape(known.to)
			return nil
		}
	}
	m.passing = false
	for i := range m.series.rows { // do not range over a copy: fn may edit the batch
		if len(m.flags) > 0 && m.flags[i]&isDropped != 0 {
			continue
		}
		s := m.series.rows[i]
		d, ok := st.memo.Get(s)
		if !ok {
			var err error
			if d, err = m.mapLabel(st, s, name, fn); err != nil {
				m.forgetShape()
				return err
			}
			if edited := m.series.rows[i]; edited != s {
				s = edited
				if d, err = m.mapLabel(st, s, name, fn); err != nil {
					m.forgetShape()
					return err
				}
			}
		}
		if d != s {
			m.series.write()[i] = d
		}
	}
	m.done(from, op{st.op, 'm'}, !m.passing)
	return nil
}

func (m *Window) mapLabel(st *mapSite, s *batch.Series, name string, fn func(string) (string, bool, error)) (*batch.Series, error) {
	value := s.Label(name)
	if value == "" {
		if s.Released() {
			return s, nil
		}
		return st.memo.Put(s, s), nil
	}
	to, ok := st.value(value)
	if !ok {
		var keep bool
		var err error
		m.forgetShape() // fn may edit the batch while it is partly mapped
		to, keep, err = fn(value)
		m.flush() // the edits of fn; m.edit is used below
		if err != nil {
			return nil, err
		}
		if keep {
			to = value
		}
		if err := checkLabelValue(name, to); err != nil {
			return nil, fmt.Errorf("%w, which was made of %q", err, value)
		}
		if err := m.chargeRows(1, len(to)); err != nil {
			return nil, err
		}
		to = st.remember(value, to)
	}
	m.edit.Reset(s)
	m.edit.Set(name, to)
	return m.derived(&st.memo, s), nil
}

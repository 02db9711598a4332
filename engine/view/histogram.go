package view

import "github.com/weir-run/weir/engine/batch"

// scaleHistograms multiplies the native histograms of matching rows. Scale has
// already multiplied their sums in the value column.
func (m *Metrics) scaleHistograms(p *predicate, factor float64) error {
	for j, h := range m.hists.rows {
		i := h.Row
		if !m.Alive(i) || m.isStripped(i) || batch.IsStale(m.v.rows[i]) {
			continue
		}
		if p != nil {
			if ok, err := m.matches(p, i); err != nil {
				return err
			} else if !ok {
				continue
			}
		}
		f := h.Float
		if f == nil {
			f = h.Int.ToFloat(nil)
		} else {
			f = f.Copy()
		}
		m.hists.write()[j] = batch.Histogram{Row: i, Float: f.Mul(factor)}
	}
	return nil
}

package set

import (
	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/expr"
	"github.com/weir-run/weir/engine/view"
)

// once sets, for one batch, the labels that depend only on labels.
type once struct {
	edits  []edit
	column []*batch.Series
	add    func(argument string, s *batch.Series, err error) // records a failure

	x    expr.Sample
	asIs []bool // rows on which an expression failed; nil if there are none
}

// run sets the labels. It returns false if the labels together are too large; the
// batch is then forwarded unchanged.
func (o *once) run(w *view.Window) bool {
	if len(o.edits) == 0 {
		return true
	}
	if err := w.RunSeries(o.series); err != nil {
		o.add(o.edits[0].argument, o.column[0], err)
		return false
	}
	return true
}

// series is called once for each series, or for each row if the expression fails.
func (o *once) series(i int, s *view.Series) error {
	o.x.Series = o.column[i]
	for _, e := range o.edits {
		text, err := e.prog.Text(&o.x)
		if err == nil {
			err = setSeries(s, e.label, text)
		}
		if err != nil {
			o.add(e.argument, o.column[i], err)
			if o.asIs == nil {
				o.asIs = make([]bool, len(o.column))
			}
			o.asIs[i] = true
			return view.ErrSkip
		}
	}
	return nil
}

// failedOn reports whether row i is to be forwarded unchanged.
func (o *once) failedOn(i int) bool { return o.asIs != nil && o.asIs[i] }

func setSeries(s *view.Series, label, text string) error {
	if label == batch.NameLabel {
		return s.SetName(text)
	}
	return s.SetLabel(label, text)
}

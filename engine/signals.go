package engine

import (
	"fmt"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/config"
	"github.com/weir-run/weir/engine/flow"
)

// anySignal is the set of signals of a receiver about which nothing is known.
const anySignal = batch.SignalMetrics | batch.SignalLogs

// signals are the signals that a node accepts and sends: those of its
// registration, or for a node that forwards data, the subset that its arguments
// allow.
type signals struct {
	accepts, sends batch.Signals
	why            string // why not all signals of the registration are supported
}

// signals returns the signals of a node with the given arguments. refs are the
// receivers in them, or empty if they are not known. taken returns the signals
// that a receiver takes.
func (w *wanted) signals(args any, refs []config.ReceiverRef, taken func(*flow.Receiver) batch.Signals) signals {
	s := signals{accepts: w.reg.Accepts, sends: w.reg.Sends}
	if w.reg.Passes == nil {
		return s
	}
	fits, why := w.reg.Passes(args)
	s = signals{fits, fits, why}
	var out batch.Signals
	for _, r := range refs {
		out |= taken(r.Receiver)
	}
	// If no receiver takes any of its signals, that is the error.
	if left := fits & out; left != 0 && left != fits {
		s = signals{left, left, fmt.Sprintf("none of its receivers takes %s", fits&^left)}
	}
	return s
}

// findSignals determines the signals of the components in a plan, receivers
// before their senders.
func (p *plan) findSignals() {
	begun := map[*wanted]bool{} // dependency cycles are reported elsewhere
	var find func(w *wanted)
	taken := func(r *flow.Receiver) batch.Signals {
		to := p.wanted[r.Node()]
		if to == nil || !to.usable() {
			return anySignal
		}
		find(to)
		return to.signal.accepts
	}
	find = func(w *wanted) {
		if begun[w] {
			return
		}
		begun[w] = true
		switch {
		case w.failed || !w.usable():
			w.signal = signals{accepts: w.reg.Accepts, sends: w.reg.Sends}
		case w.certain:
			w.signal = w.signals(w.args, w.refs, taken)
		default:
			w.signal = w.signals(w.args, nil, taken)
		}
	}
	for _, w := range p.list {
		if w.kind == kindComponent {
			find(w)
		}
	}
}

// checkSignals returns an error for each receiver in a block's arguments that
// takes none of the block's signals.
func (p *plan) checkSignals(w *wanted) (ds config.Diagnostics) {
	if w.kind != kindComponent {
		return nil
	}
	said := map[string]bool{}
	for _, r := range w.refs {
		to := p.wanted[r.Receiver.Node()]
		if to == nil || !to.usable() || said[r.Path+to.id] {
			continue
		}
		if w.signal.sends&to.signal.accepts != 0 {
			continue
		}
		said[r.Path+to.id] = true
		ids := w.m.locals([]string{to.id, w.id})
		d := config.Diagnostic{Span: w.block.SpanOf(r.Path),
			Msg: fmt.Sprintf("%s: %s accepts %s, but %s sends %s", r.Path, ids[0], to.signal.accepts, ids[1], w.signal.sends)}
		if w.signal.sends&to.reg.Accepts != 0 {
			d.Hint = ids[0] + ": " + to.signal.why
		} else if w.reg.Sends&to.signal.accepts != 0 {
			d.Hint = ids[1] + ": " + w.signal.why
		}
		ds = append(ds, d)
	}
	return ds
}

// acceptedSignals returns the signals that a receiver takes, as far as they are
// known.
func acceptedSignals(r *flow.Receiver) batch.Signals {
	if s := r.Accepts(); s != 0 {
		return s
	}
	return anySignal
}

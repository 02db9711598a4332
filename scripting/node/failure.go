package node

import (
	"cmp"
	"errors"

	"github.com/weir-run/weir/scripting"
)

// losses are the failures of a call and the affected records.
type losses struct {
	first   *scripting.Error // of the call
	whole   *scripting.Error // the error affects the whole batch
	held    *heldError       // the batch is not sent
	dropped int              // rows lost to errors
	kept    []failures       // for the quarantine
	stored  int              // number of rows in kept
}

// reportError reports an error of the call.
func (k *call) reportError(e *scripting.Error) {
	if !k.replay {
		k.c.report.errored(e)
	}
	if k.observe != nil {
		k.observe(e)
	}
	k.first = cmp.Or(k.first, e)
}

// failed records an error that affects the record in a row.
func (k *call) failed(row int, e *scripting.Error) (drop bool) {
	k.reportError(e)
	if k.sends != nil {
		k.sends.failed = append(k.sends.failed, failedRow{row, e})
		return true
	}
	switch {
	case k.replay:
		if k.held == nil {
			k.held = &heldError{err: e}
		}
	case k.on == scripting.OnErrorDrop:
		k.dropped++
		return true
	case k.on == scripting.OnErrorQuarantine, k.on == scripting.OnErrorHold:
		k.quarantineRecord(row, e)
		k.stored++
		return true
	}
	return false
}

// fail records an error that affects a whole batch of n records.
func (k *call) fail(n int, e *scripting.Error) {
	k.whole, k.dropped, k.stored = e, 0, 0
	if k.replay || k.asksAgain(n) {
		observe := k.observe
		k.observe = nil // the consequences are not known yet
		k.reportError(e)
		k.observe = observe
		k.held = &heldError{err: e, outside: k.OutsideFailed || errors.Is(e, errWaited)}
		return
	}
	k.reportError(e)
	switch k.on {
	case scripting.OnErrorDrop:
		k.dropped = n
	case scripting.OnErrorQuarantine:
		k.stored = n
	}
}

// asksAgain reports whether the script, which failed on n records, is called
// again for them, or for parts of them. Data is sent to an external system
// twice only if on_error specifies retries until success.
func (k *call) asksAgain(n int) bool {
	switch {
	case k.final:
		return false
	case k.on == scripting.OnErrorHold:
		return true
	case k.outside || k.OutsideFailed:
		return false
	case k.isPiece():
		return true
	}
	return n > 1 && !k.c.trust.broken()
}

// holdRows holds the batch of n records if the script failed on each of them.
// If it succeeded on some, the failed ones are withheld instead.
func (k *call) holdRows(n int) {
	if k.on == scripting.OnErrorHold && !k.final && k.held == nil && k.stored > 0 && (k.stored >= n || k.OutsideFailed) {
		k.held = &heldError{err: k.first, rows: true, outside: k.OutsideFailed}
		k.stored, k.kept = 0, nil
	}
}

// secure ensures that records on which the script failed are not lost. If it
// returns an error, nothing of b may be sent.
func (k *call) secure(b payload) error {
	switch {
	case k.held != nil:
		return k.held
	case k.stored == 0:
		return nil
	}
	err := k.store(b, k.whole)
	if err != nil {
		e := scripting.AsError(err)
		e.Hook = b.Signal().String()
		e.Hint = "the batch is refused, so that its source sends it again; make room, or lower script.quarantine.max_size"
		k.c.report.errored(e)
		k.first = e
	}
	return err
}

package node

import (
	"context"

	"github.com/weir-run/weir/scripting"
)

// terms are the conditions for calling the hooks with a batch, or with a part
// of one.
type terms struct {
	// on specifies what happens to records that the script fails on. If final is
	// set, the script is not called again for them.
	on    scripting.OnError
	final bool

	// replay is set if the records come out of the quarantine. Errors are reported
	// to the client that requested the replay, and not elsewhere.
	replay bool

	// part is set for a part of a batch that has already been admitted and whose
	// result is reported as a whole. In mode partition, pool has the VM of its
	// shard; nil: any VM.
	part bool
	pool *pool

	// admitted is set for a share of a batch that has been admitted as a whole: see
	// processShares.
	admitted bool

	// total is set for a part of a batch that the script failed on. It is the
	// number of records in the batch, whose limits its parts share. A success on
	// such a part says little about the script.
	total int

	observe func(*scripting.Error) // called with each error in a test; may be nil
}

// newTerms returns the terms of a batch that has just arrived.
func (c *Component) newTerms(ctx context.Context) terms {
	return terms{on: c.block.OnError, observe: observer(ctx)}
}

// isPiece reports whether the records are a part of a batch that the script
// failed on.
func (t *terms) isPiece() bool { return t.total > 0 }

// isolates reports whether a failed call is immediately followed by calls for
// parts of the records. Held batches are retried in hold.
func (t *terms) isolates() bool {
	return t.on != scripting.OnErrorHold && !t.final && !t.replay && !t.isPiece()
}

// shareOf returns the share of a part with the given number of records in a
// limit of its batch.
func (t *terms) shareOf(records int, limit int64) int64 {
	if t.total <= records {
		return limit
	}
	return limit / int64(t.total) * int64(records)
}

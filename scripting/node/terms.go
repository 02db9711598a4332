package node

import (
	"context"

	"github.com/weir-run/weir/scripting"
)

// terms say under which conditions the hooks are called with a batch, or with a
// part of one.
type terms struct {
	// on says what becomes of records that the script fails on. If final is set,
	// the script is not called again for them.
	on    scripting.OnError
	final bool

	// replay is set if the records come out of the quarantine. Errors are told to
	// whoever asked for the replay and to nobody else.
	replay bool

	// part is set for a part of a batch that has been admitted and whose end is
	// reported as one. In mode partition, pool has the VM of its shard; nil: any VM.
	part bool
	pool *pool

	// total is set for a part of a batch that the script failed on: it is how many
	// records the batch has, whose limits the part has a share in. That the script
	// works on such a part says little about it.
	total int

	observe func(*scripting.Error) // told of each error by a test; nil: there is none
}

// newTerms returns the terms of a batch that has just arrived.
func (c *Component) newTerms(ctx context.Context) terms {
	return terms{on: c.block.OnError, observe: observer(ctx)}
}

// isPiece reports whether the records are a part of a batch that the script failed
// on.
func (t *terms) isPiece() bool { return t.total > 0 }

// isolates reports whether a call that failed on the records is followed at once by
// calls for parts of them. Batches that are held are tried again in hold.
func (t *terms) isolates() bool {
	return t.on != scripting.OnErrorHold && !t.final && !t.replay && !t.isPiece()
}

// shareOf returns the share of a part of so many records in a limit of its batch.
func (t *terms) shareOf(records int, limit int64) int64 {
	if t.total <= records {
		return limit
	}
	return limit / int64(t.total) * int64(records)
}

package outbox

import (
	"errors"
	"fmt"
	"time"

	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/journal"
)

// Arguments are the limits of the queue on disk.
type Arguments struct {
	// Maximum size on disk for each endpoint; on_full sets the action when it is
	// reached.
	MaxSize component.Size `alloy:"max_size,attr,optional"`
	// Maximum age of unsent samples; older samples are dropped and counted. The journal
	// of a removed endpoint or node, such as a node of an item that was removed from a
	// foreach, is kept for the same time: its samples are sent if the node is added
	// again, or another node with the same URL, headers and user. max_keepalive_time of
	// wal sets the same limit.
	MaxAge time.Duration `alloy:"max_age,attr,optional"`
	// When written data is flushed to the disk: "none" (the kernel decides), "interval"
	// (every second) or "always" (before a batch is accepted).
	Fsync string `alloy:"fsync,attr,optional"`
	// Action when the journal is full: "block" (the sources wait) or "drop_oldest".
	OnFull string `alloy:"on_full,attr,optional"`
}

// DefaultMaxAge is the default of max_age.
const DefaultMaxAge = 8 * time.Hour

// SetToDefault sets the defaults.
func (a *Arguments) SetToDefault() {
	*a = Arguments{MaxSize: 10 << 30, MaxAge: DefaultMaxAge, Fsync: string(journal.FsyncNone), OnFull: string(journal.OnFullBlock)}
}

// Validate returns all errors, joined.
func (a *Arguments) Validate() error {
	var errs []error
	add := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if a.MaxSize < 1<<20 {
		add("max_size must be at least 1MiB, not %d bytes", int64(a.MaxSize))
	}
	if a.MaxAge <= 0 {
		add("max_age must be greater than 0")
	}
	switch journal.Fsync(a.Fsync) {
	case journal.FsyncNone, journal.FsyncInterval, journal.FsyncAlways:
	default:
		add(`fsync must be "none", "interval" or "always", not %q`, a.Fsync)
	}
	switch journal.OnFull(a.OnFull) {
	case journal.OnFullBlock, journal.OnFullDropOldest:
	default:
		add(`on_full must be "block" or "drop_oldest", not %q`, a.OnFull)
	}
	return errors.Join(errs...)
}

// Limits returns the limits for the journal.
func (a *Arguments) Limits() journal.Limits {
	return journal.Limits{
		MaxSize: int64(a.MaxSize), MaxAge: a.MaxAge, Fsync: journal.Fsync(a.Fsync), OnFull: journal.OnFull(a.OnFull),
	}
}

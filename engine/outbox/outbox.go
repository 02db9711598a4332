package outbox

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/clock"
	"github.com/weir-run/weir/engine/journal"
)

// Grace is the maximum time for sending when weir stops. Data that remains in
// the journal is sent after the next start.
const Grace = 3 * time.Second

// UnhealthyAfter is how long an outbox may fail to deliver before its node becomes
// unhealthy.
const UnhealthyAfter = 10 * time.Second

// Outbox is a journal in use with the account of its accepted records. It is
// the common part of Remote and Queue. Its methods are safe for concurrent use.
type Outbox struct {
	Account
	Log   *slog.Logger
	Clock clock.Clock
	// Journal is nil while the journal is not open. It changes only while calls
	// and mu are held. Calls between Enter and Leave, and senders, may read it
	// without these locks.
	Journal *journal.Journal

	o        options
	comeback comeback

	// calls is held by every call that writes to the journal.
	calls   sync.RWMutex
	refuses bool // calls may no longer write to the journal

	mu      sync.Mutex
	config  config
	opened  chan struct{} // closed while the journal is open
	openErr error

	configuring sync.Mutex // held while the newest config is applied to the journal
}

// options do not change during the life of an outbox.
type options struct {
	root     string // directory of the journals
	rows     string // the name of its records: "samples"
	stopping error  // the error of waiting calls when it stops
	changed  func() // called when Err may have changed
	// shards is the number of shards that a journal must have. 0 means any number.
	shards int
}

// config contains the owner and the limits of the journal.
type config struct {
	owner  journal.Owner
	limits journal.Limits
}

// init initialises b. signalOf returns the signal of a kind of block.
func (b *Outbox) init(o options, log *slog.Logger, c clock.Clock, reasons []string, signalOf func(kind uint8) batch.Signals) {
	b.o, b.Log, b.Clock, b.opened = o, log, c, make(chan struct{})
	b.Account.reasons, b.Account.signalOf = reasons, signalOf
}

// Enter begins a call that writes to the journal. It returns false if the
// journal is not open or the outbox is stopping. Leave ends the call.
func (b *Outbox) Enter() bool {
	b.calls.RLock()
	if b.Journal == nil || b.refuses {
		b.calls.RUnlock()
		return false
	}
	return true
}

// Leave ends a call after Enter returned true.
func (b *Outbox) Leave() { b.calls.RUnlock() }

// refuse makes Enter return false, and returns when the last call has left.
func (b *Outbox) refuse() {
	b.calls.Lock()
	defer b.calls.Unlock()
	b.refuses = true
}

// Room waits until the journal is open and below its size limit. It returns an
// error if ctx ends or stopped is closed.
func (b *Outbox) Room(ctx context.Context, stopped <-chan struct{}) error {
	j, opened := b.current()
	if j == nil {
		select {
		case <-opened:
			return nil
		case <-stopped:
			return b.o.stopping
		case <-ctx.Done():
			return fmt.Errorf("the journal is not open: %w", context.Cause(ctx))
		}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	var watch sync.WaitGroup
	defer watch.Wait()
	defer cancel(nil)
	watch.Go(func() {
		select {
		case <-stopped:
			cancel(b.o.stopping)
		case <-ctx.Done():
		}
	})
	return j.Room(ctx)
}

// current returns the journal, or nil while it is not open, and a channel that
// is closed when it opens.
func (b *Outbox) current() (*journal.Journal, <-chan struct{}) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.Journal, b.opened
}

// open opens the journal, with back-off, until ctx ends. It reports whether the
// journal is open. shards returns the number of shards for a new journal.
// ready, which may be nil, is called after Journal is set and before Enter
// returns true.
func (b *Outbox) open(ctx context.Context, shards func() int, ready func()) bool {
	for backoff := time.Second; ; backoff = min(2*backoff, 30*time.Second) {
		err := b.tryOpen(ctx, shards(), ready)
		if err == nil {
			return true
		}
		if ctx.Err() != nil {
			return false
		}
		b.mu.Lock()
		first := b.openErr == nil
		b.openErr = err
		b.mu.Unlock()
		if first {
			b.Log.Error("cannot open the journal; "+b.o.rows+" wait", "err", err)
		}
		b.o.changed()
		if clock.Sleep(ctx, b.Clock, backoff) != nil {
			return false
		}
	}
}

func (b *Outbox) tryOpen(ctx context.Context, shards int, ready func()) error {
	b.mu.Lock()
	c, j := b.config, b.Journal
	b.mu.Unlock()
	if j != nil {
		return nil
	}
	j, err := journal.Claim(ctx, b.o.root, journal.Options{Shards: shards, Limits: c.limits, Owner: c.owner, Clock: b.Clock, Logger: b.Log})
	if err != nil {
		return err
	}
	if err = ctx.Err(); err == nil && b.o.shards != 0 && j.Shards() != b.o.shards {
		err = fmt.Errorf("it has %d shards and not %d: another component's blocks are in it", j.Shards(), b.o.shards)
	}
	if err != nil {
		j.Close()
		return err
	}
	b.calls.Lock()
	b.mu.Lock()
	b.Journal = j
	b.mu.Unlock()
	if ready != nil {
		ready()
	}
	b.calls.Unlock()
	b.mu.Lock()
	failed, now := b.openErr != nil, b.config
	b.openErr = nil
	close(b.opened)
	b.mu.Unlock()
	if now != c { // it changed in the meantime
		b.applyConfig()
	}
	if failed {
		b.Log.Info("the journal is open")
	}
	b.o.changed()
	return nil
}

// configure changes the owner and the limits of the journal.
func (b *Outbox) configure(c config) {
	b.mu.Lock()
	same := b.config == c
	b.config = c
	b.mu.Unlock()
	if !same {
		b.applyConfig()
	}
}

// applyConfig applies the newest config to the journal if it is open.
func (b *Outbox) applyConfig() {
	b.configuring.Lock()
	defer b.configuring.Unlock()
	b.mu.Lock()
	j, c := b.Journal, b.config
	b.mu.Unlock()
	if j == nil {
		return
	}
	if err := j.Configure(c.owner, c.limits); err != nil {
		b.Log.Warn("cannot note in the journal what it is for and its limits; they are in effect", "err", err)
	}
}

// close closes the journal if it is open. Senders must no longer use it. The
// account is kept. calls is held.
func (b *Outbox) close() {
	j := b.Journal
	if j == nil {
		return
	}
	if err := j.Close(); err != nil {
		b.Log.Error("the journal did not close well", "err", err)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.Account.keep(j.Stats())
	b.Journal, b.opened = nil, make(chan struct{})
}

// Err returns why the journal cannot be opened or written, or nil if it can.
func (b *Outbox) Err() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.openErr != nil:
		return fmt.Errorf("cannot open the journal: %w", b.openErr)
	case b.Journal == nil:
		return nil
	}
	return b.Journal.Unwritten()
}

// Dir returns the directory of the journal, or "" while it is not open.
func (b *Outbox) Dir() string {
	if j, _ := b.current(); j != nil {
		return j.Dir()
	}
	return ""
}

// Stats returns the current statistics. The caller owns the maps.
func (b *Outbox) Stats() Stats {
	b.mu.Lock() // so that a journal that is being closed is not counted twice
	defer b.mu.Unlock()
	var st journal.Stats
	if b.Journal != nil {
		st = b.Journal.Stats()
	}
	return b.Account.stats(st)
}

// OldestAge returns how long the oldest record has waited, as text.
func (b *Outbox) OldestAge(st Stats) string {
	if st.Journal.Oldest.IsZero() {
		return "0s"
	}
	return b.Clock.Now().Sub(st.Journal.Oldest).Round(time.Second).String()
}

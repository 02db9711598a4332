package intake

import "sync/atomic"

// Budget is a memory limit that requests share. The zero value allows no
// memory. It is safe for concurrent use.
type Budget struct {
	limit atomic.Int64
	used  atomic.Int64
}

// SetLimit sets the limit in bytes.
func (b *Budget) SetLimit(n int64) { b.limit.Store(n) }

// Used returns the number of reserved bytes.
func (b *Budget) Used() int64 { return b.used.Load() }

// reserve reserves n bytes if they are available.
func (b *Budget) reserve(n int64) bool {
	if b.used.Add(n) > b.limit.Load() {
		b.used.Add(-n)
		return false
	}
	return true
}

// Give releases n bytes.
func (b *Budget) Give(n int64) { b.used.Add(-n) }

// Reservation is the memory that one request has reserved.
type Reservation struct {
	b     *Budget
	held  int64
	needs int64 // held, plus the amount that was refused
}

// Reservation returns an empty reservation.
func (b *Budget) Reservation() *Reservation { return &Reservation{b: b} }

// Reserve reserves n more bytes if they are available.
func (r *Reservation) Reserve(n int64) bool {
	if !r.b.reserve(n) {
		r.needs = r.held + n
		return false
	}
	r.held += n
	return true
}

// Needs returns the minimum number of bytes that the request needs, after
// Reserve has refused.
func (r *Reservation) Needs() int64 { return r.needs }

// Held returns the number of reserved bytes.
func (r *Reservation) Held() int64 { return r.held }

// Keep excludes n bytes from Release. The caller must release them with Give.
func (r *Reservation) Keep(n int64) { r.held -= n }

// Release releases the reserved bytes.
func (r *Reservation) Release() {
	r.b.Give(r.held)
	r.held = 0
}

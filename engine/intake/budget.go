package intake

import "sync/atomic"

// Budget is memory that requests share. The zero value has none. It is safe for
// concurrent use.
type Budget struct {
	limit atomic.Int64
	used  atomic.Int64
}

// SetLimit sets how many bytes there are.
func (b *Budget) SetLimit(n int64) { b.limit.Store(n) }

// Used returns how many bytes are taken.
func (b *Budget) Used() int64 { return b.used.Load() }

// reserve takes n bytes if they are there.
func (b *Budget) reserve(n int64) bool {
	if b.used.Add(n) > b.limit.Load() {
		b.used.Add(-n)
		return false
	}
	return true
}

// Give gives n bytes back.
func (b *Budget) Give(n int64) { b.used.Add(-n) }

// Reservation is what one request has reserved.
type Reservation struct {
	b     *Budget
	held  int64
	needs int64 // held, and what could not be had
}

// Reservation returns one that holds nothing.
func (b *Budget) Reservation() *Reservation { return &Reservation{b: b} }

// Reserve takes n bytes more if they are there.
func (r *Reservation) Reserve(n int64) bool {
	if !r.b.reserve(n) {
		r.needs = r.held + n
		return false
	}
	r.held += n
	return true
}

// Needs returns how many bytes the request needs at least, when Reserve has
// refused.
func (r *Reservation) Needs() int64 { return r.needs }

// Held returns how many bytes it has.
func (r *Reservation) Held() int64 { return r.held }

// Keep lets n bytes outlive Release: whoever has them then gives them back.
func (r *Reservation) Keep(n int64) { r.held -= n }

// Release gives all back.
func (r *Reservation) Release() {
	r.b.Give(r.held)
	r.held = 0
}

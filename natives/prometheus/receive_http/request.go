package receivehttp

import (
	"hash/maphash"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weir-run/weir/engine/batch"
)

// request is a body on its way to the receivers. It lives longer than the HTTP
// request that brought it: a client that gives up, or is answered 503, comes
// again with the same body, and then waits for what is under way instead of
// sending it twice.
type request struct {
	key    bodyKey
	answer answer        // once it is accepted
	done   chan struct{} // closed when every lane has settled
	free   func()        // gives the memory of its samples back

	mu      sync.Mutex
	parts   int
	err     error // why not all was accepted
	waiters int
	left    time.Time // when the last one did
}

// answer is what the client is told of a body whose good part was accepted.
type answer struct {
	bad     error // what was not good, nil for nothing
	written written
}

// bodyKey tells bodies apart: a hash of 128 bits whose seeds nobody knows.
type bodyKey struct {
	a, b uint64
	n    int
}

var seeds = [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()}

func keyOf(body []byte) bodyKey {
	return bodyKey{a: maphash.Bytes(seeds[0], body), b: maphash.Bytes(seeds[1], body), n: len(body)}
}

// settle notes that one lane is done with its part.
func (r *request) settle(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil {
		r.err = err
	}
	if r.parts--; r.parts == 0 {
		r.free()
		close(r.done)
	}
}

// abandonAfter is how long a body is tried on when no client waits for it.
const abandonAfter = time.Minute

func (r *request) abandoned(now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.waiters == 0 && now.Sub(r.left) > abandonAfter
}

// pending are the requests whose client does not have its answer.
type pending struct {
	mu    sync.Mutex
	byKey map[bodyKey]*request
}

func newPending() *pending { return &pending{byKey: map[bodyKey]*request{}} }

// join returns the request of the same body with one more waiter, nil when
// there is none.
func (p *pending) join(key bodyKey) *request {
	p.mu.Lock()
	defer p.mu.Unlock()
	r := p.byKey[key]
	if r == nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	select {
	case <-r.done:
		if r.err != nil { // it is to be sent anew
			delete(p.byKey, key)
			return nil
		}
	default:
	}
	r.waiters++
	return r
}

// add makes r, which has one waiter, known.
func (p *pending) add(r *request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.byKey[r.key] = r
}

// leave is called by each waiter. answered says that the client was told how
// the request ended.
func (p *pending) leave(r *request, answered bool, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.waiters--
	r.left = now
	if answered && p.byKey[r.key] == r {
		delete(p.byKey, r.key)
	}
}

// rememberFor is how long an accepted body is known whose client did not hear
// of it.
const rememberFor = 5 * time.Minute

// expire forgets requests that nobody came back for.
func (p *pending) expire(now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for key, r := range p.byKey {
		r.mu.Lock()
		over := false
		select {
		case <-r.done:
			over = r.waiters == 0 && (r.err != nil || now.Sub(r.left) > rememberFor)
		default:
		}
		r.mu.Unlock()
		if over {
			delete(p.byKey, key)
		}
	}
}

// budget is memory that requests share.
type budget struct {
	limit atomic.Int64
	used  atomic.Int64
}

// reserve takes n bytes if they are there.
func (b *budget) reserve(n int64) bool {
	if b.used.Add(n) > b.limit.Load() {
		b.used.Add(-n)
		return false
	}
	return true
}

func (b *budget) give(n int64) { b.used.Add(-n) }

// reservation is what one request has reserved.
type reservation struct {
	b     *budget
	held  int64
	needs int64 // held, and what could not be had
}

func (r *reservation) reserve(n int64) bool {
	if !r.b.reserve(n) {
		r.needs = r.held + n
		return false
	}
	r.held += n
	return true
}

func (r *reservation) release() { r.b.give(r.held) }

// newRequest spreads the rows over the lanes. Nothing is sent yet.
func newRequest(key bodyKey, rows *rows, a answer, free func()) (*request, []*batch.Metrics) {
	r := &request{key: key, answer: a, done: make(chan struct{}), free: free, waiters: 1}
	byLane := rows.split(lanes)
	for _, b := range byLane {
		if b != nil {
			r.parts++
		}
	}
	if r.parts == 0 {
		free()
		close(r.done)
	}
	return r, byLane
}

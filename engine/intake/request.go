package intake

import (
	"hash/maphash"
	"sync"
	"time"
)

// Request is a body that is being sent to the receivers. It outlives the HTTP
// request: a client that gives up, or gets a 503, repeats the same body, and
// then waits for the pending request instead of sending it twice. A is the type
// of the final response.
type Request[A any] struct {
	Answer A // the response after everything was accepted

	key  Key
	done chan struct{} // closed when every shard is done
	free func()        // releases the memory of the records

	mu      sync.Mutex
	parts   int
	err     error // why not everything was accepted
	waiters int
	left    time.Time // when the last waiter left
}

// newRequest returns a Request with the given number of parts and one waiter.
// free is called when all parts are done, or immediately if there are none.
func newRequest[A any](key Key, answer A, parts int, free func()) *Request[A] {
	r := &Request[A]{key: key, Answer: answer, done: make(chan struct{}), free: free, parts: parts, waiters: 1}
	if parts == 0 {
		free()
		close(r.done)
	}
	return r
}

// Key identifies a body: a hash of 128 bits with secret seeds.
type Key struct {
	a, b uint64
	n    int
}

var seeds = [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()}

// KeyOf returns the Key of a body and of other properties of the request.
func KeyOf(body []byte, also ...string) Key {
	k := Key{a: maphash.Bytes(seeds[0], body), b: maphash.Bytes(seeds[1], body), n: len(body)}
	for _, s := range also {
		k.a = 31*k.a + maphash.String(seeds[0], s)
		k.b = 31*k.b + maphash.String(seeds[1], s)
	}
	return k
}

// finishPart records that one shard is done with its part.
func (r *Request[A]) finishPart(err error) {
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

// AbandonAfter is how long a body without a waiting client is retried.
const AbandonAfter = time.Minute

func (r *Request[A]) abandoned(now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.waiters == 0 && now.Sub(r.left) > AbandonAfter
}

// Pending contains the requests whose clients have not got their responses. The
// zero value is empty. It is safe for concurrent use.
type Pending[A any] struct {
	mu    sync.Mutex
	byKey map[Key]*Request[A]
}

// Join adds a waiter to the pending request with the same body and returns the
// request, or nil if there is none. With alone, only a request without waiters
// is used: the same body in a concurrent request is a different request that
// happens to be equal.
func (p *Pending[A]) Join(key Key, alone bool) *Request[A] {
	p.mu.Lock()
	defer p.mu.Unlock()
	r := p.byKey[key]
	if r == nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if alone && r.waiters > 0 {
		return nil
	}
	select {
	case <-r.done:
		if r.err != nil { // it must be sent again
			delete(p.byKey, key)
			return nil
		}
	default:
	}
	r.waiters++
	return r
}

// add adds r, which has one waiter.
func (p *Pending[A]) add(r *Request[A]) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.byKey == nil {
		p.byKey = map[Key]*Request[A]{}
	}
	p.byKey[r.key] = r
}

// removeWaiter is called by each waiter. answered reports whether the client
// was told the result of the request.
func (p *Pending[A]) removeWaiter(r *Request[A], answered bool, now time.Time) {
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

// rememberFor is how long an accepted body is remembered if its client was not
// told.
const rememberFor = 5 * time.Minute

// expire removes requests that were not repeated.
func (p *Pending[A]) expire(now time.Time) {
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

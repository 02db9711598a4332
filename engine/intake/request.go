package intake

import (
	"hash/maphash"
	"sync"
	"time"
)

// Request is a body on its way to the receivers. It lives longer than the HTTP
// request that brought it: a client that gives up, or is answered 503, comes
// again with the same body, and then waits for what is under way instead of
// sending it twice. A is what the client is told in the end.
type Request[A any] struct {
	Answer A // of what was accepted, once all is

	key  Key
	done chan struct{} // closed when every shard has settled
	free func()        // gives the memory of what is on its way back

	mu      sync.Mutex
	parts   int
	err     error // why not all was accepted
	waiters int
	left    time.Time // when the last one did
}

// newRequest returns a Request of so many parts, with one waiter. free is called
// when all parts have settled; at once when there are none.
func newRequest[A any](key Key, answer A, parts int, free func()) *Request[A] {
	r := &Request[A]{key: key, Answer: answer, done: make(chan struct{}), free: free, parts: parts, waiters: 1}
	if parts == 0 {
		free()
		close(r.done)
	}
	return r
}

// Key tells bodies apart: a hash of 128 bits whose seeds nobody knows.
type Key struct {
	a, b uint64
	n    int
}

var seeds = [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()}

// KeyOf returns the Key of a body and of what else tells requests apart.
func KeyOf(body []byte, also ...string) Key {
	k := Key{a: maphash.Bytes(seeds[0], body), b: maphash.Bytes(seeds[1], body), n: len(body)}
	for _, s := range also {
		k.a = 31*k.a + maphash.String(seeds[0], s)
		k.b = 31*k.b + maphash.String(seeds[1], s)
	}
	return k
}

// finishPart notes that one shard is done with its part.
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

// AbandonAfter is how long a body is tried on when no client waits for it.
const AbandonAfter = time.Minute

func (r *Request[A]) abandoned(now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.waiters == 0 && now.Sub(r.left) > AbandonAfter
}

// Pending are the requests whose client does not have its answer. The zero value
// has none. It is safe for concurrent use.
type Pending[A any] struct {
	mu    sync.Mutex
	byKey map[Key]*Request[A]
}

// Join returns the request of the same body with one more waiter, nil when there
// is none. With alone it must be one that nobody waits for: the same body that
// comes beside it is then another one that happens to be equal.
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
func (p *Pending[A]) add(r *Request[A]) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.byKey == nil {
		p.byKey = map[Key]*Request[A]{}
	}
	p.byKey[r.key] = r
}

// removeWaiter is called by each waiter. answered says that the client was told how
// the request ended.
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

// rememberFor is how long an accepted body is known whose client did not hear
// of it.
const rememberFor = 5 * time.Minute

// expire forgets requests that nobody came back for.
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

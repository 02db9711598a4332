package receivehttp

import (
	"sync"
	"time"
)

// rates are the sample rates of clients, by address.
type rates struct {
	mu       sync.Mutex
	byClient map[string]*bucket
}

// bucket has tokens for as many samples as may come at once.
type bucket struct {
	tokens float64 // below 0 after a request that was larger than what was there
	at     time.Time
}

// burst is how many seconds' worth of samples may come at once.
const burst = 10

func newRates() *rates { return &rates{byClient: map[string]*bucket{}} }

// wait returns how long the client has to wait before its next request, 0 when
// it may come now.
func (r *rates) wait(client string, rate int, now time.Time) time.Duration {
	if rate <= 0 {
		return 0
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	b := r.fill(client, rate, now)
	if b.tokens > 0 {
		return 0
	}
	return time.Duration(-b.tokens/float64(rate)*float64(time.Second)) + time.Second
}

// spend notes that n samples came. One request may overdraw, so that one that
// is larger than the burst passes too, and the next ones wait for it.
func (r *rates) spend(client string, rate, n int, now time.Time) {
	if rate <= 0 {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.fill(client, rate, now).tokens -= float64(n)
}

func (r *rates) fill(client string, rate int, now time.Time) *bucket {
	full := float64(burst * rate)
	b := r.byClient[client]
	if b == nil {
		b = &bucket{tokens: full, at: now}
		r.byClient[client] = b
	}
	b.tokens = min(full, b.tokens+now.Sub(b.at).Seconds()*float64(rate))
	b.at = now
	return b
}

// expire forgets clients that have not come for long.
func (r *rates) expire(now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for c, b := range r.byClient {
		if now.Sub(b.at) > time.Hour {
			delete(r.byClient, c)
		}
	}
}

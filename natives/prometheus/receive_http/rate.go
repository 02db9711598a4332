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

// bucket is a token bucket: a token stands for a sample.
type bucket struct {
	tokens float64 // negative after a request that was larger than the remaining tokens
	at     time.Time
}

// burst is the size of a bucket, in seconds of the rate.
const burst = 10

func newRates() *rates { return &rates{byClient: map[string]*bucket{}} }

// wait returns how long the client has to wait before its next request, or 0.
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

// spend takes tokens for n samples. One request may overdraw the bucket, so that
// a request larger than the bucket is accepted; the following requests wait for
// it.
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

// expire removes clients that have not sent anything for a long time.
func (r *rates) expire(now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for c, b := range r.byClient {
		if now.Sub(b.at) > time.Hour {
			delete(r.byClient, c)
		}
	}
}

package stdlib

import "sync"

// cache caches results that are expensive to compute from a string, such as
// patterns and time zones. When it is full, it is cleared, which keeps it simple
// and limited; scripts with few strings never reach the limit.
type cache[V any] struct {
	max int

	mu sync.RWMutex
	m  map[string]V
}

func newCache[V any](limit int) *cache[V] { return &cache[V]{max: limit, m: map[string]V{}} }

// get returns the result of compute for key, which may be cached. Errors are not
// cached.
func (c *cache[V]) get(key string, compute func(string) (V, error)) (V, error) {
	c.mu.RLock()
	v, ok := c.m[key]
	c.mu.RUnlock()
	if ok {
		return v, nil
	}
	v, err := compute(key)
	if err != nil {
		return v, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.m) >= c.max {
		clear(c.m)
	}
	c.m[key] = v
	return v, nil
}

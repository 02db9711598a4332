package stdlib

import "sync"

// cache remembers what is costly to make of a string: patterns, time zones.
// When it is full it forgets everything, which keeps it simple and bounded:
// scripts that fit never notice.
type cache[V any] struct {
	max int

	mu sync.RWMutex
	m  map[string]V
}

func newCache[V any](limit int) *cache[V] { return &cache[V]{max: limit, m: map[string]V{}} }

// get returns the result of compute for key, now or before. Errors are not remembered.
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

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

func newCache[V any](max int) *cache[V] { return &cache[V]{max: max, m: map[string]V{}} }

// get returns what make made of key, now or before. Errors are not remembered.
func (c *cache[V]) get(key string, make func(string) (V, error)) (V, error) {
	c.mu.RLock()
	v, ok := c.m[key]
	c.mu.RUnlock()
	if ok {
		return v, nil
	}
	v, err := make(key)
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

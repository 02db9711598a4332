package regex

import "sync"

// Cache caches compiled expressions, up to a number of bytes. When it is full,
// it is cleared. It is safe for concurrent use.
type Cache struct {
	max int

	mu   sync.RWMutex
	by   map[string]*Regexp
	used int
}

// NewCache returns a cache whose expressions take at most the given number of
// bytes.
func NewCache(bytes int) *Cache { return &Cache{max: bytes, by: map[string]*Regexp{}} }

// Compile is like the package's Compile with MaxBytes, with a cache. Errors are
// not cached.
func (c *Cache) Compile(expr string) (*Regexp, error) {
	c.mu.RLock()
	r := c.by[expr]
	c.mu.RUnlock()
	if r != nil {
		return r, nil
	}
	r, err := Compile(expr, MaxBytes)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if had := c.by[expr]; had != nil {
		return had, nil
	}
	n := r.Bytes() + len(expr)
	if c.used+n > c.max {
		clear(c.by)
		c.used = 0
	}
	c.by[expr] = r
	c.used += n
	return r, nil
}

// Used returns the approximate size of the cached expressions in bytes.
func (c *Cache) Used() int {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.used
}

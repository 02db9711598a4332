package regex

import "sync"

// Cache remembers compiled expressions, up to a number of bytes. When it is full
// it forgets all of them: what fits never notices. It is safe for concurrent use.
type Cache struct {
	max int

	mu   sync.RWMutex
	by   map[string]*Regexp
	used int
}

// NewCache returns a cache whose expressions take at most so many bytes.
func NewCache(bytes int) *Cache { return &Cache{max: bytes, by: map[string]*Regexp{}} }

// Compile is the package's Compile with MaxBytes, or what it returned before.
// Errors are not remembered.
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

// Used returns about how many bytes the expressions take that are remembered.
func (c *Cache) Used() int {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.used
}

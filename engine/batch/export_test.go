package batch

// Longest returns the largest number of handles that a look-up compares.
func (in *Interner) Longest() (n int) {
	in.mu.Lock()
	defer in.mu.Unlock()
	for _, es := range in.series {
		n = max(n, len(es))
	}
	return n
}

// Size returns the size of the dictionary.
func (e *FrameEncoder) Size() int { return e.size }

// Size returns the size of the dictionary.
func (d *FrameDecoder) Size() int { return d.size }

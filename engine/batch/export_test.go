package batch

// Longest returns how many handles a look-up compares at most.
func (in *Interner) Longest() (n int) {
	in.mu.Lock()
	defer in.mu.Unlock()
	for _, es := range in.series {
		n = max(n, len(es))
	}
	return n
}

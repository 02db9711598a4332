package clause

// Failing returns the number of sources that fail.
func (f *Failures) Failing() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.failing)
}

package clause

// Failing returns how many sources are known to fail.
func (f *Failures) Failing() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.failing)
}

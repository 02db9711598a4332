package engine

// Equal is equal.
func Equal(a, b any) bool { return equal(a, b) }

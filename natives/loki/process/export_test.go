package process

// KeepAtMost sets the maximum size of the groups of a stage of c to n bytes.
func KeepAtMost(c any, n int) { c.(*Component).mem.maxKept = n }

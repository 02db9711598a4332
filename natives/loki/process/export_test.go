package process

// KeepAtMost makes n bytes the most that the groups of a stage of c keep.
func KeepAtMost(c any, n int) { c.(*Component).mem.maxKept = n }

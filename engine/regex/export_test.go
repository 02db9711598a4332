package regex

// InPieces makes r treat every text as a long one.
func (r *Regexp) InPieces() { r.easySteps, r.easyAll = 0, 0 }

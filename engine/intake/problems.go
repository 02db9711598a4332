package intake

import (
	"errors"
	"fmt"
)

// maxProblems bounds what a client is told.
const maxProblems = 10

// Problems are what is wrong with parts of a body. The zero value has none.
type Problems struct {
	told []error
	more int
}

// Add adds one, a format as of fmt.Errorf, which is told if it is among the first:
// others are not formatted, since there may be millions.
func (p *Problems) Add(format string, args ...any) {
	if len(p.told) == maxProblems {
		p.more++
		return
	}
	p.told = append(p.told, fmt.Errorf(format, args...))
}

// Err joins them; it is nil when there are none.
func (p *Problems) Err() error {
	told := p.told
	if p.more > 0 {
		told = append(told, fmt.Errorf("and %d more", p.more))
	}
	return errors.Join(told...)
}

package intake

import (
	"errors"
	"fmt"
)

// maxProblems is the maximum number of errors in a response.
const maxProblems = 10

// Problems are errors in parts of a body. The zero value is empty.
type Problems struct {
	told []error
	more int
}

// Add adds an error, with a format as in fmt.Errorf. Only the first errors are
// formatted, because there may be millions.
func (p *Problems) Add(format string, args ...any) {
	if len(p.told) == maxProblems {
		p.more++
		return
	}
	p.told = append(p.told, fmt.Errorf(format, args...))
}

// Err joins the errors. It returns nil if there are none.
func (p *Problems) Err() error {
	told := p.told
	if p.more > 0 {
		told = append(told, fmt.Errorf("and %d more", p.more))
	}
	return errors.Join(told...)
}

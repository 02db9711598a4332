package selector

import (
	"fmt"
	"slices"
	"strings"

	"github.com/weir-run/weir/engine/regex"
)

// filter is one line filter. A line passes if it contains one of the operands,
// or, for a negative filter, none of them.
type filter struct {
	op       string
	operands []operand
}

// operand is a value with which a line is compared.
type operand struct {
	text string
	ip   bool
	in   func(line string) bool
	// If re is not nil, it decides when in returns true; otherwise, in alone
	// decides.
	re *regex.Regexp
}

// isFilter reports whether an operator begins a line filter.
func isFilter(op string) bool {
	return slices.Contains([]string{"|=", "!=", "|~", "!~", "|>", "!>"}, op)
}

func (f *filter) negative() bool { return f.op[0] == '!' }

// add adds an operand.
func (f *filter) add(o operand) (err error) {
	switch {
	case o.ip && f.op != "|=" && f.op != "!=":
		return fmt.Errorf("ip() goes with |= and != only, not with %s", f.op)
	case o.ip:
		o.in, err = newAddresses(o.text)
	case f.op[1] == '~':
		o.in, o.re, err = newExpression(o.text)
	case f.op[1] == '>':
		o.in, err = newPattern(o.text)
	default:
		o.in = func(line string) bool { return strings.Contains(line, o.text) }
	}
	f.operands = append(f.operands, o)
	return err
}

func (f *filter) passes(line string, g regex.Guard) (bool, error) {
	for i := range f.operands {
		o := &f.operands[i]
		is, err := o.in(line), error(nil)
		if is && o.re != nil {
			is, err = o.re.Match(line, g)
		}
		if is || err != nil {
			return !f.negative(), err
		}
	}
	return f.negative(), nil
}

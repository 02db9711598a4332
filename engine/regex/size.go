package regex

import (
	"fmt"
	"math"
	"regexp/syntax"
)

// Size is the maximum size of a compiled expression.
type Size struct {
	Instructions int
	Groups       int
	// Bytes is its memory, including the memory for matching in one goroutine.
	Bytes int
}

// Measure returns the size of an expression without compiling it. Its cost is
// proportional to the text.
func Measure(expr string) (Size, error) {
	tree, err := syntax.Parse(expr, syntax.Perl)
	if err != nil {
		return Size{}, err
	}
	return sizeOf(tree), nil
}

const (
	// The memory of an instruction: the instruction itself, its positions in the
	// queues of a matcher, and a thread in each.
	instructionBytes = 40 + 2*20 + 2*32
	// onePass is the maximum number of instructions of an expression for which
	// regexp builds a table, in which every instruction has its own characters:
	// 1000, plus those that Size counts too many.
	onePass = 3000
	// rangeBytes is the size of a bound of a range of characters in that table.
	rangeBytes = 8
)

func sizeOf(tree *syntax.Regexp) Size {
	c := measure(tree)
	groups := tree.MaxCap()
	s := Size{Instructions: add(c.insts, 2), Groups: groups}
	s.Bytes = add(product(s.Instructions, instructionBytes), product(c.runes, 4))
	s.Bytes = add(s.Bytes, product(s.Instructions, product(2*8*2, groups+1)))
	if s.Instructions < onePass && beginsAnchored(tree) {
		s.Bytes = add(s.Bytes, product(c.table, rangeBytes))
	}
	return s
}

// Fits returns an error if an expression takes more than limit bytes; 0 means
// no limit.
func (s Size) Fits(limit int) error {
	if limit > 0 && s.Bytes > limit {
		return fmt.Errorf("it would take %.1f MiB of memory, and the limit is %.1f MiB: repeat less, or match smaller parts", float64(s.Bytes)/(1<<20), float64(limit)/(1<<20))
	}
	return nil
}

// steps returns the maximum cost per character of a text.
func (s Size) steps() int {
	// A step copies the groups found so far.
	return product(s.Instructions, 1+s.Groups/16)
}

// count contains the counts for a part of an expression.
type count struct {
	insts int
	runes int // of classes, shared by repetitions
	table int // of classes, if each repetition has its own
}

func measure(re *syntax.Regexp) (c count) {
	for _, sub := range re.Sub {
		s := measure(sub)
		c.insts, c.runes, c.table = add(c.insts, s.insts), add(c.runes, s.runes), add(c.table, s.table)
	}
	switch re.Op {
	case syntax.OpLiteral:
		n := len(re.Rune)
		c = count{insts: n, runes: n, table: 2 * n}
		if re.Flags&syntax.FoldCase != 0 {
			c.table = 8 * n
		}
	case syntax.OpCharClass:
		c = count{insts: 1, runes: len(re.Rune), table: len(re.Rune)}
	case syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		c = count{insts: 1, runes: 4, table: 4}
	case syntax.OpCapture:
		c.insts = add(c.insts, 2)
	case syntax.OpPlus, syntax.OpQuest:
		c.insts, c.table = add(c.insts, 1), product(c.table, 2)
	case syntax.OpStar: // if x may be empty, it is (x+)?
		c.insts, c.table = add(c.insts, 2), product(c.table, 2)
	case syntax.OpAlternate:
		// Each branch is an instruction that may have the characters of all
		// instructions after it.
		c.insts, c.table = add(c.insts, len(re.Sub)-1), product(c.table, len(re.Sub))
	case syntax.OpRepeat:
		times := max(re.Max, re.Min+1, 1) // x{2,} is xx+
		if re.Max == re.Min {
			c.insts, c.table = add(product(c.insts, times), 1), product(c.table, times)
			break
		}
		c.insts, c.table = add(product(add(c.insts, 1), times), 1), product(c.table, 2*times)
	case syntax.OpConcat:
	default: // an expression that matches no character
		c.insts = 1
	}
	return c
}

// beginsAnchored reports whether an expression matches only at the start of a
// text, which is a condition for regexp's table.
func beginsAnchored(re *syntax.Regexp) bool {
	for {
		switch re.Op {
		case syntax.OpBeginText:
			return true
		case syntax.OpConcat, syntax.OpCapture:
			if len(re.Sub) == 0 {
				return false
			}
			re = re.Sub[0]
		default:
			return false
		}
	}
}

// looksBehind reports whether an expression depends on the text before a
// position.
func looksBehind(re *syntax.Regexp) bool {
	switch re.Op {
	case syntax.OpBeginLine, syntax.OpBeginText, syntax.OpWordBoundary, syntax.OpNoWordBoundary:
		return true
	}
	for _, sub := range re.Sub {
		if looksBehind(sub) {
			return true
		}
	}
	return false
}

// add and product saturate at the largest int.
func add(a, b int) int {
	if a > math.MaxInt-b {
		return math.MaxInt
	}
	return a + b
}

func product(a, b int) int {
	if a > 0 && b > math.MaxInt/a {
		return math.MaxInt
	}
	return a * b
}

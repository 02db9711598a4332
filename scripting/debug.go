package scripting

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Debug is set in Env to compile a program for a debugger: it calls At before each
// statement. Such a program is slower.
type Debug struct {
	// At is called on the goroutine of the script, which waits until it returns. An
	// error ends the call of the script.
	At func(DebugStatement, Paused) error
	// Files are the files of the program. Compile adds them.
	Files []DebugFile
}

// DebugFile is a file of a program that was compiled for a debugger.
type DebugFile struct {
	File
	Lines []int // where statements begin; sorted, without duplicates
}

// AddFile adds a file with its statements in the order of the source, whose counters
// are numbered from 0. It returns them with numbers from base on.
func (d *Debug) AddFile(f File, base int, statements []Counted) []DebugStatement {
	var out []DebugStatement
	lines := map[int]bool{}
	for _, s := range statements {
		out = append(out, DebugStatement{File: f.Name, Line: s.Line, Number: base + s.Counter, First: !lines[s.Line]})
		lines[s.Line] = true
	}
	d.Files = append(d.Files, DebugFile{File: f, Lines: slices.Sorted(maps.Keys(lines))})
	return out
}

// DebugStatement is the statement that a script is about to execute.
type DebugStatement struct {
	File   string // its name
	Line   int
	Number int  // of the statement; unique in the program
	First  bool // no other statement of the file begins earlier in this line
}

// Paused is a script before a statement. It is valid until Debug.At returns, on the
// goroutine of the script. Frames are numbered from 0, the innermost.
type Paused interface {
	// Wait calls fn. The limits of the call do not count its time.
	Wait(fn func())
	// Depth returns the number of functions of the script on the stack.
	Depth() int
	// Stack returns the functions of the script on the stack.
	Stack() []Frame
	// Scopes returns the variables that a frame can access.
	Scopes(frame int) []Scope
	// Evaluate runs code in a frame, within limits, and returns the value of an
	// expression. Statements and functions that it runs are not passed to Debug.At.
	Evaluate(frame int, code string) (Variable, error)
}

// Scope is a group of variables.
type Scope struct {
	Name      string
	Variables func() []Variable
}

// Variable is a value for people.
type Variable struct {
	Name  string
	Value string
	Type  string
	True  bool // as a condition
	// Fields returns the values in it. nil: there are none.
	Fields func() []Variable
}

// ShowString returns a text as a value for people.
func ShowString(s string) string {
	if len(s) > MaxShownValue {
		return strconv.Quote(strings.ToValidUTF8(s[:MaxShownValue], "")) + fmt.Sprintf("… (%d bytes)", len(s))
	}
	return strconv.Quote(s)
}

// MoreFields is the variable that stands for the values that are not shown.
func MoreFields(n int) Variable { return Variable{Name: "…", Value: fmt.Sprintf("%d more", n)} }

// MaxFields is the maximum number of variables that Fields returns, and
// MaxShownValue the size of a Value in bytes.
const (
	MaxFields     = 500
	MaxShownValue = 4 << 10
)

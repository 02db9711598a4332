package operation

import (
	"github.com/weir-run/weir/engine/regex"
	"github.com/weir-run/weir/engine/view"
)

// Operation is what a method does.
type Operation struct {
	Cost Cost
	// Kinds say how the arguments are converted; the table fills them in from
	// the parameters.
	Kinds []Kind
	// Result is what the operation results in, unless Run sets another one.
	Result Result
	// Run does it. An error is raised in the script. Run must not keep c. nil:
	// Result says all.
	Run func(c *Call) error
}

// Call is one call of an operation. A language reuses it, but for a call within
// the call: see Busy.
type Call struct {
	// Window is what the call is on: the rows of a batch, or those of the batch
	// that a record or a group belongs to; nil for a series.
	Window *view.Window
	// Metrics or Logs is the Window by its signal; the other one is nil.
	Metrics *view.Metrics
	Logs    *view.Logs
	// Record is the row of the record that the call is on.
	Record int
	// Group has the rows of the group that the call is on.
	Group []int
	// Series is what the call is on in the hooks series and stream.
	Series *view.Series

	// Args are the arguments, one for each parameter.
	Args [MaxArgs]Arg

	// Result says what the operation results in. The fields below it hold the
	// result, as the Result says.
	Result Result
	String string
	Bool   bool
	Value  view.Value
	Fields Fields
	Sample view.Record
	Line   view.LogRecord

	busy bool
}

// MaxArgs is how many parameters an operation may have.
const MaxArgs = 3

// Arg is an argument.
type Arg struct {
	Text    string
	Number  float64
	Row     int
	Names   []string
	Func    Func
	Pattern *regex.Regexp
}

// Text returns argument i, a text, a label's value or an expression; "" if it
// was left out.
func (c *Call) Text(i int) string { return c.Args[i].Text }

// Number returns argument i, a number.
func (c *Call) Number(i int) float64 { return c.Args[i].Number }

// Row returns argument i, the number of a record in the batch, counted from 0.
func (c *Call) Row(i int) int { return c.Args[i].Row }

// Names returns argument i, a list of texts.
func (c *Call) Names(i int) []string { return c.Args[i].Names }

// Func returns argument i, a function.
func (c *Call) Func(i int) Func { return c.Args[i].Func }

// Pattern returns argument i, a regular expression.
func (c *Call) Pattern(i int) *regex.Regexp { return c.Args[i].Pattern }

// Busy reports whether the call is in use.
func (c *Call) Busy() bool { return c.busy }

// Begin takes the call into use, for an operation with that result.
func (c *Call) Begin(r Result) { c.busy, c.Result = true, r }

// End ends the use of the call, which keeps what it holds.
func (c *Call) End() { c.busy = false }

// Forget lets go of what the call holds. It is not in use any more.
func (c *Call) Forget() {
	if c != nil {
		*c = Call{}
	}
}

// Func is a function of the script. An error in it does not return: the
// language unwinds the operation.
type Func interface {
	// Site identifies the function for what is remembered of its answers; see
	// view.Window.MapLabel.
	Site() any
	// MapLabel calls it with the value of a label; ok is false if it returns
	// nothing.
	MapLabel(name, value string) (to string, ok bool)
	// MapNumber calls it with a number; ok is false if it returns nothing.
	MapNumber(f float64) (to float64, ok bool)
	// Keeps calls it with fields of a row, and returns its answer, which must be
	// true or false.
	Keeps(f *Fields, row int) bool
}

// Kind is how a language converts an argument.
type Kind uint8

// The kinds.
const (
	Text         Kind = iota // a text
	OptionalText             // a text, or nothing
	Label                    // the value of the label that the argument before names, or nothing
	Number                   // a number
	Row                      // the number of a record, as the language counts
	Names                    // a list of texts
	RestNames                // all further arguments, as texts
	Function                 // a function
	Pattern                  // the text of a regular expression, or a compiled one
	Values                   // a field and the argument behind it, its value; or a table of fields and values
)

// Result is what an operation results in: a value of the script, or a loop that
// the language runs when the operation has returned, as it handles the errors
// in it.
type Result uint8

// The results.
const (
	Nothing    Result = iota
	IsString          // String
	IsBool            // Bool
	IsValue           // Value, which is a part of the record's line
	IsMatch           // the groups of the first match of argument 0 in the record's line
	SampleCopy        // Sample
	LineCopy          // Line
	RowList           // an iterator over the rows and their Fields
	RecordList        // an iterator over the records of the batch or the group
	GroupList         // an iterator over groups of rows with the same Fields
	SetValues         // the argument of kind Values is set in the row of the argument of kind Row
	EachRecord        // the last argument is called with each record
	EachFields        // the last argument is called with the Fields of each line
	EachMatch         // the last argument is called with the groups of the first match of argument 0 in each line
)

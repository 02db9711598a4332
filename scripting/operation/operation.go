package operation

import (
	"github.com/weir-run/weir/engine/regex"
	"github.com/weir-run/weir/engine/view"
)

// Operation is the implementation of a method.
type Operation struct {
	Cost Cost
	// Kinds specify how arguments are converted. The table sets them from the
	// parameters.
	Kinds []Kind
	// Result is the kind of result, unless Run sets another one.
	Result Result
	// Run runs the operation. An error is raised in the script. Run must not keep
	// c. It is nil if Result is sufficient.
	Run func(c *Call) error
}

// Call is one call of an operation. A language reuses it, except for a nested
// call: see Busy.
type Call struct {
	// Window is the receiver: the rows of a batch, or of the batch that contains a
	// record or a group. It is nil for a series.
	Window *view.Window
	// Metrics or Logs is the Window, depending on its signal; the other one is
	// nil.
	Metrics *view.Metrics
	Logs    *view.Logs
	// Record is the row of the record that is the receiver.
	Record int
	// Group contains the rows of the group that is the receiver.
	Group []int
	// Series is the receiver in the hooks series and stream.
	Series *view.Series

	// Args are the arguments, one per parameter.
	Args [MaxArgs]Arg

	// Result is the kind of result. The fields below it contain the result,
	// depending on the kind.
	Result Result
	String string
	Bool   bool
	Value  view.Value
	Fields Fields
	Sample view.Record
	Line   view.LogRecord

	busy bool
}

// MaxArgs is the maximum number of parameters of an operation.
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

// Text returns argument i: a text, a label's value or an expression. It is ""
// if the argument was omitted.
func (c *Call) Text(i int) string { return c.Args[i].Text }

// Number returns argument i, a number.
func (c *Call) Number(i int) float64 { return c.Args[i].Number }

// Row returns argument i: the number of a record in the batch, starting at 0.
func (c *Call) Row(i int) int { return c.Args[i].Row }

// Names returns argument i, a list of texts.
func (c *Call) Names(i int) []string { return c.Args[i].Names }

// Func returns argument i, a function.
func (c *Call) Func(i int) Func { return c.Args[i].Func }

// Pattern returns argument i, a regular expression.
func (c *Call) Pattern(i int) *regex.Regexp { return c.Args[i].Pattern }

// Busy reports whether the call is in use.
func (c *Call) Busy() bool { return c.busy }

// Begin begins the use of the call for an operation with the given result.
func (c *Call) Begin(r Result) { c.busy, c.Result = true, r }

// End ends the use of the call, which keeps its values.
func (c *Call) End() { c.busy = false }

// Forget ends the use of the call and releases its values.
func (c *Call) Forget() {
	if c != nil {
		*c = Call{}
	}
}

// Func is a function of the script. If it throws an error, its methods do not
// return: the language unwinds the operation.
type Func interface {
	// Site identifies the function for the cache of its results; see
	// view.Window.MapLabel.
	Site() any
	// MapLabel calls it with the value of a label. ok is false if it returns
	// nothing.
	MapLabel(name, value string) (to string, ok bool)
	// MapNumber calls it with a number. ok is false if it returns nothing.
	MapNumber(f float64) (to float64, ok bool)
	// Keeps calls it with the fields of a row, and returns its result, which must
	// be true or false.
	Keeps(f *Fields, row int) bool
}

// Kind specifies how a language converts an argument.
type Kind uint8

// The kinds.
const (
	Text         Kind = iota // a text
	OptionalText             // a text, or omitted
	Label                    // a value for the label named by the previous argument, or nil
	Number                   // a number
	Row                      // the number of a record, in the numbering of the language
	Names                    // a list of texts
	RestNames                // all remaining arguments, as texts
	Function                 // a function
	Pattern                  // the text of a regular expression, or a compiled one
	Values                   // a field followed by its value in the next argument; or a table of fields and values
)

// Result is the kind of an operation's result: a value for the script, or a
// loop that the language runs after the operation has returned, because the
// language handles errors in it.
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

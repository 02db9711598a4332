// Package operation implements the methods of batches, records, series and
// groups, independently of the language of the script.
//
// The table in scripting/api declares a method once, with its parameters, its
// documentation and an Operation. To call it, a language sets the receiver of
// the method in a Call, charges the Cost, converts the arguments to the Kinds
// of the parameters, calls Run, and converts the Result. It does this in one
// place for all operations.
//
// It is not for functions whose arguments and results are plain values: these
// are called with the Fn of a scripting.Function.
package operation

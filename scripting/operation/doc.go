// Package operation is how the methods of batches, records, series and groups
// run, whatever the language of the script.
//
// The table in scripting/api declares a method once, with its parameters, its
// documentation and an Operation. To call it, a language fills a Call with what
// the method was called on, charges the Cost, converts the arguments to the
// Kinds of the parameters, calls Run, and converts the Result. It does this in
// one place for all operations.
//
// It is not for functions that take and return plain values: scripting.Function
// calls those, with its Fn.
package operation

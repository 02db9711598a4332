// Package api is the table of what scripts see beside the standard library:
// the keys of a definition, ctx, batches, records, series and their labels,
// each with a doc, its parameters and an example that is run.
//
// From it come the names in errors and what they may have meant, the manual
// (weir doc), the types for editors (weir types) and what the linter knows
// (weir check). What a language binds of it is compared with it by a test of
// that language, in both directions: an entry without a binding fails, and so
// does a binding without an entry.
//
// To add something, add an entry beside its like: an operation of a batch to
// batch.go, a field of a record to record.go, a function of ctx that a language
// binds to context.go. A function of ctx that the component binds is declared
// where it is written, in package scripting, and needs nothing here. An entry
// without an example fails the test of this package, which runs all of them.
//
// It is not for modules that scripts require: those are declared in stdlib.
package api

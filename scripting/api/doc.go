// Package api is the table of what scripts see beside the standard library:
// the keys of a definition, ctx, batches, records, series and their labels,
// each with a doc, its parameters and an example that is run.
//
// From it come the names in errors and what they may have meant, the manual
// (weir doc), the types for editors (weir types) and what the linter knows
// (weir check). The languages bind the methods of batches, records, series and
// groups from it: an entry has an Op, which is their one implementation. Fields
// of records and the functions of ctx that handle records are bound in each
// language. A test of the language compares them with the table, in both
// directions: an entry without a binding fails, and so does a binding without an
// entry.
//
// To add something, add an entry next to a similar one: an operation of a batch
// to batch.go or logs.go, a method or a field of a record to record.go, a
// function of ctx that a language binds to context.go. A function of ctx that the component binds is declared
// where it is written, in package scripting, and needs nothing here. An entry
// without an example fails the test of this package, which runs all of them.
//
// It is not for modules that scripts require: those are declared in stdlib.
package api

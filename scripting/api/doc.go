// Package api is the table of everything that scripts can use in addition to
// the standard library: the keys of a definition, ctx, batches, records, series
// and their labels, each with a doc, its parameters and a tested example.
//
// It is the source for the names and suggestions in errors, the manual (weir
// doc), the types for editors (weir types) and the linter (weir check). The
// languages bind the methods of batches, records, series and groups from it:
// the Op of an entry is their only implementation. Fields of records and the
// functions of ctx that handle records are bound in each language. A test of
// the language compares these bindings with the table in both directions: it
// fails for an entry without a binding, and for a binding without an entry.
//
// To add something, add an entry next to a similar one: an operation of a batch
// to batch.go or logs.go, a method or a field of a record to record.go, a
// function of ctx that a language binds to context.go. A function of ctx that
// the component binds is declared where it is implemented, in package host, and
// needs nothing here. An entry without an example fails the test of this
// package, which runs all examples.
//
// It is not for modules that scripts require: these are declared in stdlib.
package api

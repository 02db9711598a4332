// Package expr compiles one-line expressions over samples, and over log lines,
// to Go closures.
//
// The language is expr-lang: its parser, its type checker and its semantics.
// Only the execution is different: expr's VM costs about 100 ns and an
// allocation per sample, closures a few nanoseconds. Nodes without a closure
// run on expr's VM. A differential fuzz test checks that both give the same
// results.
//
// An expression over samples sees name, labels, value, type, time (Unix ms) and
// args, which are constants. An expression over log lines sees line, labels,
// meta (its metadata), time and args. A missing label is "". The label part of
// a predicate consists of the conjuncts of its top-level && that read neither
// value nor time nor line. Its result is the same for every sample of a series,
// so callers cache it in a batch.Memo.
//
// There are no loops. Source size, nesting, ranges and nested predicates are
// limited, and functions that multiply their input are left out, so an
// evaluation takes microseconds at worst.
//
// Language: https://expr-lang.org/docs/language-definition
package expr

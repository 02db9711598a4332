// Package expr compiles one-line expressions over samples, and over log lines,
// to Go closures.
//
// The language is expr-lang's: its parser, its type checker and its meaning.
// Only the execution is ours: expr's machine costs about 100 ns and an
// allocation a sample, closures a few nanoseconds. What the closures do not
// cover runs on expr's machine; that both give the same answer is what the
// differential fuzz test shows.
//
// An expression sees name, labels, value, type, time (Unix ms) and args, which
// are constants; of a log line line, labels, meta (its metadata), time and args.
// A missing label is "". Of a predicate, the conjuncts of its
// top-level && that read neither value nor time nor line are its label part: the same
// answer for every sample of a series, so callers keep it in a batch.Memo.
//
// It is not a sandbox for loops: there are none. Source size, nesting, ranges
// and predicates within predicates are bounded, functions that multiply their
// input are left out, and so an evaluation takes microseconds at worst.
//
// Language: https://expr-lang.org/docs/language-definition
package expr

// Package scan finds fields in the text of log lines: JSON and logfmt. It goes
// over a line once and builds nothing of what nobody asked for; values are parts
// of the line where nothing had to be unescaped.
//
// Fields and Logfmt are lenient: they stop where all was found, and do not say
// whether the rest is well formed. Object and Pairs are strict: they read the
// whole text and say whether that is one JSON object, or logfmt.
//
// It is not for writing, and not for decoding into Go values.
package scan

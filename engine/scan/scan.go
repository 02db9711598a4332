// Package scan finds fields in the text of log lines: JSON and logfmt. It scans
// a line once and builds only requested values. Values are parts of the line
// unless they contain escapes.
//
// Fields and Logfmt are lenient: they stop when everything is found, and do not
// check the rest. Object and Pairs are strict: they read the whole text and
// report whether it is one JSON object, or logfmt.
//
// It is not for writing, and not for decoding into Go values.
package scan

// Package config reads the config language. It parses files into blocks,
// resolves references between blocks to node IDs, decodes blocks into Go
// structs, and reports every error as a Diagnostic with its position. Only this
// package imports alloy/syntax.
//
// It does not know which blocks exist or what they mean. The engine asks the
// catalogs and passes names, types and exported values to this package.
//
// An error never hides another error. A file with a syntax error still returns
// the blocks that parse. A block with an invalid attribute still reports its
// other errors. A reference to a broken block is not reported as unknown.
// Arguments are decoded as alloy/syntax decodes them, into the same tagged
// structs. Values that are not known yet (SetProvisional) can only cause type
// errors.
package config

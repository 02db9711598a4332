// Package config reads the config language: files to blocks, references
// between blocks to node IDs, blocks to Go structs, and every mistake to a
// Diagnostic with its position. It is the importer of alloy/syntax.
//
// It does not know which blocks exist nor what they mean: the engine asks the
// catalogs and hands in names, types and exported values.
//
// The rules to know. A mistake never hides another: a file with a syntax error
// still yields the blocks that parse, a block with a bad attribute still
// yields its other mistakes, and nothing is reported as unknown because the
// block it lives in is broken. Arguments are decoded as alloy/syntax decodes
// them, into the same tagged structs. Values that are not known yet
// (SetProvisional) can make type errors, but no others.
package config

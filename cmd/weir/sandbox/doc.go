// Package sandbox is a throwaway Prometheus to send to: Prometheus's own remote
// write handler, TSDB, PromQL engine and HTTP API, from its module, in a
// process of its own with a directory of its own.
//
// Serve is that process; Start is how weir starts it, from its own binary. The
// child ends when its standard input does, hence also when weir is killed, and
// takes its directory with it.
//
// It is for trying things out. It keeps nothing, authenticates nobody, scrapes
// nothing and evaluates no rules.
package sandbox

// Package sandbox is a temporary Prometheus server: Prometheus's own remote write
// handler, TSDB and PromQL engine, from its Go module, in a separate process with
// a separate directory. It has the part of Prometheus's HTTP API that queries and
// dashboards use.
//
// Serve runs in that process; Start starts it from weir's own binary. The child
// process ends when its standard input is closed, so it also ends when weir is
// killed. It removes its directory when it ends.
//
// It is for experiments only. It keeps no data, authenticates nobody, scrapes
// nothing and evaluates no rules.
package sandbox

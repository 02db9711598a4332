// Package integration tests weir as a process against real counterparts: the
// Prometheus server and the node_exporter that testdata/servers pins, the Loki
// that testdata/loki does, real files and real signals. `make integration` builds
// them and runs it; the build tag integration keeps it out of `make test`.
package integration

//go:build servers

// Package servers pins the real servers that `make integration` builds and
// runs weir against. It is a module of its own so that their dependencies
// stay out of weir's.
package servers

import (
	_ "github.com/prometheus/node_exporter"
	_ "github.com/prometheus/prometheus/cmd/prometheus"
)

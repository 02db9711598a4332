//go:build servers

// Package loki pins the real Loki server that `make integration` builds and
// runs weir against. It is a module of its own because Loki needs replacements
// that weir's other parts must not have.
package loki

import _ "github.com/grafana/loki/v3/cmd/loki"

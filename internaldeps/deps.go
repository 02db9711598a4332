//go:build tools

package internaldeps

import (
	_ "github.com/expr-lang/expr"
	_ "github.com/fsnotify/fsnotify"
	_ "github.com/golang/snappy"
	_ "github.com/google/go-cmp/cmp"
	_ "github.com/grafana/alloy/syntax"
	_ "github.com/klauspost/compress/gzip"
	_ "github.com/klauspost/compress/snappy"
	_ "github.com/klauspost/compress/s2"
	_ "github.com/prometheus/client_golang/prometheus"
	_ "github.com/prometheus/common/config"
	_ "github.com/prometheus/exporter-toolkit/web"
	_ "github.com/prometheus/node_exporter/collector"
	_ "github.com/prometheus/prometheus/promql"
	_ "github.com/prometheus/prometheus/scrape"
	_ "github.com/prometheus/prometheus/storage/remote"
	_ "github.com/prometheus/prometheus/tsdb"
	_ "github.com/prometheus/prometheus/util/teststorage"
	_ "github.com/prometheus/prometheus/web/api/v1"
	_ "github.com/rogpeppe/go-internal/testscript"
	_ "github.com/spf13/cobra"
	_ "github.com/yuin/gopher-lua"
	_ "go.uber.org/goleak"
	_ "github.com/cespare/xxhash/v2"
	_ "golang.org/x/term"
)

//go:build !linux

package unix

import (
	"log/slog"
	"net/http"
	"runtime"

	"github.com/prometheus/client_golang/prometheus"
)

func newMetrics(*Arguments, *slog.Logger, *prometheus.Registry) (http.Handler, error) {
	return nil, checkHost(runtime.GOOS)
}

func collectorNames() []string { return nil }

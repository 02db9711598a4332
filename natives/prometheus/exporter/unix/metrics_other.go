//go:build !linux

package unix

import (
	"fmt"
	"log/slog"
	"net/http"
	"runtime"
)

func newMetrics(*Arguments, *slog.Logger) (http.Handler, error) {
	return nil, fmt.Errorf("prometheus.exporter.unix runs on Linux only, this is %s", runtime.GOOS)
}

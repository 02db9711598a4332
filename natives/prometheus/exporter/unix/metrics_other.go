//go:build !linux

package unix

import (
	"log/slog"
	"net/http"
	"runtime"
)

func newMetrics(*Arguments, *slog.Logger) (http.Handler, error) { return nil, checkHost(runtime.GOOS) }

func collectorNames() []string { return nil }

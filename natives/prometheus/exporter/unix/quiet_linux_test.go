package unix_test

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"github.com/weir-run/weir/natives/prometheus/exporter/unix"
)

// TestCollectorsAreQuiet: the settings of the collectors are not logged at level
// info.
func TestCollectorsAreQuiet(t *testing.T) {
	n, _ := mustBuild(t, arguments(t, "filesystem", "diskstats"))
	if logs := n.Logs(); strings.Contains(logs, "Parsed flag") {
		t.Errorf("logged at info:\n%s", logs)
	}
}

// TestNoUdevIsNoError: a missing udev is normal in a container and not an error.
func TestNoUdevIsNoError(t *testing.T) {
	f := func(level slog.Level, msg, want string) {
		t.Helper()
		var b bytes.Buffer
		log := slog.New(unix.Quiet(slog.NewTextHandler(&b, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey {
				return slog.Attr{}
			}
			return a
		}})))
		log.Log(t.Context(), level, msg, "path", "/run/udev/data")
		if got := strings.TrimSpace(b.String()); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	f(slog.LevelError, "Failed to open directory, disabling udev device properties",
		`level=INFO msg="Failed to open directory, disabling udev device properties" path=/run/udev/data`)
	f(slog.LevelError, "Couldn't read", `level=ERROR msg="Couldn't read" path=/run/udev/data`)
	f(slog.LevelInfo, "Parsed flag", "")
}

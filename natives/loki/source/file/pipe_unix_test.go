//go:build unix

package file_test

import (
	"syscall"
	"testing"
	"time"

	"github.com/weir-run/weir/engine/component"
)

// TestPipe: a named pipe is refused, and opening it does not block.
func TestPipe(t *testing.T) {
	scene(t, func(h *harness) {
		h.must(syscall.Mkfifo(h.path("app.log"), 0o600))
		h.start()
		h.pass(5 * time.Second)
		h.wantHealth(component.Unhealthy, "it is a named pipe; name a file")
		h.remove("app.log")
		h.append("app.log", "a\n")
		h.pass(5 * time.Second)
		h.want("a")
		h.wantHealth(component.Healthy, "")
	})
}

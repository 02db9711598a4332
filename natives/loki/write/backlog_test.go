package write_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/weir-run/weir/engine/component"
)

// TestBacklog: lines in the journal count as waiting and have not left the node.
// If a block is sent in pieces, only the unsent pieces count as waiting.
func TestBacklog(t *testing.T) {
	srv := newServer(t)
	srv.setFault(func(w http.ResponseWriter, r request, _ int) bool {
		switch rows := strings.Join(r.rows(), "\n"); {
		case len(r.rows()) > 2:
			http.Error(w, "too much", http.StatusRequestEntityTooLarge)
		case strings.Contains(rows, "line 3"):
			http.Error(w, "down", http.StatusServiceUnavailable)
		default:
			return false
		}
		return true
	})
	n := startNew(t, endpoint(srv.URL, ""))
	n.accept(t, long(lines(1, stream("s", "a"), 4, t0)))
	srv.wait(t, func() bool { return srv.count() == 2 && len(srv.received()) > 4 })
	figures := func(waiting int64, out uint64) {
		t.Helper()
		b := n.c.Backlog()
		if b.Oldest.IsZero() != (waiting == 0) {
			t.Errorf("the oldest of %d lines is of %v", waiting, b.Oldest)
		}
		b.Oldest = time.Time{}
		diff(t, component.Backlog{Journal: true, Lines: waiting}, b)
		if got := n.Stats.LinesOut.Load(); got != out || n.Stats.Out.Load() != 0 {
			t.Errorf("got %d lines and %d samples out, want %d and 0", got, n.Stats.Out.Load(), out)
		}
	}
	figures(2, 2)
	srv.heal()
	n.Wait(t, func() bool { return n.c.Backlog().Lines == 0 })
	figures(0, 4)
}

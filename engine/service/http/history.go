package http

import (
	"fmt"
	"math"
	nethttp "net/http"
	"strconv"
	"time"

	"github.com/weir-run/weir/engine/service"
)

// maxHistoryNodes is how many nodes one request may ask for.
const maxHistoryNodes = 100

// serveHistory serves the last hour of nodes.
func (s *Service) serveHistory(_ service.Host, w nethttp.ResponseWriter, r *nethttp.Request) {
	if s.o.History == nil {
		nethttp.Error(w, "this weir records no history", nethttp.StatusNotFound)
		return
	}
	q := r.URL.Query()
	since, err := sinceOf(q.Get("since"))
	if n := len(q["node"]); err == nil && n > maxHistoryNodes {
		err = fmt.Errorf("ask for at most %d nodes, not %d", maxHistoryNodes, n)
	}
	if err != nil {
		nethttp.Error(w, err.Error(), nethttp.StatusBadRequest)
		return
	}
	h, missing := s.o.History.Since(since, q["node"])
	if missing != "" {
		nethttp.Error(w, fmt.Sprintf("there is no node %s, and there was none in the last hour", missing), nethttp.StatusNotFound)
		return
	}
	if !s.allowed(r).LiveData {
		quietHistory(&h)
	}
	writeCompact(w, h)
}

// sinceOf returns a time that is given in RFC 3339 or as Unix seconds; zero for "".
func sinceOf(text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if n, err := strconv.ParseFloat(text, 64); err == nil && math.Abs(n) < 1e11 {
		return time.UnixMilli(int64(math.Round(n * 1000))), nil
	}
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return t, fmt.Errorf("since must be a time such as 2026-11-23T20:15:04Z or Unix seconds, not %q", text)
	}
	return t, nil
}

package http

import (
	"bytes"
	"fmt"
	nethttp "net/http"
	"strconv"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/flow"
	"github.com/weir-run/weir/engine/service"
	"github.com/weir-run/weir/engine/tap"
)

// Limits for the shown part of a batch.
const (
	defaultRows = 200
	mostRows    = 10_000
	mostBytes   = 8 << 20
)

// rowsOf is a batch of either signal in readable form.
type rowsOf struct {
	what string // rows of it
	len  int
	text func(dst []byte, rows []int) []byte
}

func shownMetrics(b *batch.Metrics, secrets []string) (s rowsOf, ok bool) {
	if b == nil {
		return s, false
	}
	return rowsOf{"row", b.Len(), func(dst []byte, rows []int) []byte {
		return batch.AppendText(dst, tap.MaskMetrics(b.Rows(rows), secrets))
	}}, true
}

func shownLogs(b *batch.Logs, secrets []string) (s rowsOf, ok bool) {
	if b == nil {
		return s, false
	}
	return rowsOf{"line", b.Len(), func(dst []byte, rows []int) []byte {
		return batch.AppendLogsText(dst, tap.MaskLogs(b.Rows(rows), secrets))
	}}, true
}

// last returns the last batches in or out with masked secrets, at most one per signal.
func last(of string, s *flow.Stats, secrets []string) (out []rowsOf) {
	m, l := s.LastIn(), s.LastLogsIn()
	if of == "out" {
		m, l = s.LastOut(), s.LastLogsOut()
	}
	if b, ok := shownMetrics(m, secrets); ok {
		out = append(out, b)
	}
	if b, ok := shownLogs(l, secrets); ok {
		out = append(out, b)
	}
	return out
}

// first returns the first rows of a batch as text, and their number.
func (b rowsOf) first(rows, bytes int) (text []byte, n int) {
	for n < b.len && n < rows {
		// A few at a time: rows may be long.
		end := min(n+100, rows, b.len)
		if text = b.text(text, span(n, end)); len(text) > bytes {
			text = append(cutLine(text[:bytes]), "# the rest is left out\n"...)
			return text, n
		}
		n = end
	}
	return text, n
}

func span(from, to int) []int {
	rows := make([]int, 0, to-from)
	for i := from; i < to; i++ {
		rows = append(rows, i)
	}
	return rows
}

// cutLine removes an incomplete last line.
func cutLine(text []byte) []byte { return text[:bytes.LastIndexByte(text, '\n')+1] }

// lastBatch serves the last batch of a node as text: ?of=in or out, ?rows=N. Secrets are
// masked.
func lastBatch(host service.Host, w nethttp.ResponseWriter, r *nethttp.Request) {
	i, ok := find(host, r.PathValue("id"))
	if !ok || i.Stats == nil {
		nethttp.Error(w, fmt.Sprintf("there is no node %s", r.PathValue("id")), nethttp.StatusNotFound)
		return
	}
	batches, err := pick(r.URL.Query().Get("of"), i.Stats, secretsOf(host))
	rows := defaultRows
	if text := r.URL.Query().Get("rows"); text != "" && err == nil {
		if rows, err = strconv.Atoi(text); err != nil || rows < 1 || rows > mostRows {
			err = fmt.Errorf("rows must be a number from 1 to %d, not %q", mostRows, text)
		}
	}
	if err != nil {
		nethttp.Error(w, err.Error(), nethttp.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	for _, b := range batches {
		text, n := b.first(rows, mostBytes)
		if n < b.len {
			text = fmt.Appendf(text, "# %d of %d %ss\n", n, b.len, b.what)
		}
		w.Write(text) // an error means that the client is gone
	}
}

func pick(of string, s *flow.Stats, secrets []string) ([]rowsOf, error) {
	switch out := last("out", s, secrets); {
	case of == "in":
		return last("in", s, secrets), nil
	case of == "out", of == "" && out != nil:
		return out, nil
	case of == "":
		return last("in", s, secrets), nil
	}
	return nil, fmt.Errorf("of must be in or out, not %q", of)
}

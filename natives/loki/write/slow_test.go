package write_test

import (
	"net/http"
	"sync"
	"testing"

	"github.com/weir-run/weir/engine/batch"
)

// TestSlowEndpoint: an endpoint with a high latency gets concurrent requests of
// eight sources. Lines that wait are sent with the next requests, as many as fit,
// and the lines of a stream stay in order.
func TestSlowEndpoint(t *testing.T) {
	const sources, rounds = 8, 5
	srv := newServer(t)
	var mu sync.Mutex
	flying, all, waits := 0, make(chan struct{}), make(chan struct{})
	srv.setFault(func(http.ResponseWriter, request, int) bool {
		mu.Lock()
		if flying++; flying == sources {
			close(all)
		}
		mu.Unlock()
		<-waits
		return false
	})
	n := startNew(t, endpoint(srv.URL, ""))
	sent := make([]*batch.Logs, sources)
	for i := range sources {
		sent[i] = &batch.Logs{Source: uint64(i)}
	}
	for k := range rounds {
		for i, all := range sent {
			b := long(lines(uint64(i), stream("s", string(rune('a'+i))), 3, t0+int64(k*10)))
			n.accept(t, b)
			all.Stream, all.T, all.Line = append(all.Stream, b.Stream...), append(all.T, b.T...), append(all.Line, b.Line...)
		}
	}
	<-all
	close(waits)
	want := rows(sent...)
	srv.wait(t, func() bool { return srv.count() == len(want) })
	byStream := map[byte][]string{}
	for _, r := range srv.received() {
		for _, row := range r.rows() {
			byStream[row[len(`{s="`)]] = append(byStream[row[len(`{s="`)]], row)
		}
	}
	for i, b := range sent {
		diff(t, rows(b), byStream[byte('a'+i)])
	}
	if got := len(srv.received()); got > 2*sources { // the first request, and one with the rest of the shard
		t.Errorf("%d requests, want %d", got, 2*sources)
	}
}

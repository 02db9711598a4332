package node_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/flow"
)

// TestSinkOnAFullDisk fills a real file system: batches are refused, not lost,
// and accepted again by themselves once there is space.
func TestSinkOnAFullDisk(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=1m"); err != nil {
		t.Skipf("cannot mount a tmpfs: %v", err)
	}
	defer syscall.Unmount(dir, 0)
	if err := os.MkdirAll(filepath.Join(dir, "scripts", "a"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "scripts", "a", "b.lua"), []byte(killedSink), 0o600); err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	down, came, posts := true, make(chan struct{}, 1), []string(nil)
	e := &endpoint{}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		if down {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		resp, err := e.RoundTrip(r) // it keeps the body
		if err == nil {
			posts = append(posts, e.takeBodies()...)
			w.WriteHeader(resp.StatusCode)
		}
		select {
		case came <- struct{}{}:
		default:
		}
	}))
	defer srv.Close()
	c, err := realSink(dir, srv.URL+"/write")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- c.Run(ctx) }()
	defer func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}()

	source := batch.NewSource()
	send := func(i int) error {
		var in strings.Builder
		for row := range 300 {
			fmt.Fprintf(&in, "s%d{i=\"%d\"} %d %d\n", row, i, i, i)
		}
		return c.(flow.MetricsConsumer).ConsumeMetrics(t.Context(), text(t, source, in.String()))
	}
	if err := send(0); err != nil {
		t.Fatal(err)
	}
	ballast := filepath.Join(dir, "ballast")
	f, err := os.Create(ballast)
	if err != nil {
		t.Fatal(err)
	}
	for err == nil {
		_, err = f.Write(make([]byte, 4096))
	}
	f.Close()
	var refused []int
	for i := range 20 {
		switch err := send(1 + i); {
		case errors.Is(err, syscall.ENOSPC):
			refused = append(refused, 1+i)
		case err != nil:
			t.Fatal(err)
		} // the last page had room
	}
	if len(refused) < 10 {
		t.Fatalf("only %d of 20 batches were refused by a full disk", len(refused))
	}
	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	for _, i := range refused {
		if err := send(i); err != nil {
			t.Fatal(err)
		}
	}
	mu.Lock()
	down = false
	mu.Unlock()
	times := map[string]int{}
	for len(times) < 21*300 {
		<-came
		mu.Lock()
		for _, p := range posts {
			for line := range strings.Lines(p) {
				times[line]++
			}
		}
		posts = nil
		mu.Unlock()
	}
	for line, n := range times {
		if n != 1 {
			t.Errorf("%q came %d times", line, n)
		}
	}
}

package write_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/weir-run/weir/engine/batch"
)

// TestHundredReloads: while the arguments change a hundred times under load, every line is
// sent once and in order, and the endpoint keeps its connections.
func TestHundredReloads(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	srv, other := newServer(t), newServer(t)
	var mu sync.Mutex
	connections := map[string]bool{}
	srv.setFault(func(_ http.ResponseWriter, r request, _ int) bool {
		mu.Lock()
		defer mu.Unlock()
		connections[r.RemoteAddr] = true
		return false
	})
	password := filepath.Join(t.TempDir(), "password")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(password, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("0")
	config := func(more, after string) string {
		return endpoint(srv.URL, more+fmt.Sprintf("\nbasic_auth {\nusername = \"u\"\npassword_file = %q\n}\n", password)) + after
	}
	changes := []string{
		config(`headers = { "X-A" = "b" }`, ""),
		config(`remote_timeout = "9s"`, ""),
		config(`batch_size = "100KiB"`, ""),
		config(`max_backoff_period = "1m"`, ""),
		config("", endpoint(other.URL, "")),
		config("", `journal { max_age = "1h" }`),
		config("", ""),
	}
	n := startNew(t, config("", ""))
	diff(t, []string{password}, n.c.Sourced())
	const senders = 4
	var sent []*batch.Logs
	stop, accepted := make(chan struct{}), make(chan struct{}, 1)
	var wg sync.WaitGroup
	for src := range uint64(senders) {
		s := stream("s", fmt.Sprint(src))
		wg.Go(func() {
			for i := int64(0); ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				b := lines(src, s, 3, t0+i*10)
				if err := n.c.ConsumeLogs(t.Context(), b); err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				sent = append(sent, b)
				mu.Unlock()
				select {
				case accepted <- struct{}{}:
				default:
				}
			}
		})
	}
	for i := range 100 {
		<-accepted
		write(fmt.Sprint(i))
		if err := n.c.Update(decode(t, changes[i%len(changes)])); err != nil {
			t.Error(err)
		}
	}
	close(stop)
	wg.Wait()
	want := sorted(rows(sent...))
	srv.wait(t, func() bool { return srv.count() >= len(want) })
	got := srv.rows()
	diff(t, want, sorted(slices.Clone(got)))
	last := map[string]int{} // time of the last line, by stream
	for _, r := range got {
		var labels, line string
		var at int
		if _, err := fmt.Sscan(r, &labels, &at, &line); err != nil {
			t.Fatalf("cannot read %q: %v", r, err)
		}
		if at < last[labels] {
			t.Fatalf("%s: %d after %d", labels, at, last[labels])
		}
		last[labels] = at
	}
	if len(connections) > senders { // each source has a shard, which sends one request at a time
		t.Errorf("there were %d connections, want at most %d", len(connections), senders)
	}

	if err := os.Remove(password); err != nil {
		t.Fatal(err)
	}
	if err := n.c.Update(decode(t, changes[99%len(changes)])); err == nil || !strings.Contains(err.Error(), password) {
		t.Errorf("got %v, want an error about the file", err)
	}
}

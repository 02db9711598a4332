package remotewrite_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/weir-run/weir/engine/batch"
)

// TestHundredReloads: while the arguments change a hundred times under load, every sample
// is sent once and in order, and the endpoint keeps its connection.
func TestHundredReloads(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	srv, other := newServer(t), newServer(t)
	var mu sync.Mutex
	connections := map[string]bool{}
	srv.setFault(func(_ http.ResponseWriter, r *http.Request, _ int) bool {
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
		if !strings.Contains(more, "queue_config") {
			more += "\nqueue_config { max_shards = 1 }"
		}
		more += fmt.Sprintf("\nmetadata_config { send = false }\nbasic_auth {\nusername = \"u\"\npassword_file = %q\n}\n", password)
		return endpoint(srv.URL, more) + after
	}
	n := startNew(t, config("", ""))
	changes := []string{
		config(`headers = { "X-A" = "b" }`, ""),
		config(`remote_timeout = "9s"`, ""),
		config("queue_config {\nmax_shards = 1\nmax_samples_per_send = 7\ncapacity = 70\n}", ""),
		config("queue_config {\nmax_shards = 1\nmin_backoff = \"1s\"\nbatch_send_deadline = \"10ms\"\n}", ""),
		config("write_relabel_config {\nregex = \"x\"\naction = \"labeldrop\"\n}", ""),
		config("", endpoint(other.URL, "")),
		config("", `journal { max_age = "1h" }`),
		config("", ""),
	}
	const senders, each = 4, 3
	var sent []*batch.Metrics
	stop, accepted := make(chan struct{}), make(chan struct{}, 1)
	var wg sync.WaitGroup
	for src := range uint64(senders) {
		wg.Go(func() {
			for i := int64(0); ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				b := gauges(src, each, t0+i)
				if err := n.c.ConsumeMetrics(t.Context(), b); err != nil {
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
	want := len(sent) * each
	srv.wait(t, func() bool { return srv.count(t) >= want })
	diff(t, rows(sent...), srv.samples(t))
	if n := srv.sent(); n != want {
		t.Errorf("%d samples were sent, want %d", n, want)
	}
	checkOrder(t, srv)
	if len(connections) != 1 {
		t.Errorf("there were %d connections, want 1", len(connections))
	}
	if user := srv.received()[len(srv.received())-1].header.Get("Authorization"); !strings.HasPrefix(user, "Basic ") {
		t.Errorf("the last request has Authorization %q", user)
	}
}

// TestFilesOfTheClient: a file of the client that cannot be read is reported when it
// changes; it is no reason to refuse other arguments.
func TestFilesOfTheClient(t *testing.T) {
	srv := newServer(t)
	password := filepath.Join(t.TempDir(), "password")
	config := func(more string) string {
		return endpoint(srv.URL, fmt.Sprintf("basic_auth {\nusername = \"u\"\npassword_file = %q\n}\n%s", password, more))
	}
	if err := os.WriteFile(password, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	n := startNew(t, config(""))
	diff(t, []string{password}, n.c.Sourced())
	update := func(more string) error { return n.c.Update(decode(t, config(more))) }
	if err := update(""); err != nil {
		t.Error(err)
	}
	if err := os.Remove(password); err != nil {
		t.Fatal(err)
	}
	if err := update(""); err == nil || !strings.Contains(err.Error(), password) {
		t.Errorf("got %v, want an error about the file", err)
	}
	if err := update(`remote_timeout = "9s"`); err != nil {
		t.Error(err)
	}
}

package remotewrite_test

import (
	"fmt"
	"net/http"
	"testing"
	"time"
)

// TestUpdateKeepsConnections: the connection is reused after an update, unless
// the update changes the settings of the client.
func TestUpdateKeepsConnections(t *testing.T) {
	srv := newServer(t)
	came := make(chan string, 100)
	srv.setFault(func(_ http.ResponseWriter, r *http.Request, _ int) bool {
		came <- r.RemoteAddr
		return false
	})
	config := func(more string) string {
		return endpoint(srv.URL, "name = \"one\"\nmetadata_config { send = false }\n"+more)
	}
	n := startNew(t, config(""))
	seen, blocks := map[string]bool{}, 0
	f := func(want int) {
		t.Helper()
		n.accept(t, gauges(1, 3, t0+int64(blocks)))
		blocks++
		select {
		case from := <-came:
			seen[from] = true
		case <-time.After(time.Minute): // the machine may be busy
			t.Fatal("no request came")
		}
		if len(seen) != want {
			t.Errorf("%d connections after %d blocks, want %d", len(seen), blocks, want)
		}
	}
	update := func(text string) {
		t.Helper()
		if err := n.c.Update(decode(t, text)); err != nil {
			t.Fatal(err)
		}
	}
	f(1)
	f(1)
	for i, more := range []string{
		`headers = { "X-A" = "b" }`, `queue_config { max_backoff = "7s" }`, `remote_timeout = "9s"`,
		"write_relabel_config {\nregex = \"x\"\naction = \"labeldrop\"\n}",
	} {
		update(config(more))
		f(1)
		update(config(more) + fmt.Sprintf("external_labels = { n = \"%d\" }", i))
		f(1)
	}
	update(config("follow_redirects = false"))
	f(2)
	update(config("follow_redirects = false\nbearer_token = \"x\""))
	f(3)
	f(3)
	update(config("follow_redirects = false\nbearer_token = \"x\"\nround_robin_dns = true"))
	f(4)
}

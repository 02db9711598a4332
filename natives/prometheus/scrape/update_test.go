package scrape_test

import (
	"encoding/pem"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"github.com/weir-run/weir/engine/flow"
	"github.com/weir-run/weir/engine/flow/flowtest"
)

// TestUpdateKeepsConnections: connections are reused after an update, unless it
// changes the settings of connections.
func TestUpdateKeepsConnections(t *testing.T) {
	srv := httptest.NewTLSServer(nil)
	srv.Close()
	certificate := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: srv.Certificate().Raw}))
	f := func(host, file, before, after string) {
		t.Helper()
		bubble(t, func(t *testing.T, n *node) {
			content := filepath.Join(t.TempDir(), "content")
			write := func(text string) {
				t.Helper()
				if err := os.WriteFile(content, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			write(before)
			n.target(host, "a 1\n")
			config := func(x int, more string) string {
				return fmt.Sprintf("scrape_interval = \"10s\"\ntargets = [{ __address__ = %q, x = \"%d\" }]\n%s\n%s", host, x, fmt.Sprintf(file, content), more)
			}
			c := n.build(t, config(1, ""))
			stop := n.Run(t, c)
			n.wait(t, 2)
			opened := int32(1)
			diff(t, "connections at the start", opened, n.dials.Load())
			check := func(what string, opens int32, x int, more string, to ...*flow.Receiver) {
				t.Helper()
				a := n.args(t, config(x, more))
				a.ForwardTo = append(a.ForwardTo, to...)
				if err := c.Update(a); err != nil {
					t.Fatal(err)
				}
				n.wait(t, len(n.sink.Batches())+4) // one of them may contain markers
				opened += opens
				diff(t, "connections after "+what, opened, n.dials.Load())
				bs := n.sink.Batches()
				diff(t, "up after "+what, "1", up(bs[len(bs)-1]))
			}
			check("nothing changed", 0, 1, "")
			check("another target", 0, 2, "")
			check("another receiver", 0, 2, "", flowtest.NewSink("other").Receiver())
			check("another limit", 0, 2, "sample_limit = 100")
			check("another limit and target", 0, 3, "label_limit = 100")
			check("other arguments of the client", 1, 3, "follow_redirects = false")
			check("other arguments of the client and another target", 1, 4, "")
			write(after)
			check("another content of the file", 1, 4, "")
			check("another target", 0, 5, "")
			stop()
		})
	}
	f(memory, "tls_config { ca_file = %q }", certificate, certificate+"\n") // weir's own transport
	f("one:80", "tls_config { ca_file = %q }", certificate, certificate+"\n")
	f("one:80", "bearer_token_file = %q", "one", "two")
}

package node_test

import (
	"crypto/tls"
	"encoding/pem"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/scripting/host"
)

// Connections of ctx.http are kept between calls, over VMs, and with TLS as the
// block says.
func TestHTTPConnections(t *testing.T) {
	var made atomic.Int64
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "%d certificates", len(r.TLS.PeerCertificates))
	}))
	s.TLS = &tls.Config{ClientAuth: tls.RequestClientCert}
	s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			made.Add(1)
		}
	}
	s.StartTLS()
	defer s.Close()
	n := newOutside(t, host.Outside{})
	ca := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	src := scriptReturning("http = true", "", fmt.Sprintf(`local r, err = ctx.http.get("%s/") return r and r.body or err`, s.URL))
	with := func(tls string) string {
		return fmt.Sprintf("script {\nconcurrency = \"partition\"\nby = [\"i\"]\nallow {\nhttp = [%q]\n}\nhttp {\n%s\n}\n}\n", s.URL+"/*", tls)
	}
	f := func(tls, want string) {
		t.Helper()
		if got := n.runScript(src, with(tls)); !strings.Contains(got, want) {
			t.Errorf("with %s: got %q, want %q in it", tls, got, want)
		}
	}
	f("", "certificate signed by unknown authority")
	f("tls_config {\nca_file = \""+ca+"\"\nserver_name = \"other.test\"\n}", "certificate is valid for example.com")
	f("tls_config {\ninsecure_skip_verify = true\n}", "0 certificates")
	cert, key := certificate(t, "client.test")
	f(fmt.Sprintf("tls_config {\nca_file = %q\ncert_pem = %q\nkey_pem = %q\n}", ca, cert, key), "1 certificates")

	// On several VMs. A busy machine may give a connection back too late for the
	// next request; not in every one of so many rounds.
	var more int64
	for round := range 5 {
		f("tls_config {\nca_file = \""+ca+"\"\n}", "0 certificates")
		before := made.Load()
		for i := range 100 {
			n.send(text(t, batch.NewSource(), fmt.Sprintf("a{i=\"%d\",round=\"%d\"} 1\n", i, round)))
		}
		if more = made.Load() - before; more == 0 {
			break
		}
	}
	if more != 0 {
		t.Errorf("%d connections were made for 100 requests, for which there was one", more)
	}
	if got := gathered(t, n.Registry, "weir_script_vms"); got < 2 {
		t.Errorf("there are %v VMs", got)
	}
}

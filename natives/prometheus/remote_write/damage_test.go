package remotewrite_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/clock"
)

// TestDamagedBacklog damages two blocks of a backlog, one of them in its header,
// and changes all settings of the endpoint except its name. The two blocks are
// lost and counted; the rest arrives unchanged.
func TestDamagedBacklog(t *testing.T) {
	srv := newServer(t)
	srv.answer(503)
	n := startNew(t, endpoint(srv.URL, `name = "a"
		queue_config { max_samples_per_send = 10 }`))
	var sent []*batch.Metrics
	for i := range int64(5) { // each batch fills a block
		b := gauges(1, 10, t0+i*1000)
		n.accept(t, b)
		sent = append(sent, b)
	}
	n.stop()
	segments, err := filepath.Glob(filepath.Join(n.StoragePath, "journal", "name-a", "*.seg"))
	if err != nil || len(segments) != 1 {
		t.Fatalf("segments %q, %v", segments, err)
	}
	b, err := os.ReadFile(segments[0])
	if err != nil {
		t.Fatal(err)
	}
	var at []int // the start of each block
	for off := 0; ; off++ {
		i := bytes.Index(b[off:], []byte("\xd7WJ\x01"))
		if i < 0 {
			break
		}
		off += i
		at = append(at, off)
	}
	if len(at) != 5 {
		t.Fatalf("blocks at %d", at)
	}
	b[at[1]+10] ^= 1 // its number
	b[at[4]-1] ^= 1  // the last byte of the previous block
	if err := os.WriteFile(segments[0], b, 0o600); err != nil {
		t.Fatal(err)
	}

	srv.heal()
	n.Registry = prometheus.NewRegistry()
	again := start(t, n.Node, clock.System{}, endpoint(srv.URL+"/?moved=1", `name = "a"
		headers = { "X-Scope-OrgID" = "other" }
		basic_auth {
			username = "u"
			password = "p"
		}
		tls_config { insecure_skip_verify = true }
		queue_config {
			max_samples_per_send = 500
			min_shards = 3
		}`))
	want := rows(sent[0], sent[2], sent[4])
	srv.wait(t, func() bool { return srv.count(t) >= len(want) })
	diff(t, want, srv.samples(t))
	again.metric(t, "weir_journal_blocks_dropped_total", "corrupt", 2)
	again.metric(t, "weir_remote_write_samples_dropped_total", "corrupt", 10) // the other block cannot be counted
	again.stop()
	if _, err := os.Stat(segments[0] + ".damaged"); err != nil {
		t.Errorf("the damaged segment is not kept: %v", err)
	}
}

package remotewrite_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/clock"
	"github.com/weir-run/weir/engine/clock/clocktest"
	"github.com/weir-run/weir/engine/component/componenttest"
)

// tenants returns the received samples by tenant, like Mimir, in the order of
// arrival.
func tenants(srv *server) map[string][]string {
	got := map[string][]string{}
	for _, r := range srv.received() {
		who := strings.Join(r.header["X-Scope-Orgid"], "|")
		for _, ts := range r.message.Timeseries {
			s := ""
			for _, l := range ts.Labels {
				s += l.Name + "=" + l.Value + " "
			}
			got[who] = append(got[who], fmt.Sprint(s, " ", ts.Samples[0].Timestamp-t0))
		}
	}
	return got
}

func tenantBatch(source uint64, at int64, tenants ...string) *batch.Metrics {
	b := &batch.Metrics{Source: source}
	for i, tenant := range tenants {
		b.Series = append(b.Series, series("m", "i", fmt.Sprint(i), "tenant", tenant))
		b.T, b.V = append(b.T, at), append(b.V, float64(i))
	}
	return b
}

func TestHeaderFromLabel(t *testing.T) {
	f := func(name, more string, want map[string][]string, dropped map[string]uint64) {
		t.Helper()
		for _, message := range []string{"", asV2} {
			srv := newServerOf(t, time.Hour, v1, v2)
			n := startNew(t, endpoint(srv.URL, message+more))
			n.accept(t, tenantBatch(1, t0, "a", "b", "a", "", "ü"))
			total := 0
			for _, rows := range want {
				total += len(rows)
			}
			srv.wait(t, func() bool { return srv.sent() == total })
			n.stop()
			if got := tenants(srv); len(got) == 0 {
				t.Errorf("%s: nothing came", name)
			} else {
				diff(t, want, got)
			}
			if dropped == nil {
				dropped = map[string]uint64{}
			}
			diff(t, dropped, n.Stats.Dropped())
		}
	}
	f("label taken away", `header_from_label { label = "tenant" }`, map[string][]string{
		"a": {"__name__=m i=0  0", "__name__=m i=2  0"}, "b": {"__name__=m i=1  0"}, "": {"__name__=m i=3  0"}, "ü": {"__name__=m i=4  0"},
	}, nil)
	f("label kept, others by default", "header_from_label {\n label = \"tenant\"\n keep = true\n default = \"other\"\n }", map[string][]string{
		"a": {"__name__=m i=0 tenant=a  0", "__name__=m i=2 tenant=a  0"}, "b": {"__name__=m i=1 tenant=b  0"}, "other": {"__name__=m i=3  0"}, "ü": {"__name__=m i=4 tenant=ü  0"},
	}, nil)
	f("others by headers", "headers = { \"X-Scope-OrgID\" = \"anonymous\" }\n header_from_label { label = \"tenant\" }", map[string][]string{
		"a": {"__name__=m i=0  0", "__name__=m i=2  0"}, "b": {"__name__=m i=1  0"}, "anonymous": {"__name__=m i=3  0"}, "ü": {"__name__=m i=4  0"},
	}, nil)
	f("label made by a rule", `write_relabel_config {
			source_labels = ["i"]
			regex         = "[23]"
			target_label  = "tenant"
			replacement   = "x"
		}
		write_relabel_config {
			source_labels = ["tenant"]
			regex         = "ü"
			action        = "drop"
		}
		header_from_label { label = "tenant" }`, map[string][]string{
		"a": {"__name__=m i=0  0"}, "b": {"__name__=m i=1  0"}, "x": {"__name__=m i=2  0", "__name__=m i=3  0"},
	}, map[string]uint64{"write_relabel": 1})
	f("too many values", "header_from_label {\n label = \"tenant\"\n max_values = 2\n }", map[string][]string{
		"a": {"__name__=m i=0  0", "__name__=m i=2  0"}, "b": {"__name__=m i=1  0"}, "": {"__name__=m i=3  0"},
	}, map[string]uint64{"header_values": 1})
}

func TestValuesThatAreNoHeader(t *testing.T) {
	srv := newServer(t)
	n := startNew(t, endpoint(srv.URL, `header_from_label { label = "tenant" }`))
	n.accept(t, tenantBatch(1, t0, "a\r\nX-Admin: yes", "a\x00", " a", "a\t", strings.Repeat("x", 1025), "ok", "a\x7f", strings.Repeat("x", 1024)))
	srv.wait(t, func() bool { return srv.sent() == 2 })
	n.stop()
	diff(t, map[string][]string{"ok": {"__name__=m i=5  0"}, strings.Repeat("x", 1024): {"__name__=m i=7  0"}}, tenants(srv))
	diff(t, map[string]uint64{"header_invalid": 6}, n.Stats.Dropped())
}

// TestValuesAreForgotten: only the values of the last minutes count towards the
// limit.
func TestValuesAreForgotten(t *testing.T) {
	srv := newServer(t)
	fake := clocktest.New(time.UnixMilli(t0))
	n := start(t, componenttest.New(t, "prometheus.remote_write.test"), fake, endpoint(srv.URL, "header_from_label {\n label = \"tenant\"\n max_values = 1\n }"))
	send := func(b *batch.Metrics) {
		t.Helper()
		stop := advance(fake)
		defer stop()
		n.accept(t, b)
	}
	send(tenantBatch(1, t0, "a"))
	send(tenantBatch(1, t0+1, "a", "b"))
	n.metric(t, "weir_remote_write_header_values", srv.URL, 1)
	fake.Advance(11 * time.Minute)
	stop := advance(fake)
	pace := time.NewTicker(time.Millisecond)
	defer pace.Stop()
	for range 10_000 { // idle values are removed within a minute
		n.accept(t, tenantBatch(1, t0+2, "b"))
		if n.Stats.Dropped()["header_values"] > 0 && len(tenants(srv)["b"]) > 0 {
			break
		}
		<-pace.C
	}
	if len(tenants(srv)["b"]) == 0 {
		t.Error("the other value is refused still")
	}
	stop()
	n.stop()
	if n.Stats.Dropped()["header_values"] == 0 {
		t.Error("nothing was dropped above the limit")
	}
}

// TestTenantOfTheBacklog: a block is sent for the tenant for which it was
// gathered, whatever the configuration after a restart.
func TestTenantOfTheBacklog(t *testing.T) {
	srv := newServerOf(t, time.Hour, v1, v2)
	srv.answer(503)
	home := componenttest.New(t, "prometheus.remote_write.test")
	n := start(t, home, clock.System{}, endpoint(srv.URL, `header_from_label { label = "tenant" }`))
	n.accept(t, tenantBatch(1, t0, "a", "b"))
	n.stop()
	home.Registry = prometheus.NewRegistry()
	before := len(srv.received())
	srv.heal()
	n = start(t, home, clock.System{}, endpoint(srv.URL, asV2))
	srv.wait(t, func() bool { return srv.count(t) == 2 })
	n.stop()
	srv.mu.Lock()
	srv.requests = srv.requests[before:]
	srv.mu.Unlock()
	diff(t, map[string][]string{"a": {"__name__=m i=0  0"}, "b": {"__name__=m i=1  0"}}, tenants(srv))
}

// TestManyTenants sends small batches of a thousand tenants concurrently. No
// request contains two tenants, the order within a series is kept, and nothing is
// lost.
func TestManyTenants(t *testing.T) {
	const count, rounds, sources = 1000, 2, 2
	srv := newServerOf(t, time.Hour, v2)
	n := startNew(t, endpoint(srv.URL, asV2+`header_from_label { label = "tenant" }`))
	// Without the TSDB, which is not part of the test.
	var came atomic.Int64
	srv.setFault(func(w http.ResponseWriter, r *http.Request, n int) bool {
		w.Header().Set("X-Prometheus-Remote-Write-Samples-Written", "1000000")
		came.Add(int64(len(srv.request(n - 1).message.Timeseries)))
		return true
	})
	done := make(chan error)
	for source := range uint64(sources) {
		var names []string
		for i := range count {
			names = append(names, fmt.Sprintf("tenant-%d", i))
		}
		b := tenantBatch(source, t0, names...)
		for i := range b.Series {
			b.Series[i] = series("m", "source", fmt.Sprint(source), "tenant", names[i])
		}
		go func() {
			for round := range int64(rounds) {
				c := *b
				c.T = slices.Repeat([]int64{t0 + round}, count)
				if err := n.c.ConsumeMetrics(t.Context(), &c); err != nil {
					done <- err
					return
				}
			}
			done <- nil
		}()
	}
	for range sources {
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	}
	srv.wait(t, func() bool { return came.Load() == count*rounds*sources })
	got := tenants(srv)
	if len(got) != count {
		t.Errorf("%d tenants, want %d", len(got), count)
	}
	for who, rows := range got {
		if len(rows) != rounds*sources {
			t.Fatalf("%s has %d samples, want %d", who, len(rows), rounds*sources)
		}
		next := map[string]int{}
		for _, r := range rows {
			s, at, _ := strings.Cut(r, "  ")
			if at != fmt.Sprint(next[s]) {
				t.Fatalf("%s: sample %s of %s, want %d", who, at, s, next[s])
			}
			next[s]++
		}
	}
	n.stop()
	diff(t, map[string]uint64{}, n.Stats.Dropped())
}

// TestOrderWhenShardsChange: when header_from_label is added, series move to
// other shards and must not overtake their samples in the old ones.
func TestOrderWhenShardsChange(t *testing.T) {
	srv := newServer(t)
	srv.answer(503)
	home := componenttest.New(t, "prometheus.remote_write.test")
	backoff := "queue_config {\n max_backoff = \"30ms\"\n }\n"
	n := start(t, home, clock.System{}, endpoint(srv.URL, backoff))
	var names []string
	for i := range 20 {
		names = append(names, fmt.Sprint("tenant", i))
	}
	at := int64(t0)
	send := func() {
		for range 3 {
			n.accept(t, tenantBatch(3, at, names...))
			at += 1000
		}
	}
	change := func(more string) {
		if err := n.c.Update(decode(t, endpoint(srv.URL, backoff+more))); err != nil {
			t.Fatal(err)
		}
		send()
	}
	send()
	change("header_from_label {\n label = \"tenant\"\n keep = true\n }")
	change("header_from_label {\n label = \"i\"\n keep = true\n }")
	change("")
	srv.mu.Lock()
	srv.requests, srv.fault = nil, nil // in one step: no refused request may come between
	srv.mu.Unlock()
	want := int(at-t0) / 1000 * len(names)
	srv.wait(t, func() bool { return srv.count(t) == want })
	last := map[string]int64{}
	for _, r := range srv.received() {
		for _, ts := range r.message.Timeseries {
			key := fmt.Sprint(ts.Labels)
			if s := ts.Samples[0]; s.Timestamp <= last[key] {
				t.Fatalf("%s: %d after %d", key, s.Timestamp, last[key])
			} else {
				last[key] = s.Timestamp
			}
		}
	}
}

// TestTenantsDoNotWaitForEachOther: a refused sample of one source's tenant does
// not delay the first samples of another source.
func TestTenantsDoNotWaitForEachOther(t *testing.T) {
	srv := newServer(t)
	srv.setFault(func(w http.ResponseWriter, r *http.Request, _ int) bool {
		if r.Header.Get("X-Scope-OrgID") != "a" {
			return false
		}
		w.WriteHeader(http.StatusServiceUnavailable)
		return true
	})
	n := startNew(t, endpoint(srv.URL, `header_from_label { label = "tenant" }`))
	n.accept(t, tenantBatch(1, t0, "a"), tenantBatch(2, t0, "b", "c", "d", "e", "f", "g"))
	srv.wait(t, func() bool { return srv.count(t) > 0 })
	srv.heal()
}

// TestMetadataOfTenants: each tenant gets the metadata of its own families.
func TestMetadataOfTenants(t *testing.T) {
	srv := newServer(t)
	fake := clocktest.New(time.UnixMilli(t0))
	n := start(t, componenttest.New(t, "prometheus.remote_write.test"), fake, endpoint(srv.URL, `header_from_label { label = "tenant" }`))
	b := tenantBatch(1, t0, "a", "b", "a")
	for i, name := range []string{"x_total", "y", "renamed_total"} {
		s := series(name, "tenant", []string{"a", "b", "a"}[i])
		s.SetMeta(&batch.Metadata{Type: "counter", Help: name, Family: []string{"x", "y", "old"}[i]})
		b.Series[i] = s
	}
	stop := advance(fake)
	defer stop()
	n.accept(t, b)
	got := map[string][]string{}
	srv.wait(t, func() bool {
		clear(got)
		for _, r := range srv.received() {
			for _, m := range r.message.Metadata {
				who := r.header.Get("X-Scope-OrgID")
				got[who] = append(got[who], m.MetricFamilyName+" "+m.Help)
			}
		}
		return len(got) == 2
	})
	diff(t, map[string][]string{"a": {"renamed_total renamed_total", "x x_total"}, "b": {"y y"}}, got)
}

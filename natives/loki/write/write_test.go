package write_test

import (
	"fmt"
	"math"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/clock"
	"github.com/weir-run/weir/engine/component/componenttest"
)

// TestEveryByteArrives sends unusual lines.
func TestEveryByteArrives(t *testing.T) {
	srv := newServer(t)
	n := startNew(t, endpoint(srv.URL, ""))
	a, b, tenant := stream("app", "api", "env", "prod"), stream("app", "grüße\n\"\\"), stream("app", "api", "__tenant_id__", "seven", "__path__", "/x")
	logs := &batch.Logs{
		Source: 1,
		Stream: []*batch.Stream{a, b, a, a, tenant, a, b},
		T:      []int64{t0, t0 + 1, t0, t0 + 1_000_000_000, t0 + 4, math.MaxInt64, -1},
		Line:   []string{"one", "", "\xff\x00\n", strings.Repeat("x", 2<<20), "five", "last", "before 1970"},
		Meta:   [][]batch.Label{{{Name: "trace_id", Value: "7"}, {Name: "user"}}, nil, nil, nil, {{Name: "k", Value: "v"}}, nil, nil},
	}
	n.accept(t, logs)
	srv.wait(t, func() bool { return srv.count() == logs.Len() })
	diff(t, sorted(rows(logs)), sorted(srv.rows()))
	for _, r := range srv.received() {
		diff(t, []string{"POST", "application/x-protobuf", "snappy", "weir/test"}, []string{
			r.Method, r.Header.Get("Content-Type"), r.Header.Get("Content-Encoding"), r.Header.Get("User-Agent"),
		})
	}
	n.stop()
	diff(t, map[string]uint64{}, n.Stats.DroppedLines())
}

// TestMetadataNames: a name for which Loki always answers 500 is changed to one
// that it accepts.
func TestMetadataNames(t *testing.T) {
	srv := newServer(t)
	n := startNew(t, endpoint(srv.URL, ""))
	meta := []batch.Label{{Name: ""}, {Name: "_a"}, {Name: "__", Value: "1"}, {Name: "☃"}}
	n.accept(t, &batch.Logs{Source: 1, Stream: []*batch.Stream{stream("app", "api")}, T: []int64{t0}, Line: []string{"one"}, Meta: [][]batch.Label{meta}})
	srv.wait(t, func() bool { return srv.count() == 1 })
	var got []string
	for _, l := range srv.received()[0].push.Streams[0].Entries[0].StructuredMetadata {
		got = append(got, l.Name)
	}
	diff(t, []string{"key", "_a", "key__", "key☃"}, got)
	diff(t, "__", meta[2].Name) // the batch is unchanged
}

// TestOrder: lines of a stream come in order, through blocks and requests.
func TestOrder(t *testing.T) {
	srv := newServer(t)
	n := startNew(t, endpoint(srv.URL, `batch_size = "64KiB"`))
	a, b := stream("s", "a"), stream("s", "b")
	var want [2][]string
	for i := range int64(30) {
		x := &batch.Logs{Source: 3}
		for k := range int64(100) { // the streams alternate
			s := a
			if k%3 == 0 {
				s = b
			}
			x.Stream, x.T = append(x.Stream, s), append(x.T, t0+i*1000+k)
			x.Line = append(x.Line, strings.Repeat(fmt.Sprint(i, k, " "), 200))
		}
		n.accept(t, x)
		for _, r := range rows(x) {
			if strings.Contains(r, `"a"`) {
				want[0] = append(want[0], r)
			} else {
				want[1] = append(want[1], r)
			}
		}
	}
	srv.wait(t, func() bool { return srv.count() == 3000 })
	var got [2][]string
	for _, r := range srv.rows() {
		if strings.Contains(r, `"a"`) {
			got[0] = append(got[0], r)
		} else {
			got[1] = append(got[1], r)
		}
	}
	diff(t, want, got)
}

// TestRequestsAreJoined: waiting blocks are sent in one request, up to
// batch_size.
func TestRequestsAreJoined(t *testing.T) {
	srv := newServer(t)
	srv.answer(503, "not yet")
	n := startNew(t, endpoint(srv.URL, `batch_size = "200KiB"`))
	s := stream("app", "x")
	var all []*batch.Logs
	for i := range int64(20) {
		b := long(lines(1, s, 10, t0+i*100))
		n.accept(t, b)
		all = append(all, b)
	}
	srv.wait(t, func() bool { return len(srv.received()) > 0 })
	srv.heal()
	before := len(srv.received())
	srv.wait(t, func() bool { return srv.count() == 200 })
	diff(t, rows(all...), srv.rows())
	// 40 KiB per block
	if k := len(srv.received()) - before; k > 8 {
		t.Errorf("20 blocks came in %d requests", k)
	}
	for _, r := range srv.received() {
		if size := r.push.Size(); size > 200<<10 {
			t.Errorf("a request has %d bytes", size)
		}
	}
}

func TestLabels(t *testing.T) {
	srv := newServer(t)
	n := startNew(t, `external_labels = { zone = "z1", app = "other", __tenant_id__ = "ours" }`+"\n"+endpoint(srv.URL, `
		tenant_id = "not used"
		headers   = { "X-More" = "1" }`))
	n.accept(t, lines(1, stream("app", "api"), 1, t0), lines(1, stream("zone", "own", "__tenant_id__", "theirs"), 1, t0))
	srv.wait(t, func() bool { return srv.count() == 2 })
	diff(t, []string{`ours {app="api", zone="z1"} 0 line 0`, `theirs {app="other", zone="own"} 0 line 0`}, sorted(srv.rows()))
	if got := srv.received()[0].Header.Get("X-More"); got != "1" {
		t.Errorf("got header %q", got)
	}
}

func TestMaxStreams(t *testing.T) {
	srv := newServer(t)
	n := startNew(t, "max_streams = 2\n"+endpoint(srv.URL, ""))
	a, b, c := stream("s", "a"), stream("s", "b"), stream("s", "c")
	n.accept(t, lines(1, a, 1, t0), lines(2, b, 1, t0), lines(3, c, 5, t0), lines(1, a, 1, t0+9))
	srv.wait(t, func() bool { return srv.count() == 3 })
	n.stop()
	diff(t, map[string]uint64{"max_streams": 5}, n.Stats.DroppedLines())
}

func TestTenantsThatNoHeaderCanHave(t *testing.T) {
	srv := newServer(t)
	n := startNew(t, endpoint(srv.URL, ""))
	n.accept(t, lines(1, stream("s", "a", "__tenant_id__", "x\ny"), 2, t0), lines(1, stream("s", "b"), 1, t0))
	srv.wait(t, func() bool { return srv.count() == 1 })
	n.stop()
	diff(t, map[string]uint64{"tenant_invalid": 2}, n.Stats.DroppedLines())
}

// TestTenantsDoNotHoldEachOther: a tenant that is rate-limited delays neither
// other tenants nor lines without a tenant.
func TestTenantsDoNotHoldEachOther(t *testing.T) {
	srv := newServer(t)
	srv.setFault(func(w http.ResponseWriter, r request, _ int) bool {
		if r.tenant == "limited" {
			http.Error(w, "too much", http.StatusTooManyRequests)
			return true
		}
		return false
	})
	n := startNew(t, endpoint(srv.URL, ""))
	var limited []*batch.Logs
	for i := range int64(5) {
		b := lines(1, stream("s", "a", "__tenant_id__", "limited"), 3, t0+i*10)
		limited = append(limited, b)
		n.accept(t, b, lines(1, stream("s", "b", "__tenant_id__", "free"), 3, t0+i*10), lines(1, stream("s", "c"), 3, t0+i*10))
	}
	srv.wait(t, func() bool { return srv.count() == 30 })
	srv.heal()
	srv.wait(t, func() bool { return srv.count() == 45 })
	var got []string
	for _, r := range srv.rows() {
		if strings.HasPrefix(r, "limited") {
			got = append(got, r)
		}
	}
	diff(t, rows(limited...), got)
}

// TestRestart: lines that were accepted in an outage arrive after a restart, and
// a stop does not wait for them.
func TestRestart(t *testing.T) {
	srv := newServer(t)
	srv.answer(http.StatusServiceUnavailable, "down")
	n := startNew(t, endpoint(srv.URL, "min_backoff_period = \"1h\"\nmax_backoff_period = \"1h\""))
	b := lines(1, stream("s", "a"), 3, t0)
	n.accept(t, b)
	srv.wait(t, func() bool { return len(srv.received()) == 1 })
	n.stop()
	if got := len(srv.received()); got != 1 {
		t.Errorf("%d requests, want 1", got)
	}
	srv.heal()
	n.Registry = prometheus.NewRegistry()
	start(t, n.Node, clock.System{}, endpoint(srv.URL, ""))
	srv.wait(t, func() bool { return srv.count() == 3 })
	diff(t, rows(b), srv.rows())
}

// TestStopSendsWhatIsThere: the last accepted lines are sent before Run returns,
// if the endpoint accepts them.
func TestStopSendsWhatIsThere(t *testing.T) {
	srv := newServer(t)
	// The time limit of the stop never passes.
	n := start(t, componenttest.New(t, id), nil, endpoint(srv.URL, "batch_wait = \"1h\"\nremote_timeout = \"2m\""))
	var want []*batch.Logs
	for source := range uint64(6) {
		for i := range int64(3) {
			b := long(lines(source, stream("source", fmt.Sprint(source)), 3, t0+i*10))
			n.accept(t, b)
			want = append(want, b)
		}
	}
	if k := len(srv.received()); k > 0 {
		t.Errorf("there were %d requests before batch_wait", k)
	}
	n.stop()
	diff(t, sorted(rows(want...)), sorted(srv.rows()))
	if k := len(srv.received()); k > 6 {
		t.Errorf("there were %d requests of 8 shards", k)
	}
}

// TestReload changes all settings while lines arrive.
func TestReload(t *testing.T) {
	one, two := newServer(t), newServer(t)
	text := func(url, more string) string { return endpoint(url, "name = \"x\"\n"+more) }
	n := startNew(t, text(one.URL, ""))
	s := stream("s", "a")
	var want []*batch.Logs
	send := func() {
		b := lines(1, s, 5, t0+int64(len(want))*100)
		n.accept(t, b)
		want = append(want, b)
	}
	for i := range 3 {
		send()
		url := one.URL
		if i == 1 {
			url = two.URL
		}
		if err := n.c.Update(decode(t, text(url, fmt.Sprintf("headers = { \"X-N\" = \"%d\" }", i)))); err != nil {
			t.Fatal(err)
		}
		send()
	}
	// Build a new component that replaces the old one.
	n.Registry = prometheus.NewRegistry()
	n.Previous = n.c
	old := n
	n = start(t, n.Node, clock.System{}, text(two.URL, ""))
	old.replace()
	send()
	both := func() []string { return sorted(append(one.rows(), two.rows()...)) }
	two.wait(t, func() bool { return one.count()+two.count() == 35 })
	diff(t, sorted(rows(want...)), both())
}

// TestRemovedEndpoint: removing an endpoint does not affect the other one. When
// it is added again, it continues with its journal.
func TestRemovedEndpoint(t *testing.T) {
	alive, dead := newServer(t), newServer(t)
	dead.answer(500, "dead")
	a, d := endpoint(alive.URL, `name = "alive"`), endpoint(dead.URL, `name = "dead"`)
	n := startNew(t, a+d)
	s := stream("s", "a")
	n.accept(t, lines(1, s, 3, t0))
	alive.wait(t, func() bool { return alive.count() == 3 }) // the dead endpoint does not delay it
	if err := n.c.Update(decode(t, a)); err != nil {
		t.Fatal(err)
	}
	n.accept(t, lines(1, s, 3, t0+10))
	alive.wait(t, func() bool { return alive.count() == 6 })
	dead.heal()
	if err := n.c.Update(decode(t, a+d)); err != nil {
		t.Fatal(err)
	}
	dead.wait(t, func() bool { return dead.count() == 3 })
	n.accept(t, lines(1, s, 3, t0+20))
	dead.wait(t, func() bool { return dead.count() == 6 })
	if slices.ContainsFunc(dead.rows(), func(r string) bool { return strings.Contains(r, "} 10 ") }) {
		t.Error("it was sent what came while it was not there")
	}
}

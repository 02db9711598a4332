//go:build integration

package integration

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path/filepath"
	"sort"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// lokiConfig is the config of a single-process Loki that stores everything below
// DIR. It returns each entry unchanged: it adds no labels and no metadata, and
// has no limits except LIMITS.
const lokiConfig = `
auth_enabled: AUTH
server:
  http_listen_address: 127.0.0.1
  http_listen_port: 0
  grpc_listen_address: 127.0.0.1
  grpc_listen_port: 0
  grpc_server_max_recv_msg_size: 209715200
  grpc_server_max_send_msg_size: 209715200
analytics:
  reporting_enabled: false
common:
  instance_addr: 127.0.0.1
  path_prefix: DIR
  storage:
    filesystem:
      chunks_directory: DIR/chunks
      rules_directory: DIR/rules
  replication_factor: 1
  ring:
    instance_addr: 127.0.0.1
    kvstore:
      store: inmemory
ingester:
  lifecycler:
    min_ready_duration: 0s
    final_sleep: 0s
  wal:
    replay_memory_ceiling: 512MB
frontend_worker:
  grpc_client_config:
    max_send_msg_size: 209715200
    max_recv_msg_size: 209715200
query_range:
  parallelise_shardable_queries: false
schema_config:
  configs:
    - from: 2020-10-24
      store: tsdb
      object_store: filesystem
      schema: v13
      index:
        prefix: index_
        period: 24h
limits_config:
  ingestion_rate_mb: 1000
  ingestion_burst_size_mb: 1000
  per_stream_rate_limit: 1GB
  per_stream_rate_limit_burst: 1GB
  max_global_streams_per_user: 0
  max_entries_limit_per_query: 50000
  split_queries_by_interval: 0
  max_query_parallelism: 1
  discover_service_name: []
  discover_log_levels: false
`

// lokiServer is a real Loki. Clients write to it through wire, whose address
// stays the same while the server is stopped and started with the same storage.
type lokiServer struct {
	*process
	url    string // of the server, for queries
	wire   *link
	dir    string
	tenant string
}

// startLoki runs a real server; limits are lines of its limits_config, in YAML.
func startLoki(t *testing.T, limits ...string) *lokiServer {
	t.Helper()
	return startLokiWith(t, false, limits...)
}

// startLokiWith is startLoki, optionally with several tenants.
func startLokiWith(t *testing.T, tenants bool, limits ...string) *lokiServer {
	t.Helper()
	l := &lokiServer{dir: t.TempDir()}
	config := lokiConfig
	for _, limit := range limits {
		name, _, _ := strings.Cut(limit, ":")
		var kept []string
		for _, line := range strings.Split(config, "\n") {
			if !strings.HasPrefix(line, "  "+name+":") {
				kept = append(kept, line)
			}
		}
		config = strings.Join(kept, "\n") + "  " + limit + "\n"
	}
	write(t, filepath.Join(l.dir, "loki.yaml"), strings.NewReplacer("DIR", l.dir, "AUTH", strconv.FormatBool(tenants)).Replace(config))
	l.up(t)
	l.wire = startLink(t, l.url)
	return l
}

// up starts the server and waits until it is ready.
func (l *lokiServer) up(t *testing.T) {
	t.Helper()
	l.process = start(t, filepath.Join(env(t, "SERVERS"), "loki"), "-config.file="+filepath.Join(l.dir, "loki.yaml"))
	l.url = "http://" + l.await(1, `msg="server listening on addresses" http=(127\.0\.0\.1:\d+)`)
	if l.wire != nil {
		l.wire.moves(t, l.url)
	}
	eventually(t, "Loki takes pushes", func() error {
		// The server answers queries up to ten seconds later.
		if err := l.ready(); err != nil && !strings.Contains(err.Error(), "Query Frontend not ready") {
			return err
		}
		return nil
	})
}

// ready returns an error unless the server is ready.
func (l *lokiServer) ready() error {
	resp, err := http.Get(l.url + "/ready")
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if body, _ := io.ReadAll(resp.Body); resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", resp.Status, body)
	}
	return nil
}

// down stops the server. Its data stays on disk.
func (l *lokiServer) down(t *testing.T) {
	t.Helper()
	l.wire.cut()
	l.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-l.done:
	case <-time.After(patience):
		t.Fatalf("Loki did not end within %s of SIGTERM", patience)
	}
}

// endpoint returns an endpoint block for the server, with more arguments.
func (l *lokiServer) endpoint(more ...string) string {
	return endpointBlock("http://"+l.wire.addr, more...)
}

// endpointBlock returns an endpoint block of loki.write with short waiting times
// for tests, unless more sets them.
func endpointBlock(url string, more ...string) string {
	block := fmt.Sprintf("  endpoint {\n    url = \"%s/loki/api/v1/push\"\n", url)
	for _, usual := range []string{`batch_wait = "200ms"`, `max_backoff_period = "1s"`} {
		name, _, _ := strings.Cut(usual, " ")
		if !strings.Contains(strings.Join(more, "\n"), name) {
			more = append(more, usual)
		}
	}
	return block + "    " + strings.Join(more, "\n    ") + "\n  }\n"
}

// entry is one line as Loki returns it.
type entry struct {
	labels   map[string]string // of the stream
	ns       int64
	line     string
	metadata map[string]string
	parsed   map[string]string // labels that the query's pipeline created
}

// stream formats the labels of an entry's stream, sorted.
func (e entry) stream() string { return series{Metric: e.labels}.key() }

// query returns all entries of the last hour that a LogQL query selects, sorted
// by time.
func (l *lokiServer) query(logql string) ([]entry, error) {
	if err := l.ready(); err != nil {
		return nil, err
	}
	const page = 50000
	var all []entry
	end := time.Now().Add(10 * time.Minute)
	for from := end.Add(-70 * time.Minute).UnixNano(); ; {
		got, err := l.queryRange(logql, from, end.UnixNano(), page)
		if err != nil {
			return nil, err
		}
		if len(got) < page {
			return append(all, got...), nil
		}
		// The next page starts with the last time of this page, because there may
		// be more entries with that time.
		last := got[len(got)-1].ns
		if last == from {
			return nil, fatal{fmt.Errorf("%s: more than %d entries have the time %d", logql, page, last)}
		}
		from = last
		for _, e := range got {
			if e.ns < from {
				all = append(all, e)
			}
		}
	}
}

// count returns the number of entries of the last hour that a LogQL query
// selects.
func (l *lokiServer) count(logql string) (int, error) {
	if err := l.ready(); err != nil {
		return 0, err
	}
	body, err := l.get("/loki/api/v1/query", url.Values{"query": {"sum(count_over_time(" + logql + " [1h]))"}})
	if err != nil {
		return 0, err
	}
	var r struct {
		Data struct{ Result []struct{ Value [2]any } }
	}
	if err := json.Unmarshal(body, &r); err != nil {
		return 0, fmt.Errorf("%w: %s", err, body)
	}
	if len(r.Data.Result) == 0 {
		return 0, nil
	}
	return strconv.Atoi(r.Data.Result[0].Value[1].(string))
}

func (l *lokiServer) queryRange(logql string, from, to int64, limit int) ([]entry, error) {
	ask := url.Values{
		"query":     {logql},
		"start":     {strconv.FormatInt(from, 10)},
		"end":       {strconv.FormatInt(to, 10)},
		"limit":     {strconv.Itoa(limit)},
		"direction": {"forward"},
	}
	body, err := l.get("/loki/api/v1/query_range", ask)
	if err != nil {
		return nil, err
	}
	return parseEntries(body)
}

// get sends a request to the server. A client error is fatal.
func (l *lokiServer) get(path string, ask url.Values) ([]byte, error) {
	req, err := http.NewRequest("GET", l.url+path+"?"+ask.Encode(), nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("X-Loki-Response-Encoding-Flags", "categorize-labels")
	if l.tenant != "" {
		req.Header.Set("X-Scope-OrgID", l.tenant)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s: %s", ask.Get("query"), resp.Status, body)
		if resp.StatusCode == http.StatusBadRequest {
			err = fatal{err}
		}
	}
	return body, err
}

// parseEntries parses a response of query_range, sorted by time.
func parseEntries(body []byte) ([]entry, error) {
	var r struct {
		Data struct {
			Result []struct {
				Stream map[string]string
				Values [][]json.RawMessage
			}
		}
	}
	if err := json.Unmarshal(body, &r); err != nil {
		return nil, fmt.Errorf("%w: %s", err, tail(string(body), 500))
	}
	var all []entry
	for _, s := range r.Data.Result {
		for _, v := range s.Values {
			var ns, line string
			var more struct{ StructuredMetadata, Parsed map[string]string }
			if len(v) < 2 || json.Unmarshal(v[0], &ns) != nil || json.Unmarshal(v[1], &line) != nil {
				return nil, fmt.Errorf("cannot read the value %s", v)
			}
			if len(v) > 2 {
				if err := json.Unmarshal(v[2], &more); err != nil {
					return nil, err
				}
			}
			e := entry{labels: s.Stream, line: line, metadata: more.StructuredMetadata, parsed: more.Parsed}
			var err error
			if e.ns, err = strconv.ParseInt(ns, 10, 64); err != nil {
				return nil, err
			}
			all = append(all, e)
		}
	}
	// One stream may be returned in several parts, by its metadata and by labels
	// of the pipeline.
	sort.SliceStable(all, func(i, j int) bool { return all[i].ns < all[j].ns })
	return all, nil
}

// mustQuery retries query until Loki answers.
func (l *lokiServer) mustQuery(t *testing.T, logql string) (es []entry) {
	t.Helper()
	eventually(t, "Loki answers", func() (err error) {
		es, err = l.query(logql)
		return err
	})
	return es
}

// push sends lines of one stream with Loki's own API, at intervals of one ns.
func (l *lokiServer) push(labels map[string]string, at int64, lines ...string) error {
	values := make([][2]string, len(lines))
	for i, line := range lines {
		values[i] = [2]string{strconv.FormatInt(at+int64(i), 10), line}
	}
	body, err := json.Marshal(map[string]any{"streams": []any{map[string]any{"stream": labels, "values": values}}})
	if err != nil {
		return err
	}
	resp, err := http.Post("http://"+l.wire.addr+"/loki/api/v1/push", "application/json", bytes.NewReader(body))
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if body, _ := io.ReadAll(resp.Body); resp.StatusCode != http.StatusNoContent {
		return errors.New(resp.Status + ": " + string(body))
	}
	return nil
}

// TestLokiGivesBackWhatItTook checks the server on which the other tests depend:
// it returns every line exactly once and in order, also over several pages, at
// equal times in two streams and after a restart, and stores duplicates only
// once.
func TestLokiGivesBackWhatItTook(t *testing.T) {
	t.Parallel()
	const lines = 60000 // more than a page
	loki := startLoki(t, "max_line_size: 100")
	at := time.Now().Add(-time.Minute).UnixNano()
	var sent []string
	for i := range lines {
		sent = append(sent, fmt.Sprintf("line %d", i))
	}
	for _, app := range []string{"a", "b", "a"} { // one of them twice
		for i := 0; i < lines; i += 20000 {
			if err := loki.push(map[string]string{"app": app}, at+int64(i), sent[i:i+20000]...); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := loki.push(map[string]string{"app": "a"}, at+lines, strings.Repeat("x", 101)); err == nil || !strings.Contains(err.Error(), "400") {
		t.Errorf("a line over the limit: %v", err)
	}
	loki.down(t)
	loki.up(t)
	got := map[string][]entry{}
	for _, e := range loki.mustQuery(t, `{app=~".+"}`) {
		got[e.labels["app"]] = append(got[e.labels["app"]], e)
	}
	for _, app := range []string{"a", "b"} {
		if len(got[app]) != lines {
			t.Fatalf("%s has %d lines, want %d", app, len(got[app]), lines)
		}
		for i, e := range got[app] {
			if e.line != sent[i] || e.ns != at+int64(i) || len(e.labels) != 1 {
				t.Fatalf("%s has at %d %v, want %q at %d", app, i, e, sent[i], at+int64(i))
			}
		}
	}
}

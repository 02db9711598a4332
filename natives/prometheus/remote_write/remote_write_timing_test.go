package remotewrite

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	gosnappy "github.com/golang/snappy"
	"github.com/klauspost/compress/s2"
	"github.com/klauspost/compress/snappy"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/prometheus/model/labels"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/clock"
	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/flow"
	"github.com/weir-run/weir/engine/journal"
)

// hostBatch returns n samples like those of node_exporter: eight labels, 40
// series per metric, counters and gauges.
func hostBatch(source uint64, n int) *batch.Metrics {
	rng := rand.New(rand.NewPCG(1, source))
	b := &batch.Metrics{Source: source}
	var meta *batch.Metadata
	for i := range n {
		if i%40 == 0 {
			meta = &batch.Metadata{Type: "counter", Help: fmt.Sprintf("The total number of operations that subsystem %d completed.", i/40)}
		}
		b.Series = append(b.Series, batch.FromLabels(labels.FromStrings(
			"__name__", fmt.Sprintf("node_subsystem_%d_operations_total", i/40),
			"instance", fmt.Sprintf("host-%d.example.org:9100", source), "job", "integrations/unix",
			"cluster", "prod-eu-west-1", "namespace", "monitoring", "pod", fmt.Sprintf("node-exporter-%05d", source),
			"device", fmt.Sprintf("nvme%dn1", i%40), "mode", "read",
		)))
		b.Series[i].SetMeta(meta)
		b.T = append(b.T, 1735689600000)
		v := float64(rng.IntN(1e6))
		if i%3 == 0 {
			v = rng.Float64() * 1e6
		}
		b.V = append(b.V, v)
	}
	return b
}

func perSample(b *testing.B, samples int) {
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(samples), "ns/sample")
}

const benchSamples = 2000

func BenchmarkEncode(b *testing.B) {
	f := func(name string, m message, external map[string]string) {
		b.Run(name, func(b *testing.B) {
			in := hostBatch(1, benchSamples)
			gr := benchGroup(m, newLabeler(external, nil, nil))
			b.ReportAllocs()
			var raw, sent int
			for b.Loop() {
				new(gatherer).addRows(gr, in)
				raw = len(gr.open.buf)
				if gr.open.table != nil {
					raw += len(gr.open.table.encoded)
				}
				out := gr.open.close(0, "")
				sent = len(out.Payload)
				putBuffer(out.Payload)
			}
			perSample(b, benchSamples)
			b.ReportMetric(float64(raw)/benchSamples, "raw-bytes/sample")
			b.ReportMetric(float64(sent)/benchSamples, "bytes/sample")
		})
	}
	for _, m := range []message{v1, v2} {
		f(m.String()+"/as they are", m, nil)
		f(m.String()+"/external label", m, map[string]string{"region": "eu"})
	}
}

// BenchmarkMessages compares both messages with 100 sources of 1,000 samples, in
// blocks of one source or of several. The messages alternate, and the median
// counts.
func BenchmarkMessages(b *testing.B) {
	const sources, rows = 100, 1000
	var in []*batch.Metrics
	for src := range uint64(sources) {
		in = append(in, hostBatch(src, rows))
	}
	f := func(perBlock int) {
		b.Run(fmt.Sprint(perBlock, " a block"), func(b *testing.B) {
			messages := []message{v1, v2}
			took, sent := make([][]time.Duration, len(messages)), make([]int, len(messages))
			var groups []*group
			for _, m := range messages {
				gr := benchGroup(m, nil)
				gr.s.maxSamples = perBlock
				groups = append(groups, gr)
			}
			encode := func(gr *group, in []*batch.Metrics) (sent int) {
				for _, bm := range in {
					new(gatherer).addRows(gr, bm)
					for _, blk := range gr.blocks {
						sent += len(blk.Payload)
						putBuffer(blk.Payload)
					}
					gr.blocks = gr.blocks[:0]
				}
				return sent
			}
			for at, gr := range groups {
				encode(gr, in) // fills the caches for the series
				sent[at] = encode(gr, in)
			}
			n := 0
			for b.Loop() {
				turn := in[n%10*10:][:10]
				for at, gr := range groups {
					began := time.Now()
					encode(gr, turn)
					took[at] = append(took[at], time.Since(began))
				}
				n++
			}
			for at, m := range []string{"1.0", "2.0"} {
				slices.Sort(took[at])
				b.ReportMetric(float64(took[at][n/2])/(10*rows), "ns/sample:"+m)
				b.ReportMetric(float64(sent[at])/(sources*rows), "bytes/sample:"+m)
			}
			b.ReportMetric(0, "ns/op")
		})
	}
	f(rows)
	f(2 * rows)
	f(10 * rows)
}

// BenchmarkTenants encodes 2,000 samples of as many tenants.
func BenchmarkTenants(b *testing.B) {
	f := func(m message, tenants int) {
		b.Run(fmt.Sprintf("%s/%d tenants", m, tenants), func(b *testing.B) {
			in := hostBatch(1, benchSamples)
			for i, s := range in.Series {
				var lb batch.Builder
				lb.Reset(s)
				lb.Set("tenant", fmt.Sprint("tenant-", i%tenants))
				in.Series[i] = batch.NewSeries(lb.Labels())
				in.Series[i].SetMeta(s.Meta())
			}
			h := &HeaderFromLabel{Header: "X-Scope-OrgID", Label: "tenant", MaxValues: tenants}
			gr := benchGroup(m, newLabeler(nil, nil, h))
			gr.s.args.HeaderFromLabel, gr.s.values = h, &values{now: time.Now, at: map[string]time.Time{}}
			b.ReportAllocs()
			sent := 0
			for b.Loop() {
				one := newGroup(gr.s, m)
				new(gatherer).addRows(one, in)
				one.split.encode(one, 0, 8)
				sent = 0
				for _, blk := range one.blocks {
					sent += len(blk.Payload)
					putBuffer(blk.Payload)
				}
				one.open.free()
			}
			perSample(b, benchSamples)
			b.ReportMetric(float64(sent)/benchSamples, "bytes/sample")
		})
	}
	for _, m := range []message{v1, v2} {
		f(m, 10)
		f(m, 1000)
	}
}

// benchGroup returns a group whose block never fills.
func benchGroup(m message, l *labeler) *group {
	s := &settings{args: &Endpoint{Metadata: Metadata{Send: true}}, labels: l, maxSamples: benchSamples + 1, symbols: new(atomic.Pointer[symbols])}
	s.symbols.Store(newSymbols())
	return newGroup(s, m)
}

func BenchmarkCompress(b *testing.B) {
	gr := benchGroup(v1, nil)
	new(gatherer).addRows(gr, hostBatch(1, benchSamples))
	raw := gr.open.buf
	f := func(name string, encode func(dst, src []byte) []byte) {
		b.Run(name, func(b *testing.B) {
			buf := make([]byte, snappy.MaxEncodedLen(len(raw)))
			var out []byte
			for b.Loop() {
				out = encode(buf, raw)
			}
			perSample(b, benchSamples)
			b.ReportMetric(float64(len(out))/benchSamples, "bytes/sample")
			b.ReportMetric(float64(len(raw))/benchSamples, "raw-bytes/sample")
		})
	}
	f("s2 fast", s2.EncodeSnappy)
	f("s2 better", snappy.Encode) // snappy.Encode of klauspost
	f("golang", gosnappy.Encode)
}

func BenchmarkJournal(b *testing.B) {
	gr := benchGroup(v1, nil)
	new(gatherer).addRows(gr, hostBatch(1, benchSamples))
	raw := gr.open.buf
	payload := snappy.Encode(nil, raw)
	j, err := journal.Open(b.TempDir(), journal.Options{Shards: 1, Clock: clock.System{}, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		b.Fatal(err)
	}
	defer j.Close()
	f := func(name string, step func() error) {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := step(); err != nil {
					b.Fatal(err)
				}
			}
			perSample(b, benchSamples)
		})
	}
	put := func() error { return j.Append(journal.Block{Samples: benchSamples, Payload: payload}) }
	var buf []byte
	get := func() error {
		blk, err := j.Next(context.Background(), 0, buf)
		buf = blk.Payload[:0]
		j.Ack(blk)
		return err
	}
	f("append, read and acknowledge", func() error {
		if err := put(); err != nil {
			return err
		}
		return get()
	})
	f("append", put)
}

// BenchmarkAccept measures the path of a batch into the journal and, with
// sending, to a server that reads it.
func BenchmarkAccept(b *testing.B) {
	f := func(name, url string) {
		b.Run(name, func(b *testing.B) {
			var a Arguments
			a.SetToDefault()
			var e Endpoint
			e.SetToDefault()
			e.URL = url
			e.Metadata.Send = false
			a.Journal.MaxSize, a.Journal.OnFull = 256<<20, "drop_oldest"
			a.Endpoints = []*Endpoint{&e}
			c, err := New(component.Options{
				ID: "prometheus.remote_write.bench", Logger: slog.New(slog.DiscardHandler), Registerer: prometheus.NewRegistry(),
				StoragePath: b.TempDir(), UserAgent: "weir/bench", Clock: clock.System{}, Stats: new(flow.Stats),
				Health: func(component.Health) {},
			}, &a, nil)
			if err != nil {
				b.Fatal(err)
			}
			ctx, cancel := context.WithCancel(context.Background())
			done := make(chan error)
			go func() { done <- c.Run(ctx) }()
			var bs []*batch.Metrics
			for src := range uint64(8) {
				bs = append(bs, hostBatch(src, benchSamples))
			}
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				if err := c.ConsumeMetrics(ctx, bs[i%len(bs)]); err != nil {
					b.Fatal(err)
				}
				i++
			}
			perSample(b, benchSamples)
			cancel()
			if err := <-done; err != nil {
				b.Fatal(err)
			}
		})
	}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {}))
	defer srv.Close()
	f("endpoint down", "http://127.0.0.1:1/")
	f("endpoint up", srv.URL)
}

package write_test

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/clock"
	"github.com/weir-run/weir/engine/component/componenttest"
	"github.com/weir-run/weir/natives/loki/write"
)

// corpus returns a batch of about size bytes with lines of 200 bytes, like a
// chunk of a log file, with contiguous lines in one buffer.
func corpus(source uint64, streams, size int) *batch.Logs {
	rnd := rand.New(rand.NewPCG(1, source))
	words := strings.Fields("GET POST /api/v1/users /healthz /cart/checkout error timeout upstream connected closed retry cache hit miss region eu-west-1 pod shop-frontend")
	b := &batch.Logs{Source: source}
	var all []*batch.Stream
	for i := range streams {
		all = append(all, stream("app", "shop", "env", "prod", "filename", fmt.Sprintf("/var/log/shop/%d.log", i), "source", fmt.Sprint(source)))
	}
	for n := 0; n < size; n += 200 {
		var line strings.Builder
		fmt.Fprintf(&line, "2025-01-01T12:00:%02d.%06dZ level=info trace=%016x ", n%60, rnd.IntN(1e6), rnd.Uint64())
		for line.Len() < 190 {
			line.WriteString(words[rnd.IntN(len(words))] + " ")
		}
		b.Stream = append(b.Stream, all[len(b.T)%streams])
		b.T = append(b.T, t0+int64(len(b.T)))
		b.Line = append(b.Line, (line.String() + strings.Repeat("x", 200))[:200])
	}
	return b
}

// BenchmarkEncode measures the work of a shard for a batch: group, encode,
// compress.
func BenchmarkEncode(b *testing.B) {
	for _, streams := range []int{1, 8} {
		for _, size := range []int{64 << 10, 256 << 10} {
			b.Run(fmt.Sprintf("%dstreams/%dKiB", streams, size>>10), func(b *testing.B) {
				logs := corpus(1, streams, size)
				encode := write.Encoder()
				b.ReportAllocs()
				b.SetBytes(int64(logs.Bytes()))
				n := 0
				for b.Loop() {
					n = encode(logs)
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(logs.Len()), "ns/line")
				b.ReportMetric(float64(n)/float64(logs.Len()), "B/line")
			})
		}
	}
}

// BenchmarkJoin measures how a sender joins a request of 1 MiB.
func BenchmarkJoin(b *testing.B) {
	logs := corpus(1, 1, 256<<10)
	blocks := write.Encode(logs)
	blocks = append(append(append(blocks, blocks...), blocks...), blocks...)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := write.Join(blocks...); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(blocks)*logs.Len()), "ns/line")
}

// BenchmarkSend measures the whole path through the component, to a sink that
// only reads; its reading is included.
func BenchmarkSend(b *testing.B) {
	for _, sources := range []int{1, 4} {
		b.Run(fmt.Sprintf("%dsources", sources), func(b *testing.B) {
			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				io.Copy(io.Discard, r.Body)
				w.WriteHeader(http.StatusNoContent)
			}))
			defer srv.Close()
			n := start(b, componenttest.New(b, id), clock.System{}, endpoint(srv.URL, `batch_wait = "1s"`))
			var all []*batch.Logs
			for s := range sources {
				all = append(all, corpus(uint64(s), 1, 64<<10))
			}
			n.accept(b, all...)
			b.ReportAllocs()
			for b.Loop() {
				var wg sync.WaitGroup
				for _, l := range all {
					wg.Go(func() {
						if err := n.c.ConsumeLogs(b.Context(), l); err != nil {
							b.Error(err)
						}
					})
				}
				wg.Wait()
			}
			lines := 0
			for _, l := range all {
				lines += l.Len()
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(lines), "ns/line")
			n.stop()
		})
	}
}

package sink_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/golang/snappy"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/textparse"
	"github.com/prometheus/prometheus/prompb"
	writev2 "github.com/prometheus/prometheus/prompb/io/prometheus/write/v2"

	"github.com/weir-run/weir/cmd/weirbench/sink"
	"github.com/weir-run/weir/cmd/weirbench/target"
)

// requests returns requests, for each version of remote write, with one scrape of
// the benchmark's targets.
func requests(b *testing.B, targets int) (v1, v2 [][]byte) {
	b.Helper()
	body, err := target.NewBody(target.Defaults())
	if err != nil {
		b.Fatal(err)
	}
	for i := range targets {
		w1, w2, symbols := &prompb.WriteRequest{}, &writev2.Request{}, writev2.NewSymbolTable()
		p := textparse.NewPromParser(append(body.Append(nil, i, 1), 0)[:body.Bytes()], labels.NewSymbolTable(), false)
		for {
			e, err := p.Next()
			if errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				b.Fatal(err)
			}
			if e != textparse.EntrySeries {
				continue
			}
			var ls labels.Labels
			p.Labels(&ls)
			_, _, v := p.Series()
			ls = labels.NewBuilder(ls).Set("instance", fmt.Sprintf("127.0.0.1:%d", 40000+i)).Set("job", "bench").Labels()
			w1.Timeseries = append(w1.Timeseries, prompb.TimeSeries{Labels: prompb.FromLabels(ls, nil), Samples: []prompb.Sample{{Value: v, Timestamp: 1.7e12}}})
			w2.Timeseries = append(w2.Timeseries, writev2.TimeSeries{LabelsRefs: symbols.SymbolizeLabels(ls, nil), Samples: []writev2.Sample{{Value: v, Timestamp: 1.7e12}}})
		}
		w2.Symbols = symbols.Symbols()
		for _, w := range []struct {
			message interface{ Marshal() ([]byte, error) }
			to      *[][]byte
		}{{w1, &v1}, {w2, &v2}} {
			raw, err := w.message.Marshal()
			if err != nil {
				b.Fatal(err)
			}
			*w.to = append(*w.to, snappy.Encode(nil, raw))
		}
	}
	return v1, v2
}

// BenchmarkWrite measures the cost of a write for the sink, per sample, without
// the connection.
func BenchmarkWrite(b *testing.B) {
	v1, v2 := requests(b, 100)
	run := func(name, contentType string, bodies [][]byte) {
		b.Run(name, func(b *testing.B) {
			s, err := sink.Listen("127.0.0.1:0")
			if err != nil {
				b.Fatal(err)
			}
			handler := s.Handler()
			w := httptest.NewRecorder()
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				r := httptest.NewRequest("POST", "/api/v1/write", bytes.NewReader(bodies[i%len(bodies)]))
				r.Header.Set("Content-Type", contentType)
				w.Code = 0
				handler.ServeHTTP(w, r)
			}
			if w.Code != 0 && w.Code != http.StatusNoContent {
				b.Fatal(w.Code)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/1000, "ns/sample")
		})
	}
	run("1.0", "application/x-protobuf", v1)
	run("2.0", "application/x-protobuf;proto=io.prometheus.write.v2.Request", v2)
}

package receivehttp_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/prometheus/prompb"
	writev2 "github.com/prometheus/prometheus/prompb/io/prometheus/write/v2"

	"github.com/weir-run/weir/engine/batch/batchtest"
	"github.com/weir-run/weir/engine/flow/flowtest"
	receivehttp "github.com/weir-run/weir/natives/prometheus/receive_http"
)

// TestFlood: a sender cannot choose labels that all belong to one shard or to one
// slot of the known series.
func TestFlood(t *testing.T) {
	const n = 1000
	var all []prompb.TimeSeries
	for _, ls := range batchtest.Colliding(n) {
		ts := prompb.TimeSeries{Samples: []prompb.Sample{sample(1, 1)}}
		for _, l := range ls {
			ts.Labels = append(ts.Labels, prompb.Label{Name: l.Name, Value: l.Value})
		}
		all = append(all, ts)
	}
	d := receivehttp.NewDecoder()
	bs, bad, err := d.Decode(v1, body(t, all...))
	if bad != nil || err != nil || d.Series() != n {
		t.Fatalf("%d series, %v, %v", d.Series(), bad, err)
	}
	for _, b := range bs {
		if b.Len() > n/2 {
			t.Errorf("%d of %d samples are in one shard", b.Len(), n)
		}
	}
}

// TestDecodingEnds: a decoder ends with its request, however long the body is.
func TestDecodingEnds(t *testing.T) {
	many := requestOf(2000, 0)
	long := []prompb.TimeSeries{{Labels: many[0].Labels}}
	for i := range 40_000 {
		long[0].Samples = append(long[0].Samples, sample(int64(i), 1))
	}
	var families prompb.WriteRequest
	for range 2000 {
		families.Metadata = append(families.Metadata, prompb.MetricMetadata{MetricFamilyName: "f"})
	}
	f := func(name, message string, body []byte) {
		t.Helper()
		rows, ended := receivehttp.NewDecoder().EndAfter(2, message, body)
		if !ended || rows > 3*4096 {
			t.Errorf("%s: ended is %v after %d rows", name, ended, rows)
		}
	}
	f("series of 1.0", v1, body(t, many...))
	f("series of 2.0", v2, v2Body(t, nil, many...))
	f("samples of 1.0", v1, body(t, long...))
	f("samples of 2.0", v2, v2Body(t, nil, long...))
	f("metadata", v1, marshal(t, &families))
}

// TestDefaultLimits: the defaults are those of Mimir. Data within them is
// accepted, also if other data in the request exceeds them.
func TestDefaultLimits(t *testing.T) {
	labels := func(n int) string {
		b := "__name__=a"
		for i := range n - 1 {
			b += fmt.Sprintf(" l%d=v", i)
		}
		return b
	}
	good := []prompb.TimeSeries{
		series(labels(30), sample(1, 1)),
		series("__name__=b "+strings.Repeat("n", 1024)+"="+strings.Repeat("v", 2048), sample(1, 1)),
	}
	bad := []prompb.TimeSeries{
		series(labels(31), sample(1, 1)), series(labels(500), sample(1, 1)),
		series("__name__=b "+strings.Repeat("n", 1025)+"=v", sample(1, 1)),
		series("__name__=b n="+strings.Repeat("v", 2049), sample(1, 1)),
	}
	all := append(slices.Clone(bad), good...)
	for message, body := range map[string][]byte{v1: body(t, all...), v2: v2Body(t, nil, all...)} {
		sink := flowtest.NewSink("sink")
		r := start(t, nil, sink.Receiver())
		a := r.post(message, body)
		if a.status != 400 || strings.Count(a.body, "is over a limit") != len(bad) {
			t.Errorf("%s: got %d %s", message, a.status, a.body)
		}
		n := 0
		for _, b := range sink.Batches() {
			n += b.Len()
		}
		if n != len(good) {
			t.Errorf("%s: %d samples were accepted, want %d", message, n, len(good))
		}
		if got := r.Stats.Dropped()["label_limit"]; got != uint64(len(bad)) {
			t.Errorf("%s: %d samples are counted as dropped, want %d", message, got, len(bad))
		}
		if a.status == 400 && len(a.body) > 5000 {
			t.Errorf("%s: the answer has %d bytes", message, len(a.body))
		}
		r.stop()
	}
	var l receivehttp.Limits
	if l.SetToDefault(); l.SeriesLimit == 0 || l.MaxSeriesSize == 0 {
		t.Errorf("nothing limits the series that are known: %+v", l)
	}
}

// TestExpandedLabels: two bytes can refer to a symbol of any length, in any
// number of series.
func TestExpandedLabels(t *testing.T) {
	r := start(t, func(a *receivehttp.Arguments) { a.Limits.MaxBodySize, a.Limits.MaxInflightSize = 64<<10, 16<<20 })
	body := v2Body(t, func(req *writev2.Request) {
		for range 1000 {
			req.Timeseries = append(req.Timeseries, req.Timeseries[0])
		}
	}, series("__name__=a b="+strings.Repeat("v", 2048), sample(1, 1)))
	a := r.post(v2, body)
	if a.status != 400 || !strings.Contains(a.body, "take more than 16 times max_body_size") {
		t.Errorf("got %d %.300s", a.status, a.body)
	}
}

package receivehttp_test

import (
	"testing"

	"github.com/prometheus/prometheus/prompb"

	"github.com/weir-run/weir/engine/batch/batchtest"
	receivehttp "github.com/weir-run/weir/natives/prometheus/receive_http"
)

// Nobody can choose labels that all come to one lane, nor to one slot of what is known.
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
			t.Errorf("%d of %d samples are in one lane", b.Len(), n)
		}
	}
}

// A decoder ends with its request, however long the body is.
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

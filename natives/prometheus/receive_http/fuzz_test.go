package receivehttp_test

import (
	"context"
	"log/slog"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/snappy"
	remoteapi "github.com/prometheus/client_golang/exp/api/remote"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/prometheus/prompb"
	writev2 "github.com/prometheus/prometheus/prompb/io/prometheus/write/v2"
	"github.com/prometheus/prometheus/storage/remote"

	receivehttp "github.com/weir-run/weir/natives/prometheus/receive_http"
)

// FuzzV1 compares the decoder of 1.0 with Prometheus's: the same messages are
// refused, and the accepted messages have the same rows.
func FuzzV1(f *testing.F) {
	for _, ts := range corpus() {
		f.Add(body(f, ts...))
	}
	f.Add(marshal(f, &prompb.WriteRequest{Metadata: []prompb.MetricMetadata{{Type: 1, MetricFamilyName: "f", Help: "h", Unit: "u"}}}))
	f.Add([]byte{0x13, 0x08, 0x01, 0x14})
	f.Fuzz(func(t *testing.T, b []byte) {
		var req prompb.WriteRequest
		theirs := req.Unmarshal(b)
		if theirs == nil && unlike(&req) {
			t.Skip()
		}
		fuzz(t, v1, b, theirs)
	})
}

// unlike reports whether a request has known differences: a histogram because of
// which Prometheus refuses the whole request, and exemplars without a sample.
func unlike(req *prompb.WriteRequest) bool {
	for _, ts := range req.Timeseries {
		if len(ts.Exemplars) > 0 && len(ts.Samples)+len(ts.Histograms) == 0 {
			return true
		}
		for _, h := range ts.Histograms {
			if h.IsFloatHistogram() && (h.Schema > 8 || h.ToFloatHistogram().Validate() != nil) {
				return true
			}
			if !h.IsFloatHistogram() && (h.Schema > 8 || h.ToIntHistogram().Validate() != nil) {
				return true
			}
		}
	}
	return false
}

// FuzzV2 is FuzzV1 for 2.0.
func FuzzV2(f *testing.F) {
	for _, ts := range corpus() {
		f.Add(v2Body(f, nil, ts...))
	}
	f.Add(v2Body(f, func(r *writev2.Request) {
		r.Timeseries[0].Samples[0].StartTimestamp = 1
		r.Timeseries[0].Metadata = writev2.Metadata{Type: 1, HelpRef: 1, UnitRef: 2}
	}, corpus()["plain"]...))
	f.Fuzz(func(t *testing.T, b []byte) {
		var req writev2.Request
		theirs := req.Unmarshal(b)
		for _, ts := range req.Timeseries {
			if theirs == nil && len(ts.Exemplars) > 0 {
				// Whether an exemplar without a sample counts depends on the rest
				// of the request.
				t.Skip()
			}
			for _, h := range ts.Histograms {
				if theirs == nil && (h.Schema > 8 || h.IsFloatHistogram() && h.ToFloatHistogram().Validate() != nil ||
					!h.IsFloatHistogram() && h.ToIntHistogram().Validate() != nil) {
					t.Skip()
				}
			}
		}
		fuzz(t, v2, b, theirs)
	})
}

func fuzz(t *testing.T, message string, b []byte, theirs error) {
	d := receivehttp.NewDecoder()
	bs, bad, err := d.Decode(message, b)
	if (err != nil) != (theirs != nil) {
		t.Fatalf("got %v, Prometheus says %v", err, theirs)
	}
	if err != nil {
		return
	}
	store := &appended{}
	h := remote.NewWriteHandler(slog.New(slog.DiscardHandler), prometheus.NewRegistry(), store,
		remoteapi.MessageTypes{remoteapi.WriteV1MessageType, remoteapi.WriteV2MessageType}, false, false, false)
	req := httptest.NewRequestWithContext(context.Background(), "POST", "/", strings.NewReader(string(snappy.Encode(nil, b))))
	req.Header.Set("Content-Type", "application/x-protobuf;proto="+message)
	w := httptest.NewRecorder()
	h.ServeHTTP(w, req)
	if strings.Contains(w.Body.String(), errFuture) {
		t.Skip() // weir forwards samples with future times
	}
	if (bad != nil) != (w.Code != 204) {
		t.Errorf("got %v, Prometheus answers %d %s", bad, w.Code, w.Body)
	}
	slices.Sort(store.committed)
	got := rows(bs)
	if message == v2 { // Prometheus stores start timestamps elsewhere
		for i := range got {
			got[i], _, _ = strings.Cut(got[i], " st@")
		}
		slices.Sort(got)
	}
	if diff := gocmp.Diff(store.committed, got); diff != "" {
		t.Errorf("rows (-prometheus +weir):\n%s", diff)
	}
	// The second time, every series is known.
	again, bad2, err := d.Decode(message, b)
	if err != nil || (bad == nil) != (bad2 == nil) {
		t.Errorf("the second time: %v, %v", bad2, err)
	}
	for i := range bs {
		for j, s := range bs[i].Series {
			if again[i].Series[j] != s {
				t.Errorf("%s has another handle the second time", s)
			}
		}
	}
}

const errFuture = "timestamp is too far in the future"

package sink_test

import (
	"context"
	"testing"
	"time"

	"github.com/golang/snappy"
	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/prometheus/prompb"

	"github.com/weir-run/weir/cmd/weirbench/sink"
	"github.com/weir-run/weir/cmd/weirbench/target"
)

func other(n int) row {
	return row{target.SequencePrefix + "1_total", "a:1", float64(target.SequenceBase + n)}
}

func TestProve(t *testing.T) {
	e := start(t)
	up := row{"up", "a:1", 0}
	e.mustSend(seq(2), other(1), up)
	e.mustSend(seq(3), other(2))
	e.mustSend(seq(6), other(6), row{"up", "b:1", 0}, row{"up", "a:1", 1})
	e.mustSend(seq(2), other(1), up) // a duplicate
	if samples, err := e.sink.Forgive(messageV1(other(4), row{"x", "a:1", 4}), false); err != nil || samples != 2 {
		t.Errorf("Forgive: %d samples, %v", samples, err)
	}
	want := sink.Proof{
		Missing:   map[string]map[int]int{"a:1": {1: 1, 3: 1, 4: 1, 5: 2, 7: 2}},
		Forgiven:  map[string]map[int]int{"a:1": {4: 1}},
		Sequences: map[string]int{"a:1": 2},
		Down:      map[string][]int64{"a:1": {1000}, "b:1": {1000}},
	}
	if d := cmp.Diff(want, e.sink.Prove(map[string]int{"a:1": 7})); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
	if st := e.stats(); st.Repeats != 1 || st.Changed != 0 || st.Duplicates != 2 {
		t.Errorf("got %+v", st)
	}
	e.mustSend(seq(3), other(2), up) // the same samples in another request
	if st := e.stats(); st.Repeats != 1 || st.Changed != 0 || st.Duplicates != 4 {
		t.Errorf("got %+v", st)
	}
	var later prompb.WriteRequest
	for _, r := range []row{seq(3), other(2)} {
		later.Timeseries = append(later.Timeseries, prompb.TimeSeries{
			Labels:  []prompb.Label{{Name: "__name__", Value: r.name}, {Name: "instance", Value: r.instance}},
			Samples: []prompb.Sample{{Value: r.v, Timestamp: 2000}},
		})
	}
	b, err := later.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := e.v1.Store(context.Background(), snappy.Encode(nil, b), 0); err != nil {
		t.Fatal(err)
	}
	if st := e.stats(); st.Changed != 2 || st.Duplicates != 6 {
		t.Errorf("got %+v", st)
	}
}

func TestOwe(t *testing.T) {
	e := start(t)
	v1, v2 := messageV1(seq(1), seq(2), row{"x", "a:1", 3}), messageV2(other(1))
	owe := func(body []byte, v2 bool) (samples int, a sink.Arrival) {
		t.Helper()
		n, a, err := e.sink.Owe(body, v2)
		if err != nil {
			t.Fatal(err)
		}
		return n, a
	}
	check := func(want int) {
		t.Helper()
		if got := e.sink.Prove(nil).Owed; got != want {
			t.Errorf("%d samples have not arrived, want %d", got, want)
		}
	}
	if n, a := owe(v1, false); n != 3 || a.Known {
		t.Errorf("got %d, %+v", n, a)
	}
	if n, _ := owe(v2, true); n != 1 {
		t.Errorf("got %d samples of 2.0", n)
	}
	check(3) // x is not a sequence
	// Data that is kept and refused has arrived, but was not answered
	// successfully.
	e.command("POST", "/faults", `{"status": 503, "keep": true}`)
	_ = e.send(seq(1), seq(2), row{"x", "a:1", 3}) // refused
	e.command("DELETE", "/faults", "")
	if _, a := owe(v1, false); !a.Known || !a.Answered.IsZero() {
		t.Errorf("of a request that was kept and refused: %+v", a)
	}
	check(1)
	before := time.Now()
	if _, err := e.v1.Store(context.Background(), v1, 0); err != nil {
		t.Fatal(err)
	}
	if _, a := owe(v1, false); a.Answered.Before(before.Add(-time.Second)) || a.Answered.After(time.Now()) {
		t.Errorf("answered at %s", a.Answered)
	}
	if _, err := e.sink.Forgive(v2, true); err != nil {
		t.Fatal(err)
	}
	check(0)
	if _, _, err := e.sink.Owe([]byte("no snappy"), false); err == nil {
		t.Error("Owe accepted something that is not a request")
	}
}

package receivehttp_test

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"math"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/snappy"
	"github.com/prometheus/prometheus/prompb"
	writev2 "github.com/prometheus/prometheus/prompb/io/prometheus/write/v2"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/component/componenttest"
	"github.com/weir-run/weir/engine/flow"
	"github.com/weir-run/weir/engine/flow/flowtest"
	receivehttp "github.com/weir-run/weir/natives/prometheus/receive_http"
)

const (
	v1 = "prometheus.WriteRequest"
	v2 = "io.prometheus.write.v2.Request"
)

// receiver is a running component.
type receiver struct {
	*componenttest.Node
	t    testing.TB
	c    component.Component
	args *receivehttp.Arguments
	url  string
	stop func()
}

// start runs a component that sends to the given receivers, on a free port.
func start(t testing.TB, edit func(*receivehttp.Arguments), to ...*flow.Receiver) *receiver {
	t.Helper()
	r := &receiver{Node: componenttest.New(t, "prometheus.receive_http.default"), t: t}
	r.args = receivehttp.Registration().NewArgs().(*receivehttp.Arguments)
	r.args.Server.HTTP.ListenAddress, r.args.Server.HTTP.ListenPort = "127.0.0.1", 0
	r.args.AcceptedMessages = []string{v1, v2}
	r.args.AppendMetadata = true
	r.args.ForwardTo = to
	if edit != nil {
		edit(r.args)
	}
	if err := cmp.Or(r.args.Validate(), r.args.Limits.Validate(), r.args.Server.HTTP.Validate()); err != nil {
		t.Fatal(err)
	}
	r.c = r.Build(t, receivehttp.Registration(), r.args)
	r.stop = r.Run(t, r.c)
	r.Wait(t, func() bool { return r.Health().State == component.Healthy })
	r.url = "http://" + r.info().Address + "/api/v1/metrics/write"
	return r
}

func (r *receiver) info() receivehttp.Info {
	return r.c.(component.Debugger).DebugInfo().(receivehttp.Info)
}

func (r *receiver) update(edit func(*receivehttp.Arguments)) {
	r.t.Helper()
	a := *r.args
	edit(&a)
	r.args = &a
	if err := r.c.(component.Updater).Update(&a); err != nil {
		r.t.Fatal(err)
	}
}

// answer is the response that a client receives.
type answer struct {
	status int
	header http.Header
	body   string
}

var client = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}

// request returns a POST request with a compressed message.
func (r *receiver) request(message string, body []byte) *http.Request {
	req, err := http.NewRequest(http.MethodPost, r.url, bytes.NewReader(snappy.Encode(nil, body)))
	if err != nil {
		r.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/x-protobuf;proto="+message)
	req.Header.Set("Content-Encoding", "snappy")
	return req
}

func do(t testing.TB, req *http.Request) answer {
	t.Helper()
	resp, err := client.Do(req)
	if err != nil {
		t.Error(err)
		return answer{header: http.Header{}}
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Error(err)
	}
	return answer{resp.StatusCode, resp.Header, strings.TrimSpace(string(b))}
}

func (r *receiver) post(message string, body []byte) answer {
	r.t.Helper()
	return do(r.t, r.request(message, body))
}

// want posts a 1.0 request and checks the status.
func (r *receiver) want(status int, body []byte) answer {
	r.t.Helper()
	a := r.post(v1, body)
	if a.status != status {
		r.t.Errorf("got %d %s, want %d", a.status, a.body, status)
	}
	return a
}

func marshal(t testing.TB, m interface{ Marshal() ([]byte, error) }) []byte {
	t.Helper()
	b, err := m.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// noLabelLimits disables the label limits, as in Prometheus.
func noLabelLimits(a *receivehttp.Arguments) {
	a.Limits.LabelLimit, a.Limits.LabelNameLengthLimit, a.Limits.LabelValueLengthLimit = 0, 0, 0
}

// series returns a TimeSeries with labels given as text and samples.
func series(labels string, samples ...prompb.Sample) prompb.TimeSeries {
	ts := prompb.TimeSeries{Samples: samples}
	for l := range strings.FieldsSeq(labels) {
		n, v, _ := strings.Cut(l, "=")
		ts.Labels = append(ts.Labels, prompb.Label{Name: n, Value: v})
	}
	return ts
}

func sample(t int64, v float64) prompb.Sample { return prompb.Sample{Timestamp: t, Value: v} }

func body(t testing.TB, ts ...prompb.TimeSeries) []byte {
	return marshal(t, &prompb.WriteRequest{Timeseries: ts})
}

// one returns a body with one sample of one series.
func one(t testing.TB, name string, at int64, v float64) []byte {
	return body(t, series("__name__="+name, sample(at, v)))
}

// v2Body returns a 2.0 request with the content of 1.0 series.
func v2Body(t testing.TB, edit func(*writev2.Request), ts ...prompb.TimeSeries) []byte {
	req := &writev2.Request{Symbols: []string{""}}
	sym := func(s string) uint32 {
		if i := slices.Index(req.Symbols, s); i >= 0 {
			return uint32(i)
		}
		req.Symbols = append(req.Symbols, s)
		return uint32(len(req.Symbols) - 1)
	}
	for _, in := range ts {
		var out writev2.TimeSeries
		for _, l := range in.Labels {
			out.LabelsRefs = append(out.LabelsRefs, sym(l.Name), sym(l.Value))
		}
		for _, s := range in.Samples {
			out.Samples = append(out.Samples, writev2.Sample{Value: s.Value, Timestamp: s.Timestamp})
		}
		for _, h := range in.Histograms {
			if h.IsFloatHistogram() {
				out.Histograms = append(out.Histograms, writev2.FromFloatHistogram(0, h.Timestamp, h.ToFloatHistogram()))
			} else {
				out.Histograms = append(out.Histograms, writev2.FromIntHistogram(0, h.Timestamp, h.ToIntHistogram()))
			}
		}
		for _, e := range in.Exemplars {
			x := writev2.Exemplar{Value: e.Value, Timestamp: e.Timestamp}
			for _, l := range e.Labels {
				x.LabelsRefs = append(x.LabelsRefs, sym(l.Name), sym(l.Value))
			}
			out.Exemplars = append(out.Exemplars, x)
		}
		req.Timeseries = append(req.Timeseries, out)
	}
	if edit != nil {
		edit(req)
	}
	return marshal(t, req)
}

// rows formats the rows of batches, sorted, so that they do not depend on shards.
func rows(bs []*batch.Metrics) []string {
	var out []string
	for _, b := range bs {
		hs, es, sts := b.Histograms, b.Exemplars, b.Starts
		for i, s := range b.Series {
			ls := fmt.Sprint(s.AppendLabels(nil))
			line := fmt.Sprintf("%s @%d %#x", ls, b.T[i], math.Float64bits(b.V[i]))
			if len(hs) > 0 && hs[0].Row == i {
				if h := hs[0]; h.Int != nil {
					line = fmt.Sprintf("%s @%d int %v %v", ls, b.T[i], h.Int.CounterResetHint, h.Int)
				} else {
					line = fmt.Sprintf("%s @%d float %v %v", ls, b.T[i], h.Float.CounterResetHint, h.Float)
				}
				hs = hs[1:]
			}
			if len(sts) > 0 && sts[0].Row == i {
				line += fmt.Sprintf(" st@%d", sts[0].T)
				sts = sts[1:]
			}
			out = append(out, line)
			for ; len(es) > 0 && es[0].Row == i; es = es[1:] {
				out = append(out, fmt.Sprintf("%s exemplar %v %v@%d", ls, es[0].Labels, es[0].Value, es[0].T))
			}
		}
	}
	slices.Sort(out)
	return out
}

func sinks(ss ...*flowtest.Sink) (rs []*flow.Receiver) {
	for _, s := range ss {
		rs = append(rs, s.Receiver())
	}
	return rs
}

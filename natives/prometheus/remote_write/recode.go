package remotewrite

import (
	"fmt"
	"math"
	"strings"
	"sync/atomic"

	"github.com/prometheus/prometheus/model/exemplar"
	"github.com/prometheus/prometheus/model/labels"
	prommeta "github.com/prometheus/prometheus/model/metadata"
	"github.com/prometheus/prometheus/prompb"
	writev2 "github.com/prometheus/prometheus/prompb/io/prometheus/write/v2"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/natives/prometheus/internal/valid"
)

// A request is decoded and encoded again only if its bytes cannot be sent
// unchanged: if the endpoint requires the other message, or if some samples are
// too old to be sent.

// noneOld is a time that no sample precedes.
const noneOld = math.MinInt64

// recode converts a request of format from to format to, without the samples
// before oldest (Unix ms). samples is the number of remaining samples; custom is
// the number of samples omitted because remote write 1.0 does not support them.
func recode(body []byte, from, to message, oldest int64) (_ []byte, samples, custom int, err error) {
	rows, err := read(body, from)
	defer func() {
		for i := range rows {
			rows[i].series.Release()
		}
	}()
	if err != nil {
		return nil, 0, 0, fmt.Errorf("cannot read a block: %w", err)
	}
	s := &settings{args: &Endpoint{Metadata: Metadata{Send: true}}, symbols: new(atomic.Pointer[symbols])}
	s.symbols.Store(newSymbols())
	b := block{s: s, message: to}
	defer b.free()
	for i := range rows {
		if rows[i].t < oldest {
			continue
		}
		if to == v1 && rows[i].h != nil && valid.IsCustom(rows[i].h) {
			custom++
			continue
		}
		if err := b.add(&rows[i]); err != nil {
			return nil, 0, 0, fmt.Errorf("cannot re-encode a block: %w", err)
		}
	}
	samples = b.samples
	return b.close(0, "").Payload, samples, custom, nil
}

// read returns the rows of a request. The caller must release their handles, also
// after an error.
func read(body []byte, form message) (rows []row, err error) {
	raw, err := decompress(body)
	if err != nil {
		return nil, err
	}
	if form == v1 {
		return readV1(raw)
	}
	return readV2(raw)
}

func readV1(raw []byte) (rows []row, err error) {
	var req prompb.WriteRequest
	if err := req.Unmarshal(raw); err != nil {
		return nil, err
	}
	sb := labels.NewScratchBuilder(16)
	for i := range req.Timeseries {
		ts := &req.Timeseries[i]
		r := newRow(ts.ToLabels(&sb, nil))
		for j := range ts.Exemplars {
			r.addExemplar(ts.Exemplars[j].ToExemplar(&sb, nil))
		}
		for _, s := range ts.Samples { // a TimeSeries has samples or histograms, see block.add
			r.t, r.v = s.Timestamp, s.Value
		}
		for j := range ts.Histograms {
			h := &ts.Histograms[j]
			r.t, r.h = h.Timestamp, &batch.Histogram{Int: h.ToIntHistogram()}
			if h.IsFloatHistogram() {
				r.h.Float = h.ToFloatHistogram()
			}
		}
		rows = append(rows, r)
	}
	return rows, nil
}

func readV2(raw []byte) (rows []row, err error) {
	var req writev2.Request
	if err := req.Unmarshal(raw); err != nil {
		return nil, err
	}
	sb := labels.NewScratchBuilder(16)
	for i := range req.Timeseries {
		ts := &req.Timeseries[i]
		ls, err := ts.ToLabels(&sb, req.Symbols)
		if err != nil {
			return rows, err
		}
		r := newRow(ls)
		rows = append(rows, r)
		for j := range ts.Exemplars {
			e, err := ts.Exemplars[j].ToExemplar(&sb, req.Symbols)
			if err != nil {
				return rows, err
			}
			r.addExemplar(e)
		}
		for _, s := range ts.Samples {
			r.t, r.v, r.start = s.Timestamp, s.Value, s.StartTimestamp
		}
		for j := range ts.Histograms {
			h := &ts.Histograms[j]
			r.t, r.start, r.h = h.Timestamp, h.StartTimestamp, &batch.Histogram{Int: h.ToIntHistogram()}
			if h.IsFloatHistogram() {
				r.h.Float = h.ToFloatHistogram()
			}
		}
		m, err := ts.ToMetadata(req.Symbols)
		if err != nil {
			return rows, err
		}
		if m != (prommeta.Metadata{Type: "unknown"}) {
			r.series.SetMeta(&batch.Metadata{Type: m.Type, Help: m.Help, Unit: m.Unit})
		}
		rows[len(rows)-1] = r
	}
	return rows, nil
}

func newRow(ls labels.Labels) row {
	return row{series: batch.FromLabels(ls)}
}

func (r *row) addExemplar(e exemplar.Exemplar) {
	out := batch.Exemplar{Value: e.Value, T: e.Ts, HasT: true}
	e.Labels.Range(func(l labels.Label) {
		out.Labels = append(out.Labels, batch.Label{Name: l.Name, Value: l.Value})
	})
	r.exemplars = append(r.exemplars, out)
}

// maxShown is the maximum length of a series in the log.
const maxShown = 500

// firstSeries returns the first series of the request in text form, because a
// receiver may not say which series it refuses.
func (p *writeRequest) firstSeries() string {
	rows, err := read(p.body, p.message)
	defer func() {
		for i := range rows {
			rows[i].series.Release()
		}
	}()
	if err != nil || len(rows) == 0 {
		return ""
	}
	text := rows[0].series.String()
	if len(text) > maxShown {
		text = strings.ToValidUTF8(text[:maxShown], "") + "…"
	}
	return text
}

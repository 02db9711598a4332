package remotewrite

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/snappy"
	"github.com/prometheus/prometheus/model/labels"
	writev2 "github.com/prometheus/prometheus/prompb/io/prometheus/write/v2"
	"github.com/prometheus/prometheus/tsdb/tsdbutil"

	"github.com/weir-run/weir/engine/batch"
)

// text formats rows with everything that is sent for them.
func text(rows []row) (out []string) {
	for _, r := range rows {
		s := fmt.Sprintf("%s %d %#x st@%d", r.series, r.t, math.Float64bits(r.v), r.start)
		if r.h != nil {
			s += fmt.Sprint(" ", r.h.Int, r.h.Float)
		}
		for _, e := range r.exemplars {
			s += fmt.Sprint(" ", e.Labels, e.Value, r.exemplarTime(&e))
		}
		if m := r.series.Meta(); m != nil {
			s += fmt.Sprintf(" %s %q %q", m.Type, m.Help, m.Unit)
		}
		out = append(out, s)
	}
	return out
}

// withoutV2 returns the part of text that 1.0 supports.
func withoutV2(rows []row) []string {
	rows = slices.Clone(rows)
	for i := range rows {
		rows[i].start = 0
		rows[i].series = batch.FromLabels(rows[i].series.PromLabels())
	}
	return text(rows)
}

// randomRows returns rows with labels that are shared, numerous or long.
func randomRows(rng *rand.Rand, n int) (rows []row) {
	word := func() string {
		switch rng.IntN(5) {
		case 0:
			return strings.Repeat("x", rng.IntN(300)+1)
		case 1:
			return fmt.Sprint("é", rng.IntN(30000))
		}
		return fmt.Sprint("w", rng.IntN(20))
	}
	metas := []*batch.Metadata{nil, {}, {Type: "counter", Help: "w1", Unit: "w2"}, {Type: "gauge", Help: word()}, {Type: "stateset", Unit: "u"}}
	for range n {
		m := map[string]string{"__name__": word()}
		for range rng.IntN(10) {
			m[word()] = word()
		}
		if rng.IntN(50) == 0 {
			for i := range 120 {
				m[fmt.Sprint("many", i)] = word()
			}
		}
		r := newRow(labels.FromMap(m))
		r.series.SetMeta(metas[rng.IntN(len(metas))])
		r.t, r.v = rng.Int64N(1<<45)-1<<40, math.Float64frombits(rng.Uint64())
		if rng.IntN(4) == 0 {
			r.v = []float64{0, math.Copysign(0, -1), batch.Stale(), math.Inf(-1)}[rng.IntN(4)]
		}
		if rng.IntN(3) == 0 {
			r.start = rng.Int64N(1 << 41)
		}
		switch rng.IntN(8) {
		case 0:
			r.h, r.v = &batch.Histogram{Int: tsdbutil.GenerateTestHistogram(rng.Int64N(100))}, 0
		case 1:
			r.h, r.v = &batch.Histogram{Float: tsdbutil.GenerateTestFloatHistogram(rng.Int64N(100))}, 0
		}
		for range max(rng.IntN(6)-3, 0) {
			r.exemplars = append(r.exemplars, batch.Exemplar{Labels: []batch.Label{{Name: "trace_id", Value: word()}}, Value: rng.Float64(), T: r.t, HasT: true})
		}
		rows = append(rows, r)
	}
	return rows
}

// TestRandomBlocks: blocks are decoded to the rows that were encoded, for many
// blocks of one endpoint with their own symbols. After a conversion to the other
// message and back, only the parts that 1.0 does not support are missing.
func TestRandomBlocks(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	gr := benchGroup(v2, nil)
	for range 60 {
		rows := randomRows(rng, rng.IntN(400)+1)
		for i := range rows {
			if err := gr.open.add(&rows[i]); err != nil {
				t.Fatal(err)
			}
		}
		body := gr.open.close(0, "").Payload
		got, err := read(body, v2)
		if err != nil {
			t.Fatal(err)
		}
		want := text(rows)
		for i := range want { // empty metadata is not sent
			want[i] = strings.ReplaceAll(want[i], `  "" ""`, "")
		}
		if d := cmp.Diff(want, text(got)); d != "" {
			t.Fatalf("(-sent +read):\n%s", d)
		}
		checkSymbols(t, body)

		old, n, _, err := recode(body, v2, v1, noneOld)
		if err != nil || n != len(rows) {
			t.Fatalf("%d rows, %v", n, err)
		}
		again, _, _, err := recode(body, v2, v1, noneOld)
		if err != nil || string(again) != string(old) {
			t.Fatal("another try makes other bytes")
		}
		got, err = read(old, v1)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(withoutV2(rows), text(got)); d != "" {
			t.Fatalf("by 1.0 (-sent +read):\n%s", d)
		}
		recoded, _, _, err := recode(old, v1, v2, noneOld)
		if err != nil {
			t.Fatal(err)
		}
		got, err = read(recoded, v2)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(withoutV2(rows), text(got)); d != "" {
			t.Fatalf("and back (-sent +read):\n%s", d)
		}
		release(rows, got)
	}
}

func release(rows ...[]row) {
	for _, rs := range rows {
		for i := range rs {
			rs[i].series.Release()
		}
	}
}

// checkSymbols fails if a symbol is unused or the first symbol is not empty.
func checkSymbols(t *testing.T, body []byte) {
	t.Helper()
	raw, err := snappy.Decode(nil, body)
	if err != nil {
		t.Fatal(err)
	}
	var req writev2.Request
	if err := req.Unmarshal(raw); err != nil {
		t.Fatal(err)
	}
	used := map[uint32]bool{0: true}
	for _, ts := range req.Timeseries {
		for _, r := range ts.LabelsRefs {
			used[r] = true
		}
		for _, e := range ts.Exemplars {
			for _, r := range e.LabelsRefs {
				used[r] = true
			}
		}
		used[ts.Metadata.HelpRef], used[ts.Metadata.UnitRef] = true, true
	}
	if len(used) != len(req.Symbols) || req.Symbols[0] != "" {
		t.Errorf("%d symbols, of which %d are used", len(req.Symbols), len(used))
	}
}

// TestManySymbols uses symbols whose numbers take three bytes.
func TestManySymbols(t *testing.T) {
	gr := benchGroup(v2, nil)
	var rows []row
	for i := range 20_000 {
		rows = append(rows, newRow(labels.FromStrings("__name__", "m", "i", fmt.Sprint(i))))
	}
	defer release(rows)
	for i := range rows {
		if err := gr.open.add(&rows[i]); err != nil {
			t.Fatal(err)
		}
	}
	got, err := read(gr.open.close(0, "").Payload, v2)
	defer release(got)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(text(rows), text(got)); d != "" {
		t.Error(d)
	}
}

// TestSymbolsOfSeriesThatWent: the symbol table of an endpoint does not retain
// the series that no longer exist.
func TestSymbolsOfSeriesThatWent(t *testing.T) {
	gr := benchGroup(v2, nil)
	s := gr.s
	s.values = &values{}
	most, round := 0, 0
	for range 20 {
		for range 5 { // minutes
			var rows []row
			for i := range 1000 {
				rows = append(rows, newRow(labels.FromStrings("__name__", "m", "pod", fmt.Sprint(round, "-", i))))
			}
			round++
			for i := range rows {
				if err := gr.open.add(&rows[i]); err != nil {
					t.Fatal(err)
				}
			}
			got, err := read(gr.open.close(0, "").Payload, v2)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(text(rows), text(got)); d != "" {
				t.Fatal(d)
			}
			release(rows, got)
			if s.symbols.Load().outgrown() {
				s.symbols.Store(newSymbols())
			}
			most = max(most, len(s.symbols.Load().strings))
		}
	}
	if most > 20_000 {
		t.Errorf("%d strings of 1,000 live series and 100,000 that went", most)
	}
}

// FuzzRead passes invalid blocks to the decoders. They must not panic, and
// decoded rows can be encoded again.
func FuzzRead(f *testing.F) {
	for _, m := range []message{v1, v2} {
		gr := benchGroup(m, nil)
		rows := randomRows(rand.New(rand.NewPCG(3, 4)), 5)
		for i := range rows {
			if err := gr.open.add(&rows[i]); err != nil {
				f.Fatal(err)
			}
		}
		raw, err := snappy.Decode(nil, gr.open.close(0, "").Payload)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(raw, m == v2)
	}
	f.Fuzz(func(t *testing.T, raw []byte, second bool) {
		from := v1
		if second {
			from = v2
		}
		for _, to := range []message{v1, v2} {
			out, n, _, err := recode(snappy.Encode(nil, raw), from, to, noneOld)
			if err != nil {
				continue
			}
			rows, err := read(out, to)
			release(rows)
			if err != nil || len(rows) != n {
				t.Fatalf("%d rows were written, %d read: %v", n, len(rows), err)
			}
		}
	})
}

func TestEnvelope(t *testing.T) {
	gr := benchGroup(v1, nil)
	gr.s.args.HeaderFromLabel = &HeaderFromLabel{Header: "X-Scope-OrgID"}
	r := newRow(labels.FromStrings("__name__", "m"))
	defer release([]row{r})
	if err := gr.open.add(&r); err != nil {
		t.Fatal(err)
	}
	b := gr.open.close(3, "tenant")
	e, err := openBlock(b)
	if err != nil {
		t.Fatal(err)
	}
	if e.message != v1 || e.header != "X-Scope-OrgID" || e.value != "tenant" || b.Shard != 3 {
		t.Errorf("got %+v in shard %d", e, b.Shard)
	}
	rows, err := read(e.body, v1)
	release(rows)
	if err != nil || len(rows) != 1 {
		t.Errorf("%d rows, %v", len(rows), err)
	}
	for n := range 20 { // truncated within header and value
		short := b
		short.Payload = b.Payload[:n]
		if _, err := openBlock(short); err == nil {
			t.Errorf("%d bytes are a block", n)
		}
	}
	b.Kind = 77
	if _, err := openBlock(b); err == nil {
		t.Error("an unknown kind is taken")
	}
}

package batch_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-run/weir/engine/batch"
)

// frames is an encoder and its decoder.
type frames struct {
	e *batch.FrameEncoder
	d *batch.FrameDecoder
}

func newFrames(t *testing.T, limit int) frames {
	f := frames{batch.NewFrameEncoder(limit), batch.NewFrameDecoder(limit)}
	t.Cleanup(f.d.Close)
	return f
}

// metrics passes b to the other side and returns it with the length of its frame.
func (f frames) metrics(t *testing.T, b *batch.Metrics) (*batch.Metrics, int) {
	t.Helper()
	frame := f.e.AppendMetrics(nil, b)
	got, err := f.d.Metrics(frame)
	if err != nil {
		t.Fatal(err)
	}
	clear(frame) // the decoder keeps no part of it
	if diff := cmp.Diff(b, got, same); diff != "" {
		t.Fatalf("(-want +got):\n%s", diff)
	}
	return got, len(frame)
}

func (f frames) logs(t *testing.T, b *batch.Logs) *batch.Logs {
	t.Helper()
	frame := f.e.AppendLogs(nil, b)
	got, err := f.d.Logs(frame)
	if err != nil {
		t.Fatal(err)
	}
	clear(frame)
	if diff := cmp.Diff(b, got, same); diff != "" {
		t.Fatalf("(-want +got):\n%s", diff)
	}
	return got
}

// Any sequence of batches arrives unchanged: series that come again, columns that
// come again, metadata that changes, dictionaries that are full, and resets by
// either side.
func TestFramesRoundTripEverything(t *testing.T) {
	for seed := range uint64(300) {
		r := newRandom(seed)
		f := newFrames(t, pick(r, []int{1, 500, 3000, 1 << 20}))
		known := []*batch.Series{named("first")}
		columns := map[uint64][]*batch.Series{}
		choose := func(fresh *batch.Series) *batch.Series {
			if r.IntN(3) == 0 {
				known = append(known, fresh)
				return fresh
			}
			s := pick(r, known)
			switch r.IntN(20) {
			case 0:
				s.SetMeta(&batch.Metadata{Type: pick(r, oddTypes), Help: pick(r, oddStrings)})
			case 1: // another handle gets its ID
				s.Release()
			}
			return s
		}
		for range 60 {
			switch r.IntN(12) {
			case 0:
				f.e.Reset()
			case 1:
				f.d.Reset()
				if _, err := f.d.Metrics(f.e.AppendMetrics(nil, rowsOf(1, known[0]))); err != nil {
					if !errors.Is(err, batch.ErrFrameReset) {
						t.Fatalf("seed %d: %v", seed, err)
					}
					f.e.Reset()
				}
			case 2, 3:
				b := r.logs(r.IntN(8))
				for i, s := range b.Stream {
					b.Stream[i] = choose(s)
				}
				b.Way = r.Uint64()
				f.logs(t, b)
			default:
				b := r.metrics(r.IntN(8))
				b.Source = r.Uint64() & (1<<63 | 3)
				if c := columns[b.Source]; len(c) == b.Len() && len(c) > 0 && r.IntN(4) > 0 {
					b.Series = c
				}
				for i, s := range b.Series {
					if c := columns[b.Source]; !batch.SameColumn(b.Series, c) {
						b.Series[i] = choose(s)
					} else if r.IntN(20) == 0 {
						s.SetMeta(&batch.Metadata{Type: pick(r, oddTypes), Help: pick(r, oddStrings)})
					}
				}
				columns[b.Source] = b.Series
				f.metrics(t, b)
			}
		}
	}
}

// A column that comes again has the same handles in the same slice, and its frame
// contains times and values only.
func TestFramesOfKnownSeriesAreSmall(t *testing.T) {
	m, err := batch.ParseText(scrapeBody(1000), batch.TextOptions{T: 1700000000000, Source: 7})
	if err != nil {
		t.Fatal(err)
	}
	f := newFrames(t, 1<<20)
	first, large := f.metrics(t, m)
	second, small := f.metrics(t, m)
	if !batch.SameColumn(first.Series, second.Series) {
		t.Error("the second batch has another column")
	}
	if want := 8*m.Len() + 50; small > want || large < 3*small {
		t.Errorf("frames of %d and %d bytes, want at most %d in the second", large, small, want)
	}
	other := *m
	other.Series = append([]*batch.Series(nil), m.Series...)
	third, size := f.metrics(t, &other)
	if want := 9*m.Len() + 50; size > want {
		t.Errorf("another column of known series has %d bytes, want at most %d", size, want)
	}
	if third.Series[5] != first.Series[5] {
		t.Error("a known series has another handle")
	}
}

// Series keep their handles when the dictionary is replaced. The handles of series
// that do not come again are released.
func TestFramesKeepHandles(t *testing.T) {
	f := newFrames(t, 1<<20)
	a, b := named("a"), named("b")
	first, _ := f.metrics(t, rowsOf(1, a, b))
	f.e.Reset()
	second, _ := f.metrics(t, rowsOf(1, a))
	if first.Series[0] != second.Series[0] {
		t.Error("a has another handle")
	}
	f.d.Reset() // as after a new connection
	f.e.Reset()
	third, _ := f.metrics(t, rowsOf(1, a))
	if first.Series[0] != third.Series[0] || third.Series[0].Released() {
		t.Error("a has another handle, or it is released")
	}
	if !first.Series[1].Released() {
		t.Error("b is not released")
	}
	f.d.Close()
	if !third.Series[0].Released() {
		t.Error("a is not released after Close")
	}
}

// Equal labels of two handles stay two series, because their metadata may differ.
func TestFramesKeepEqualSeriesApart(t *testing.T) {
	f := newFrames(t, 1<<20)
	a, b := named("a"), named("a")
	b.SetMeta(&batch.Metadata{Help: "b"})
	for range 2 {
		got, _ := f.metrics(t, rowsOf(1, a, b))
		if got.Series[0] == got.Series[1] {
			t.Error("two handles became one")
		}
		f.e.Reset()
	}
}

// After the decoder has dropped its dictionary, it refuses frames until the encoder
// begins a new one.
func TestFramesReset(t *testing.T) {
	f := newFrames(t, 1<<20)
	b := rowsOf(1, named("a"))
	f.metrics(t, b)
	f.d.Reset()
	for range 2 {
		if _, err := f.d.Metrics(f.e.AppendMetrics(nil, b)); !errors.Is(err, batch.ErrFrameReset) {
			t.Fatalf("got %v", err)
		}
	}
	f.e.Reset()
	f.metrics(t, b)
	late := f.e.AppendMetrics(nil, b)
	f.e.Reset()
	f.metrics(t, b)
	if _, err := f.d.Metrics(late); !errors.Is(err, batch.ErrFrameReset) {
		t.Errorf("a frame of the previous dictionary: %v", err)
	}
}

// The dictionary of both sides stays below the limit, whatever comes. The limit of
// the decoder holds for an encoder without one.
func TestFramesAreBounded(t *testing.T) {
	const limit = 10_000
	f := newFrames(t, limit)
	fresh := 0
	next := func(i int) *batch.Metrics {
		b := rowsOf(1, named("series_"+strings.Repeat("x", i%50)))
		b.Source = uint64(i)
		b.Series[0].SetMeta(&batch.Metadata{Help: strings.Repeat("y", i%90)})
		return b
	}
	for i := range 2000 {
		f.metrics(t, next(i))
		if n := f.e.Size(); n > limit || n != f.d.Size() {
			t.Fatalf("after %d batches, the dictionary has %d bytes, and %d at the decoder", i, n, f.d.Size())
		}
		if f.e.Size() < 1000 {
			fresh++
		}
	}
	if fresh < 2000*200/limit {
		t.Errorf("%d frames began a dictionary", fresh)
	}
	big := make([]*batch.Series, 500)
	for i := range big {
		big[i] = next(i).Series[0]
	}
	f.metrics(t, rowsOf(1, big...)) // a batch may be larger than the limit
	f.metrics(t, rowsOf(1, big...))

	greedy := batch.NewFrameEncoder(1 << 30)
	var err error
	for i := 0; i < 200 && err == nil; i++ {
		_, err = f.d.Metrics(greedy.AppendMetrics(nil, next(i)))
	}
	if err == nil || !strings.Contains(err.Error(), "and the limit is 10000") {
		t.Errorf("got %v", err)
	}
}

// Every truncation and every changed bit gives an error or another batch, never a
// panic, and the decoder works again after a reset.
func TestFramesAreNotTrusted(t *testing.T) {
	r := newRandom(7)
	m, l := r.metrics(9), r.logs(9)
	e := batch.NewFrameEncoder(1 << 20)
	metrics := e.AppendMetrics(nil, m)
	again := e.AppendMetrics(nil, m)
	e.Reset()
	logs := e.AppendLogs(nil, l)
	d := batch.NewFrameDecoder(1 << 20)
	defer d.Close()
	if _, err := d.Logs(metrics); err == nil {
		t.Error("metrics were read as logs")
	}
	for _, frame := range [][]byte{metrics, again, logs} {
		for cut := range frame {
			d.Reset()
			if _, err := d.Metrics(frame[:cut]); err == nil {
				t.Fatalf("metrics of %d bytes were read", cut)
			}
			if _, err := d.Logs(frame[:cut]); err == nil {
				t.Fatalf("logs of %d bytes were read", cut)
			}
			for bit := range 8 {
				broken := bytes.Clone(frame)
				broken[cut] ^= 1 << bit
				_, _ = d.Metrics(metrics)
				_, _ = d.Metrics(broken)
				_, _ = d.Logs(broken)
			}
		}
	}
	if got, err := d.Metrics(metrics); err != nil {
		t.Error(err)
	} else if diff := cmp.Diff(m, got, same); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	metrics[0] = 9
	if _, err := d.Metrics(metrics); err == nil || !strings.Contains(err.Error(), "frame of version 9: this weir knows 1") {
		t.Errorf("got %v", err)
	}
}

// Labels that are not sorted would break their receivers, so they are refused.
func TestFramesWithUnsortedLabels(t *testing.T) {
	unsorted := []batch.Label{{Name: "b", Value: "1"}, {Name: "a", Value: "2"}}
	f := newFrames(t, 1<<20)
	m := rowsOf(1, named("a"))
	m.Exemplars = []batch.Exemplar{{Labels: unsorted}}
	if _, err := f.d.Metrics(f.e.AppendMetrics(nil, m)); err == nil {
		t.Error("an exemplar was read")
	}
	l := &batch.Logs{Stream: []*batch.Stream{named("a")}, T: []int64{1}, Line: []string{"x"}, Meta: [][]batch.Label{unsorted}}
	f.e.Reset()
	if _, err := f.d.Logs(f.e.AppendLogs(nil, l)); err == nil {
		t.Error("metadata of a line was read")
	}
	s := rowsOf(1, batch.NewSeries(unsorted))
	f.e.Reset()
	if _, err := f.d.Metrics(f.e.AppendMetrics(nil, s)); err == nil {
		t.Error("a series was read")
	}
}

// A series without a row needs two bytes of a frame and 50 times as many in memory,
// so a frame may not define more series than it uses.
func TestFramesDefineWhatTheyUse(t *testing.T) {
	f := func(rows, series int, want bool) {
		t.Helper()
		frame := binary.AppendUvarint(append([]byte{1, 1, 0, 1}, make([]byte, 16)...), uint64(rows))
		frame = append(frame, byte(3+2*series), 0, byte(series)) // definitions: no metadata, series without labels
		frame = append(frame, make([]byte, 2*series+1)...)
		frame = append(frame, 0)
		for i := range rows {
			frame = append(frame, byte(min(i, 1))) // series 1 in all rows; 1 is -1 in zigzag encoding
		}
		frame = append(frame, make([]byte, 2+8*rows+1)...)
		d := batch.NewFrameDecoder(1 << 20)
		defer d.Close()
		if _, err := d.Metrics(frame); (err == nil) != want {
			t.Errorf("%d rows and %d series: %v", rows, series, err)
		}
	}
	f(1, 1, true)
	f(2, 1, true)
	f(1, 2, true)
	f(1, 3, false)
	f(0, 1, false)
}

// frameMemory is the maximum memory for each byte of a frame: that of a series
// without labels, which is defined in two bytes and used in one row.
const frameMemory = 100

// allocated returns the number of bytes that f allocates.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// The memory for a frame is bounded by its size, also if it announces more.
func TestFrameMemory(t *testing.T) {
	head := func(kind byte, rows uint64) []byte {
		return binary.AppendUvarint(append([]byte{1, kind, 0, 1}, make([]byte, 16)...), rows)
	}
	f := func(name string, frame []byte) {
		t.Helper()
		d := batch.NewFrameDecoder(1 << 20)
		defer d.Close()
		n := allocated(func() {
			_, _ = d.Metrics(frame)
			_, _ = d.Logs(frame)
		})
		if most := uint64(frameMemory*len(frame) + 1<<16); n > most {
			t.Errorf("%s: a frame of %d bytes needs %d bytes, want at most %d", name, len(frame), n, most)
		}
	}
	for _, kind := range []byte{1, 2} {
		f("rows", head(kind, 1<<40))
		f("a size of definitions", binary.AppendUvarint(head(kind, 0), 1<<60))
		f("definitions", append(append(head(kind, 0), 8), binary.AppendUvarint(nil, 1<<40)...))
		// n series without labels
		const n = 20_000
		defs := binary.AppendUvarint([]byte{0}, n)
		defs = append(append(defs, make([]byte, 2*n)...), 0)
		frame := append(binary.AppendUvarint(head(kind, n), uint64(len(defs))), defs...)
		f("series", append(append(append(frame, 0), make([]byte, n)...), make([]byte, 2+9*n)...))
		// rows of one column
		frame = append(head(kind, n), 5, 0, 1, 0, 0, 0, 3)
		f("a column", append(append(append(frame, make([]byte, n)...), 0, 0), make([]byte, 9*n)...))
	}
}

// FuzzFrames decodes a sequence of frames, each preceded by its length.
func FuzzFrames(f *testing.F) {
	for seed := range uint64(20) {
		r := newRandom(seed)
		e := batch.NewFrameEncoder(2000)
		var data []byte
		add := func(frame []byte) { data = append(binary.AppendUvarint(data, uint64(len(frame))), frame...) }
		for range 3 {
			m := r.metrics(4)
			add(e.AppendMetrics(nil, m))
			add(e.AppendLogs(nil, r.logs(4)))
			add(e.AppendMetrics(nil, m))
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		first, again := newFrames(t, 2000), newFrames(t, 1<<20)
		for len(data) > 0 {
			n, w := binary.Uvarint(data)
			if w <= 0 || n > uint64(len(data)-w) {
				return
			}
			frame := data[w : w+int(n)]
			data = data[w+int(n):]
			if m, err := first.d.Metrics(frame); err == nil {
				again.metrics(t, m)
				batch.AppendText(nil, m)
			} else if l, err := first.d.Logs(frame); err == nil {
				again.logs(t, l)
			}
			if size := first.d.Size(); size > 2000 && size > frameMemory*len(frame)+2000 {
				t.Fatalf("after a frame of %d bytes, the dictionary has %d bytes", len(frame), size)
			}
		}
	})
}

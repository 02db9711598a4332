package push_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	lokipush "github.com/grafana/loki/pkg/push"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/natives/loki/push"
)

type entry struct {
	T     int64
	Timed bool
	Line  string
	Meta  []batch.Label
}

type stream struct {
	Labels  string
	Entries []entry
}

// decode decodes a request with the Reader.
func decode(body []byte) (all []stream, err error) {
	r := push.NewReader(body)
	for r.NextStream() {
		s := stream{Labels: r.Labels}
		for r.NextEntry() {
			s.Entries = append(s.Entries, entry{r.T, r.Timed, r.Line, r.Meta})
		}
		all = append(all, s)
	}
	return all, r.Err()
}

// decodeLoki decodes a request with Loki's own code.
func decodeLoki(body []byte) (all []stream, err error) {
	var req lokipush.PushRequest
	if err := req.Unmarshal(body); err != nil {
		return nil, err
	}
	for _, s := range req.Streams {
		out := stream{Labels: s.Labels}
		for _, e := range s.Entries {
			in := entry{Line: e.Line}
			if !e.Timestamp.IsZero() {
				in.T, in.Timed = nearest(e.Timestamp), true
			}
			for _, l := range e.StructuredMetadata {
				in.Meta = append(in.Meta, batch.Label{Name: l.Name, Value: l.Value})
			}
			out.Entries = append(out.Entries, in)
		}
		all = append(all, out)
	}
	return all, nil
}

// nearest returns a time in Unix ns, limited to the valid range.
func nearest(t time.Time) int64 {
	const second = 1_000_000_000
	switch s := t.Unix(); {
	case s >= math.MaxInt64/second:
		return math.MaxInt64
	case s <= math.MinInt64/second:
		return math.MinInt64
	}
	return t.UnixNano()
}

func encode(all []stream) (body []byte) {
	for _, s := range all {
		n := 0
		for _, e := range s.Entries {
			n += push.EntrySize(e.T, e.Line, e.Meta)
		}
		body = push.AppendStream(body, s.Labels, n)
		for _, e := range s.Entries {
			body = push.AppendEntry(body, e.T, e.Line, e.Meta)
		}
	}
	return body
}

func encodeLoki(t *testing.T, all []stream) []byte {
	t.Helper()
	var req lokipush.PushRequest
	for _, s := range all {
		out := lokipush.Stream{Labels: s.Labels}
		for _, e := range s.Entries {
			in := lokipush.Entry{Timestamp: time.Unix(0, e.T), Line: e.Line}
			for _, l := range e.Meta {
				in.StructuredMetadata = append(in.StructuredMetadata, lokipush.LabelAdapter{Name: l.Name, Value: l.Value})
			}
			out.Entries = append(out.Entries, in)
		}
		req.Streams = append(req.Streams, out)
	}
	body, err := req.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	return body
}

var requests = [][]stream{
	nil,
	{{}},
	{{Labels: `{a="b"}`}},
	{{Labels: `{a="b"}`, Entries: []entry{{T: 1_700_000_000_123_456_789, Line: "hello"}, {T: 1_700_000_000_000_000_000}}}, {Labels: "{}", Entries: []entry{{}}}},
	{{Labels: `{a="b"}`, Entries: []entry{
		{T: -1, Line: "before 1970"}, {T: -1_000_000_000}, {T: math.MaxInt64}, {T: math.MinInt64},
		{T: 5, Line: "\xff\x00", Meta: []batch.Label{{Name: "trace", Value: "1"}, {Name: "empty"}, {}}},
		{T: 6, Line: string(bytes.Repeat([]byte("long "), 10000))},
	}}},
}

// TestEncode: requests have the same bytes as those of Loki's own code, and both
// decode them in the same way.
func TestEncode(t *testing.T) {
	for i, r := range requests {
		body := encode(r)
		if want := encodeLoki(t, r); !bytes.Equal(body, want) {
			t.Errorf("request %d: got %x, want %x", i, body, want)
		}
		got, err := decode(body)
		want, lokiErr := decodeLoki(body)
		if err != nil || lokiErr != nil {
			t.Errorf("request %d: %v, %v", i, err, lokiErr)
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("request %d: -want +got\n%s", i, d)
		}
	}
}

// TestConcatenate: two concatenated requests are one.
func TestConcatenate(t *testing.T) {
	a, b := requests[3], requests[4]
	got, err := decodeLoki(append(encode(a), encode(b)...))
	if err != nil {
		t.Fatal(err)
	}
	want, err := decodeLoki(encode(append(append([]stream{}, a...), b...)))
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

// TestReader: the rest of a stream is skipped, but still checked.
func TestReader(t *testing.T) {
	r := push.NewReader(encode(requests[3]))
	for _, want := range []string{`{a="b"}`, "{}"} {
		if !r.NextStream() || r.Labels != want {
			t.Fatalf("got stream %s, want %s", r.Labels, want)
		}
	}
	if r.NextStream() || r.Err() != nil {
		t.Fatal("there is a third stream", r.Err())
	}

	bad := encode(requests[3][:1])
	bad[len(bad)-1] = 0xff
	if r = push.NewReader(bad); !r.NextStream() || r.NextStream() || r.Err() == nil {
		t.Error("a broken entry that nobody asked for is not an error")
	}
}

func TestSortMeta(t *testing.T) {
	f := func(in, want []batch.Label) {
		t.Helper()
		if d := cmp.Diff(want, push.SortMeta(in)); d != "" {
			t.Error(d)
		}
	}
	f(nil, nil)
	f([]batch.Label{{Name: "a", Value: "1"}, {Name: "b"}}, []batch.Label{{Name: "a", Value: "1"}, {Name: "b"}})
	f([]batch.Label{{Name: "b"}, {Name: "a", Value: "1"}, {Name: "a", Value: "2"}}, []batch.Label{{Name: "a", Value: "2"}, {Name: "b"}})
	f([]batch.Label{{Name: "a", Value: "1"}, {Name: "a", Value: "2"}}, []batch.Label{{Name: "a", Value: "2"}})
}

// FuzzReader: the Reader accepts the same requests as Loki's own code, with the
// same result.
func FuzzReader(f *testing.F) {
	for _, r := range requests {
		f.Add(encode(r))
	}
	f.Add([]byte{0x0a, 0x04, 0x12, 0x02, 0x0a, 0x00})
	f.Add([]byte{0x12, 0x01, 'x', 0x1b, 0x1c})
	f.Fuzz(func(t *testing.T, body []byte) {
		got, err := decode(bytes.Clone(body))
		want, lokiErr := decodeLoki(body)
		if (err == nil) != (lokiErr == nil) {
			t.Fatalf("got error %v, Loki's is %v", err, lokiErr)
		}
		if err != nil {
			return
		}
		// Loki's code treats the minimum time as no time.
		zero := func(e entry) bool { return !e.Timed || e.T == math.MinInt64 }
		same := cmp.Comparer(func(a, b entry) bool {
			return (a.T == b.T && a.Timed == b.Timed || zero(a) && zero(b)) && a.Line == b.Line && cmp.Equal(a.Meta, b.Meta, cmpopts.EquateEmpty())
		})
		if d := cmp.Diff(want, got, same, cmpopts.EquateEmpty()); d != "" {
			t.Error(d)
		}
	})
}

// TestManyOddNames: there may be many names that are invalid in LogQL, so
// comparing each with all of them must be avoided.
func TestManyOddNames(t *testing.T) {
	var ls []batch.Label
	for i := range 100_000 {
		ls = append(ls, batch.Label{Name: fmt.Sprintf("a.%06d", i), Value: "v"})
	}
	s := batch.NewSeries(ls)
	defer s.Release()
	start := time.Now()
	text := push.AppendLabels(nil, s)
	if d := time.Since(start); d > 20*time.Second { // milliseconds, or minutes if the time is quadratic
		t.Errorf("it took %s", d)
	}
	if got := bytes.Count(text, []byte("a_")); got != len(ls) {
		t.Errorf("%d labels are %d", len(ls), got)
	}
}

// TestMetaLimit: two bytes can encode metadata that takes 32 bytes in memory.
func TestMetaLimit(t *testing.T) {
	entry := bytes.Repeat([]byte{0x1a, 0}, 100)
	stream := append([]byte{0x12}, append(binary.AppendUvarint(nil, uint64(len(entry))), entry...)...)
	body := append([]byte{0x0a}, append(binary.AppendUvarint(nil, uint64(len(stream))), stream...)...)
	for limit, want := range map[int]int{0: 100, 100: 100, 10: 11} {
		r := push.NewReader(body)
		r.MetaLimit = limit
		if !r.NextStream() || !r.NextEntry() || len(r.Meta) != want {
			t.Errorf("with a limit of %d there are %d, want %d: %v", limit, len(r.Meta), want, r.Err())
		}
	}
}

package write_test

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/golang/snappy"
	lokipush "github.com/grafana/loki/pkg/push"
	"github.com/klauspost/compress/s2"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/natives/loki/write"
)

// TestJoin: all decoders read blocks that were joined without decompression as
// one request.
func TestJoin(t *testing.T) {
	var want []string
	var all [][]byte
	parts := make([][]byte, 0, 3)
	for source, size := range []int{200, 70 << 10, 900 << 10} { // from one line to several blocks
		b := corpus(uint64(source), 3, size)
		blocks := write.Encode(b)
		body, err := write.Join(blocks...)
		if err != nil {
			t.Fatal(err)
		}
		raw, err := snappy.Decode(nil, body)
		if err != nil {
			t.Fatal(err)
		}
		parts = append(parts, raw)
		want = append(want, sorted(rows(b))...)
	}
	joined, err := write.Join(append(append(write.Encode(corpus(0, 3, 200)), write.Encode(corpus(1, 3, 70<<10))...), write.Encode(corpus(2, 3, 900<<10))...)...)
	if err != nil {
		t.Fatal(err)
	}
	for name, decode := range map[string]func(dst, src []byte) ([]byte, error){"snappy": snappy.Decode, "s2": s2.Decode} {
		raw, err := decode(nil, joined)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if !bytes.Equal(raw, bytes.Join(parts, nil)) {
			t.Errorf("%s decodes something else", name)
		}
		all = append(all, raw)
	}
	got := request{}
	if err := got.push.Unmarshal(all[0]); err != nil {
		t.Fatal(err)
	}
	diff(t, sorted(want), sorted(got.rows()))
}

// FuzzJoin joins blocks with arbitrary lines.
func FuzzJoin(f *testing.F) {
	f.Add("a", []byte("abcabcabcabcabc"), []byte("abcabcabcabc"))
	f.Add("\xff", []byte{}, bytes.Repeat([]byte{0}, 100000))
	s := stream("s", "a")
	f.Fuzz(func(t *testing.T, value string, one, two []byte) {
		var blocks []byte
		var want []string
		b := func(line []byte) *batch.Logs {
			return &batch.Logs{Stream: []*batch.Stream{s}, T: []int64{int64(len(line))}, Line: []string{string(line)}, Meta: [][]batch.Label{{{Name: "m", Value: value}}}}
		}
		blocks, err := write.Join(append(write.Encode(b(one)), write.Encode(b(two))...)...)
		if err != nil {
			t.Fatal(err)
		}
		raw, err := snappy.Decode(nil, blocks)
		if err != nil {
			t.Fatal(err)
		}
		var req lokipush.PushRequest
		if err := req.Unmarshal(raw); err != nil {
			t.Fatal(err)
		}
		for _, line := range [][]byte{one, two} {
			want = append(want, fmt.Sprint(len(line), string(line), value))
		}
		var got []string
		for _, s := range req.Streams {
			for _, e := range s.Entries {
				got = append(got, fmt.Sprint(e.Timestamp.UnixNano(), e.Line, e.StructuredMetadata[0].Value))
			}
		}
		diff(t, want, got)
	})
}

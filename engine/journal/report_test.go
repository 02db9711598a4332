package journal_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-run/weir/engine/clock/clocktest"
	"github.com/weir-run/weir/engine/journal"
)

// inspect returns the report and the payloads of the pending blocks.
func inspect(t *testing.T, dir string) (journal.Report, []string) {
	t.Helper()
	var pending []string
	r, err := journal.Inspect(dir, func(b journal.Block) error {
		pending = append(pending, fmt.Sprint(b.Shard, " ", string(b.Payload)))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return r, pending
}

// TestInspect inspects a journal while it is open.
func TestInspect(t *testing.T) {
	dir := t.TempDir()
	c := clocktest.New(start)
	j := open(t, dir, options(c))
	put(t, j, 0, "a")
	put(t, j, 1, "bb")
	c.Advance(time.Minute)
	put(t, j, 0, "ccc")
	b, _ := j.TryNext(0)
	j.Ack(b)

	// The cursor is not saved yet, so all blocks are pending.
	r, pending := inspect(t, dir)
	if diff := cmp.Diff([]string{"0 a", "1 bb", "0 ccc"}, pending); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	j.Maintain()
	r, pending = inspect(t, dir)
	if diff := cmp.Diff([]string{"1 bb", "0 ccc"}, pending); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	st := j.Stats()
	if r.Blocks != st.Blocks || r.Samples != st.Samples || r.Payload != st.PendingBytes || r.Bytes != st.Bytes || !r.Oldest.Equal(st.Oldest) {
		t.Errorf("got %+v, the journal itself says %+v", r, st)
	}
	want := journal.Report{
		Dir: dir, Endpoint: "test", URL: "http://localhost/", Node: "prometheus.remote_write.test",
		Bytes: r.Bytes, Blocks: 2, Samples: 5, Payload: 5, Oldest: r.Oldest, Newest: r.Newest, CursorSaved: r.CursorSaved,
		Shards:   []journal.ShardReport{{Next: 3, Blocks: 1, Samples: 3}, {Next: 2, Blocks: 1, Samples: 2}},
		Segments: []journal.SegmentReport{{File: "00000000000000000001.seg", Bytes: r.Bytes, First: 1, Blocks: 3, Pending: 2}},
	}
	if diff := cmp.Diff(want, r); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if !r.Oldest.Equal(start) || !r.Newest.Equal(start.Add(time.Minute)) {
		t.Errorf("from %v to %v", r.Oldest, r.Newest)
	}
	if _, err := journal.Inspect(dir, func(journal.Block) error { return errors.New("enough") }); err == nil || !strings.Contains(err.Error(), "enough") {
		t.Errorf("got %v", err)
	}
	// Inspect locked and changed nothing.
	put(t, j, 1, "d")
	if got := drain(t, j, 1); len(got) != 2 {
		t.Errorf("got %v", got)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestInspectDamage(t *testing.T) {
	dir := t.TempDir()
	j := open(t, dir, options(clocktest.New(start)))
	for i := range 3 {
		put(t, j, 0, strings.Repeat(fmt.Sprint(i), 100))
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "00000000000000000001.seg")
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	record := journal.RecordHeaderSize + 100
	b[journal.SegmentHeaderSize+3] ^= 1                                          // the first block's header
	b[journal.SegmentHeaderSize+record+journal.RecordHeaderSize+5] ^= 1          // the second one's payload
	b = append(b, "half a block"...)                                             // an interrupted write
	later := filepath.Join(dir, fmt.Sprintf("%020d.seg", 9))                     // makes the first segment not the last
	unknown := append([]byte(journal.SegmentStart(20)[:8]), 9, 0, 0, 0, 0, 0, 0) // of another version, but with a wrong checksum
	for name, content := range map[string][]byte{
		path: b, later: journal.SegmentStart(9), filepath.Join(dir, fmt.Sprintf("%020d.seg", 20)): unknown,
		filepath.Join(dir, "x.seg"): nil, filepath.Join(dir, "1.seg.damaged"): nil, filepath.Join(dir, "meta.json"): []byte("{"), filepath.Join(dir, "cursor"): []byte("x"),
	} {
		if err := os.WriteFile(name, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	r, pending := inspect(t, dir)
	if diff := cmp.Diff([]string{"0 " + strings.Repeat("2", 100)}, pending); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	want := []journal.SegmentReport{
		{File: filepath.Base(path), Bytes: int64(len(b)), First: 1, Blocks: 2, Pending: 2, Damaged: int64(record + len("half a block"))},
		{File: filepath.Base(later), Bytes: journal.SegmentHeaderSize, First: 9},
		{File: fmt.Sprintf("%020d.seg", 20), Bytes: 15, First: 20, Damaged: 15},
	}
	if diff := cmp.Diff(want, r.Segments); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"1.seg.damaged"}, r.Aside); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	got := strings.Join(append(r.Problems, r.Damage...), "\n")
	for _, want := range []string{"meta.json: ", "cursor: it is no cursor file", "block 2: checksum does not match", "x.seg: its name"} {
		if !strings.Contains(got, want) {
			t.Errorf("problems do not name %q:\n%s", want, got)
		}
	}
}

// TestInspectWhileWritten repeatedly inspects a journal that is being written,
// read and swept: it finds the written blocks, and no damage.
func TestInspectWhileWritten(t *testing.T) {
	dir := t.TempDir()
	o := options(clocktest.New(start))
	o.SegmentSize = 4 << 10
	j := open(t, dir, o)
	done := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		defer close(done)
		for i := range 2000 {
			put(t, j, i%2, strings.Repeat("x", 100))
			if b, ok := j.TryNext(i % 2); ok && i%3 > 0 {
				j.Ack(b)
			}
			if i%50 == 0 {
				j.Maintain()
			}
		}
	})
	defer wg.Wait()
	looks := 0
	for ok := true; ok; looks++ {
		select {
		case <-done:
			ok = false
		default:
		}
		r, pending := inspect(t, dir)
		for _, p := range pending {
			if p[2:] != strings.Repeat("x", 100) {
				t.Errorf("got %q", p)
			}
		}
		for i, s := range r.Segments {
			if s.Damaged > 0 && i < len(r.Segments)-1 {
				t.Errorf("damage in %+v", s)
			}
		}
		if len(r.Problems) > 0 {
			t.Error(r.Problems)
		}
	}
	t.Logf("looked %d times", looks)
	if err := j.Close(); err != nil {
		t.Error(err)
	}
}

func TestBarrier(t *testing.T) {
	j := open(t, t.TempDir(), options(clocktest.New(start)))
	defer j.Close()
	j.Barrier() // nothing is pending, so no block waits
	put(t, j, 0, "a")
	put(t, j, 1, "b")
	j.Barrier()
	j.Barrier()
	put(t, j, 1, "c")
	j.Barrier()
	put(t, j, 0, "d")
	next := func(shard int, want string) journal.Block {
		t.Helper()
		b, ok := j.TryNext(shard)
		if got := string(b.Payload); got != want || ok != (want != "") {
			t.Fatalf("shard %d: got %q, want %q", shard, got, want)
		}
		return b
	}
	j.Ack(next(1, "b"))
	next(1, "") // c waits for a
	a := next(0, "a")
	j.Ack(a)
	next(0, "") // d waits for c
	j.Ack(next(1, "c"))
	j.Ack(next(0, "d"))
	put(t, j, 1, "e")
	next(1, "e")
}

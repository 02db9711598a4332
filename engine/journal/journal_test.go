package journal_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/weir-run/weir/engine/clock"
	"github.com/weir-run/weir/engine/clock/clocktest"
	"github.com/weir-run/weir/engine/journal"
)

var start = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func options(c clock.Clock) journal.Options {
	return journal.Options{
		Shards: 2, SegmentSize: 64 << 10, Clock: c, Logger: slog.New(slog.DiscardHandler),
		Owner: journal.Owner{Endpoint: "test", URL: "http://localhost/", Node: "prometheus.remote_write.test"},
	}
}

func open(t *testing.T, dir string, o journal.Options) *journal.Journal {
	t.Helper()
	j, err := journal.Open(dir, o)
	if err != nil {
		t.Fatal(err)
	}
	return j
}

func put(t *testing.T, j *journal.Journal, shard int, payload string) {
	t.Helper()
	if err := j.Append(block(shard, payload)); err != nil {
		t.Fatal(err)
	}
}

func block(shard int, payload string) journal.Block {
	return journal.Block{Shard: shard, Kind: 3, Samples: len(payload), First: 77, Payload: []byte(payload)}
}

// drain acknowledges all blocks of a shard and returns their payloads.
func drain(t *testing.T, j *journal.Journal, shard int) []string {
	t.Helper()
	var got []string
	for {
		b, ok := j.TryNext(shard)
		if !ok {
			return got
		}
		got = append(got, string(b.Payload))
		j.Ack(b)
	}
}

func TestMain(m *testing.M) {
	if dir := os.Getenv("WEIR_TEST_JOURNAL_WRITER"); dir != "" {
		writeForever(dir)
		return
	}
	goleak.VerifyTestMain(m)
}

func TestShardsKeepTheirOrder(t *testing.T) {
	j := open(t, t.TempDir(), options(clocktest.New(start)))
	defer j.Close()
	for i := range 600 { // more than a shard keeps in memory
		put(t, j, i%2, fmt.Sprint(i))
	}
	for shard := range 2 {
		var want []string
		for i := shard; i < 600; i += 2 {
			want = append(want, fmt.Sprint(i))
		}
		if diff := cmp.Diff(want, drain(t, j, shard)); diff != "" {
			t.Errorf("shard %d (-want +got):\n%s", shard, diff)
		}
	}
}

func TestBlockComesBackAsItWent(t *testing.T) {
	j := open(t, t.TempDir(), options(clocktest.New(start)))
	defer j.Close()
	put(t, j, 1, "payload")
	got, ok := j.TryNext(1)
	want := block(1, "payload")
	want.Seq, want.Time = 1, start.UnixMilli()
	if !ok {
		t.Fatal("no block")
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	again, _ := j.TryNext(1)
	if again.Seq != got.Seq {
		t.Errorf("got block %d while block %d is in flight", again.Seq, got.Seq)
	}
}

func TestRestart(t *testing.T) {
	// f writes blocks, acknowledges some, ends the journal by end and checks what
	// the next one delivers for each shard.
	f := func(end func(*journal.Journal), want ...[]string) {
		t.Helper()
		dir := t.TempDir()
		c := clocktest.New(start)
		j := open(t, dir, options(c))
		for i := range 6 {
			put(t, j, i%2, fmt.Sprint(i))
		}
		ack := func(shard int) {
			b, _ := j.TryNext(shard)
			j.Ack(b)
		}
		ack(1)
		ack(1)
		j.Maintain() // saves the cursor
		ack(0)
		end(j)
		j = open(t, dir, options(c))
		defer j.Close()
		for shard, w := range want {
			if diff := cmp.Diff(w, drain(t, j, shard)); diff != "" {
				t.Errorf("shard %d (-want +got):\n%s", shard, diff)
			}
		}
	}
	f(func(j *journal.Journal) { j.Close() }, []string{"2", "4"}, []string{"5"})
	// Only blocks acknowledged since the last saved cursor are repeated.
	f((*journal.Journal).Kill, []string{"0", "2", "4"}, []string{"5"})
	// Without a cursor, all blocks are repeated.
	f(func(j *journal.Journal) {
		j.Close()
		os.WriteFile(filepath.Join(j.Dir(), "cursor"), []byte("broken"), 0o600)
	}, []string{"0", "2", "4"}, []string{"1", "3", "5"})
	f(func(j *journal.Journal) {
		j.Close()
		os.Remove(filepath.Join(j.Dir(), "meta.json"))
	}, []string{"2", "4"}, []string{"5"})
}

func TestBlocksOfThisRunWaitForThoseOfEarlierRuns(t *testing.T) {
	dir := t.TempDir()
	c := clocktest.New(start)
	j := open(t, dir, options(c))
	for i := range 600 {
		put(t, j, 0, fmt.Sprint(i))
	}
	j.Close()
	j = open(t, dir, options(c))
	defer j.Close()
	put(t, j, 1, "new")
	for range 600 {
		if b, ok := j.TryNext(1); ok {
			t.Fatalf("got %q before the backlog was done", b.Payload)
		}
		b, ok := j.TryNext(0)
		if !ok {
			t.Fatal("the backlog ended early")
		}
		j.Ack(b)
	}
	if diff := cmp.Diff([]string{"new"}, drain(t, j, 1)); diff != "" {
		t.Error(diff)
	}
}

// TestBarriersOutliveTheProcess restarts a journal repeatedly during an outage:
// the order across barriers does not change.
func TestBarriersOutliveTheProcess(t *testing.T) {
	dir := t.TempDir()
	o := options(clocktest.New(start))
	o.Shards = 3
	j := open(t, dir, o)
	put(t, j, 0, "first run")
	j.Barrier()
	put(t, j, 1, "first run, other settings")
	j.Kill()
	j = open(t, dir, o)
	put(t, j, 2, "second run")
	j.Maintain()
	j.Close()
	j = open(t, dir, o)
	put(t, j, 0, "third run")
	j.Kill()
	j = open(t, dir, o)
	defer j.Close()
	put(t, j, 1, "last run")
	for _, want := range []string{"first run", "first run, other settings", "second run", "third run", "last run"} {
		var next journal.Block
		var got []string
		for shard := range o.Shards {
			if b, ok := j.TryNext(shard); ok {
				next, got = b, append(got, string(b.Payload))
			}
		}
		if len(got) != 1 || got[0] != want {
			t.Fatalf("got %q, want %q alone", got, want)
		}
		j.Ack(next)
	}
}

func TestShardsAreFixedWhileBlocksArePending(t *testing.T) {
	dir := t.TempDir()
	c := clocktest.New(start)
	o := options(c)
	f := func(wanted, want int) *journal.Journal {
		t.Helper()
		o.Shards = wanted
		j := open(t, dir, o)
		if j.Shards() != want {
			t.Fatalf("got %d shards, want %d", j.Shards(), want)
		}
		return j
	}
	j := f(5, 5)
	put(t, j, 4, "x")
	j.Close()
	j = f(3, 5)
	drain(t, j, 4)
	j.Close()
	f(3, 3).Close()
}

func TestSegmentsGoOnceTheyAreDone(t *testing.T) {
	dir := t.TempDir()
	j := open(t, dir, options(clocktest.New(start)))
	payload := strings.Repeat("x", 10<<10)
	for i := range 60 {
		put(t, j, i%2, payload)
	}
	if n := len(segments(t, dir)); n != 10 {
		t.Fatalf("got %d segments, want 10", n)
	}
	drain(t, j, 0)
	if st := j.Stats(); st.Blocks != 30 || st.Segments != 10 {
		t.Errorf("got %+v with a shard done", st)
	}
	drain(t, j, 1)
	j.Maintain()
	if st := j.Stats(); st.Blocks != 0 || st.Bytes != 0 || st.Segments != 0 {
		t.Errorf("got %+v when all is done", st)
	}
	if s := segments(t, dir); len(s) != 0 {
		t.Errorf("files are left: %v", s)
	}
	put(t, j, 0, "more")
	j.Close()
	j = open(t, dir, options(clocktest.New(start)))
	defer j.Close()
	if diff := cmp.Diff([]string{"more"}, drain(t, j, 0)); diff != "" {
		t.Error(diff)
	}
}

func segments(t *testing.T, dir string) []string {
	t.Helper()
	s, err := filepath.Glob(filepath.Join(dir, "*.seg"))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestFullJournal(t *testing.T) {
	payload := strings.Repeat("x", 10<<10)
	o := options(clocktest.New(start))
	o.Limits = journal.Limits{MaxSize: 256 << 10}

	t.Run("block", func(t *testing.T) {
		j := open(t, t.TempDir(), o)
		defer j.Close()
		for {
			ctx, cancel := context.WithCancel(context.Background())
			cancel()
			if err := j.Room(ctx); err != nil {
				if !errors.Is(err, context.Canceled) {
					t.Fatal(err)
				}
				break
			}
			put(t, j, 0, payload)
		}
		if st := j.Stats(); st.Bytes < 256<<10 || st.Bytes > 300<<10 {
			t.Fatalf("full at %d bytes", st.Bytes)
		}
		room := make(chan error)
		go func() { room <- j.Room(context.Background()) }()
		drain(t, j, 0)
		if err := <-room; err != nil {
			t.Error(err)
		}
		if d := j.Stats().DroppedBlocks; len(d) != 0 {
			t.Errorf("dropped %v", d)
		}
	})
	t.Run("drop_oldest", func(t *testing.T) {
		o.Limits.OnFull = journal.OnFullDropOldest
		j := open(t, t.TempDir(), o)
		defer j.Close()
		put(t, j, 1, "first")
		first, _ := j.TryNext(1)
		for i := range 100 {
			if err := j.Room(context.Background()); err != nil {
				t.Fatal(err)
			}
			put(t, j, 0, fmt.Sprint(i)+payload)
		}
		if j.Keeps(first) {
			t.Error("the block in flight did not fall off")
		}
		j.Ack(first)
		st := j.Stats()
		got := drain(t, j, 0)
		if st.Bytes > 256<<10 {
			t.Errorf("%d bytes", st.Bytes)
		}
		if n := len(got) + int(st.DroppedBlocks["max_size"]); n != 101 {
			t.Errorf("%d delivered + %d dropped of 101", len(got), st.DroppedBlocks["max_size"])
		}
		if want := "99" + payload; len(got) == 0 || got[len(got)-1] != want {
			t.Error("the newest block is not there")
		}
	})
	t.Run("raised bound", func(t *testing.T) {
		o.Limits = journal.Limits{MaxSize: 64 << 10}
		j := open(t, t.TempDir(), o)
		defer j.Close()
		for range 8 {
			put(t, j, 0, payload)
		}
		room := make(chan error)
		go func() { room <- j.Room(context.Background()) }()
		if err := j.Configure(o.Owner, journal.Limits{MaxSize: 1 << 20}); err != nil {
			t.Fatal(err)
		}
		if err := <-room; err != nil {
			t.Error(err)
		}
	})
}

func TestMaxAge(t *testing.T) {
	c := clocktest.New(start)
	o := options(c)
	o.Limits = journal.Limits{MaxAge: time.Hour}
	j := open(t, t.TempDir(), o)
	defer j.Close()
	put(t, j, 0, "in flight")
	put(t, j, 0, "waiting")
	b, _ := j.TryNext(0)
	c.Advance(40 * time.Minute)
	put(t, j, 0, "young")
	put(t, j, 1, "young too")
	if st := j.Stats(); !st.Oldest.Equal(start) {
		t.Errorf("oldest is %v", st.Oldest)
	}
	if !j.Keeps(b) {
		t.Error("fell off too early")
	}
	c.Advance(30 * time.Minute)
	if j.Keeps(b) {
		t.Error("an old block in flight is kept")
	}
	if diff := cmp.Diff([]string{"young"}, drain(t, j, 0)); diff != "" {
		t.Error(diff)
	}
	// A sealed segment is removed as a whole, even if no shard makes progress.
	put(t, j, 0, strings.Repeat("x", 40<<10))
	c.Advance(2 * time.Hour)
	j.Maintain()
	st := j.Stats()
	if diff := cmp.Diff(map[string]int64{"max_age": 4}, st.DroppedBlocks); diff != "" {
		t.Error(diff)
	}
	if st.Bytes != 0 || st.Blocks != 0 {
		t.Errorf("got %+v", st)
	}
}

// TestMaxAgeAndLeaps: setting the clock does not change the age of a block.
func TestMaxAgeAndLeaps(t *testing.T) {
	for _, leap := range []time.Duration{3 * time.Hour, -3 * time.Hour} {
		c := clocktest.New(start)
		o := options(c)
		o.Limits = journal.Limits{MaxAge: time.Hour}
		j := open(t, t.TempDir(), o)
		put(t, j, 0, "before")
		c.Leap(leap)
		put(t, j, 0, "after")
		c.Advance(50 * time.Minute)
		j.Maintain()
		b, _ := j.TryNext(0)
		if string(b.Payload) != "before" || !j.Keeps(b) {
			t.Errorf("leap of %s: %q is next", leap, b.Payload)
		}
		c.Advance(20 * time.Minute)
		if j.Keeps(b) {
			t.Errorf("leap of %s: an old block is kept", leap)
		}
		put(t, j, 0, "young")
		if diff := cmp.Diff([]string{"young"}, drain(t, j, 0)); diff != "" {
			t.Errorf("leap of %s: %s", leap, diff)
		}
		j.Close()
	}
}

func TestGroupCommit(t *testing.T) {
	o := options(clocktest.New(start))
	o.Limits.Fsync = journal.FsyncAlways
	var mu sync.Mutex
	writes, syncs := 0, 0
	began, gate := make(chan struct{}, 50), make(chan struct{})
	o = o.WithFiles(func(path string, flag int) (journal.File, error) {
		f, err := journal.OpenOSFile(path, flag)
		return &faultyFile{File: f, write: func(b []byte, off int64) (int, error) {
			began <- struct{}{}
			<-gate
			mu.Lock()
			writes++
			mu.Unlock()
			return f.WriteAt(b, off)
		}, sync: func() error { mu.Lock(); syncs++; mu.Unlock(); return f.Sync() }}, err
	})
	j := open(t, t.TempDir(), o)
	defer j.Close()
	var wg sync.WaitGroup
	wg.Go(func() { put(t, j, 0, "x") })
	<-began
	for range 49 { // while the first is being written
		wg.Go(func() { put(t, j, 0, "x") })
	}
	for j.Queued() < 49 {
		runtime.Gosched()
	}
	close(gate)
	wg.Wait()
	if n := len(drain(t, j, 0)); n != 50 {
		t.Errorf("got %d blocks", n)
	}
	if writes != 2 || syncs != 2 {
		t.Errorf("%d writes and %d syncs for one call and 49 that come during it", writes, syncs)
	}
}

// faultyFile is a File with some methods replaced.
type faultyFile struct {
	journal.File
	write func([]byte, int64) (int, error)
	trunc func(int64) error
	sync  func() error
}

func (f *faultyFile) WriteAt(b []byte, off int64) (int, error) {
	if f.write != nil {
		return f.write(b, off)
	}
	return f.File.WriteAt(b, off)
}

func (f *faultyFile) Truncate(n int64) error {
	if f.trunc != nil {
		return f.trunc(n)
	}
	return f.File.Truncate(n)
}

func (f *faultyFile) Sync() error {
	if f.sync != nil {
		return f.sync()
	}
	return f.File.Sync()
}

func TestFailedAppend(t *testing.T) {
	// f makes the writes of "bad" blocks fail after half of their bytes.
	f := func(name string, fsync journal.Fsync, truncates bool) {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			o := options(clocktest.New(start))
			o.Limits.Fsync = fsync
			full := false
			o = o.WithFiles(func(path string, flag int) (journal.File, error) {
				f, err := journal.OpenOSFile(path, flag)
				if err != nil {
					return nil, err
				}
				return &faultyFile{File: f,
					write: func(b []byte, off int64) (int, error) {
						if full && fsync != journal.FsyncAlways {
							n, _ := f.WriteAt(b[:len(b)/2], off)
							return n, syscall.ENOSPC
						}
						return f.WriteAt(b, off)
					},
					trunc: func(n int64) error {
						if !truncates {
							return syscall.EIO
						}
						return f.Truncate(n)
					},
					sync: func() error {
						if full {
							return syscall.EIO
						}
						return nil
					},
				}, nil
			})
			j := open(t, dir, o)
			put(t, j, 0, "good")
			full = true
			for range 3 {
				err := j.Append(block(0, "bad"), block(1, "bad"))
				if !errors.Is(err, syscall.ENOSPC) && !errors.Is(err, syscall.EIO) {
					t.Fatalf("got error %v", err)
				}
			}
			full = false
			put(t, j, 0, "good again")
			want := []string{"good", "good again"}
			b, _ := j.TryNext(0)
			if string(b.Payload) != "good" {
				t.Errorf("got %q", b.Payload)
			}
			j.Kill()
			j = open(t, dir, options(clocktest.New(start)))
			defer j.Close()
			got := append(drain(t, j, 0), drain(t, j, 1)...)
			if !truncates {
				// Blocks that could not be cut off may be delivered, but only after blocks
				// that were accepted earlier, and no other block is affected.
				got = slices.DeleteFunc(got, func(s string) bool { return s == "bad" })
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	f("short write", journal.FsyncNone, true)
	f("short write, truncate fails", journal.FsyncNone, false)
	f("sync fails", journal.FsyncAlways, true)
	f("sync and truncate fail", journal.FsyncAlways, false)
}

func TestDiskFullDropsOldest(t *testing.T) {
	o := options(clocktest.New(start))
	o.Limits.OnFull = journal.OnFullDropOldest
	var mu sync.Mutex
	sizes := map[string]int64{}
	const disk = 256 << 10
	dir := t.TempDir()
	o = o.WithFiles(func(path string, flag int) (journal.File, error) {
		f, err := journal.OpenOSFile(path, flag)
		return &faultyFile{File: f, write: func(b []byte, off int64) (int, error) {
			mu.Lock()
			defer mu.Unlock()
			used := int64(0)
			for p, n := range sizes {
				if _, err := os.Stat(p); err == nil && p != path {
					used += n
				}
			}
			if used+off+int64(len(b)) > disk {
				return 0, &os.PathError{Op: "write", Path: path, Err: syscall.ENOSPC}
			}
			sizes[path] = off + int64(len(b))
			return f.WriteAt(b, off)
		}}, err
	})
	j := open(t, dir, o)
	defer j.Close()
	for i := range 100 {
		put(t, j, 0, fmt.Sprintf("%d %s", i, strings.Repeat("x", 10<<10)))
	}
	got := drain(t, j, 0)
	dropped := j.Stats().DroppedBlocks["disk_full"]
	if len(got)+int(dropped) != 100 || dropped == 0 || !strings.HasPrefix(got[len(got)-1], "99 ") {
		t.Errorf("%d delivered, %d dropped of 100", len(got), dropped)
	}
}

// TestDiskFilledByTheActiveSegment delivers everything while the active segment
// fills the disk: there is room for the next block.
func TestDiskFilledByTheActiveSegment(t *testing.T) {
	const disk = 64 << 10 // less than a segment
	sizes := map[string]int64{}
	o := options(clocktest.New(start)).WithFiles(func(path string, flag int) (journal.File, error) {
		f, err := os.OpenFile(path, flag, 0o600)
		return &faultyFile{File: f, write: func(b []byte, off int64) (int, error) {
			used := int64(0)
			for p, n := range sizes {
				if _, err := os.Stat(p); err == nil && p != path {
					used += n
				}
			}
			if used+off+int64(len(b)) > disk {
				return 0, &os.PathError{Op: "write", Path: path, Err: syscall.ENOSPC}
			}
			sizes[path] = off + int64(len(b))
			return f.WriteAt(b, off)
		}}, err
	})
	o.SegmentSize = 1 << 20
	j := open(t, t.TempDir(), o)
	defer j.Close()
	big := strings.Repeat("x", 10<<10)
	n := 0
	for j.Append(block(0, fmt.Sprintf("%d %s", n, big))) == nil {
		n++
	}
	if n == 0 {
		t.Fatal("nothing fitted")
	}
	if b, ok := j.TryNext(0); !ok || !strings.HasPrefix(string(b.Payload), "0 ") {
		t.Fatalf("got %.10q", b.Payload)
	}
	if err := j.Append(block(0, big)); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("with blocks that wait: %v", err)
	}
	if got := drain(t, j, 0); len(got) != n {
		t.Errorf("%d of %d blocks came", len(got), n)
	}
	for i := range 3 {
		put(t, j, 0, fmt.Sprintf("later %d %s", i, big))
	}
	got := drain(t, j, 0)
	if len(got) != 3 || !strings.HasPrefix(got[0], "later 0") {
		t.Errorf("%d blocks came later", len(got))
	}
}

// TestTruncatedAnywhere cuts a small journal at every length.
func TestTruncatedAnywhere(t *testing.T) {
	content, ends := smallSegment()
	for n := range len(content) + 1 {
		got, _ := reopen(t, content[:n])
		want := 0
		for _, e := range ends {
			if e <= n {
				want++
			}
		}
		if len(got) != want || !slices.IsSorted(got) {
			t.Fatalf("cut to %d bytes: got %q, want %d blocks", n, got, want)
		}
	}
}

// TestFlippedByteAnywhere damages a small journal at every byte: at most the
// affected block is lost.
func TestFlippedByteAnywhere(t *testing.T) {
	content, ends := smallSegment()
	for n := range content {
		bad := bytes.Clone(content)
		bad[n] ^= 0x55
		got, st := reopen(t, bad)
		lost := slices.IndexFunc(ends, func(e int) bool { return n < e })
		var want []string
		for i := range ends {
			if i != lost || n < journal.SegmentHeaderSize {
				want = append(want, payload(i))
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("byte %d flipped (-want +got):\n%s", n, diff)
		}
		if want := int64(1); n >= journal.SegmentHeaderSize && st.DroppedBlocks["corrupt"] != want {
			t.Fatalf("byte %d flipped: %d blocks counted, want %d", n, st.DroppedBlocks["corrupt"], want)
		}
	}
}

func payload(i int) string { return fmt.Sprintf("%c %s", 'a'+i, strings.Repeat("payload ", i)) }

// smallSegment returns a segment and where its blocks end.
func smallSegment() (content []byte, ends []int) {
	content = journal.SegmentStart(1)
	for i := range 5 {
		content = journal.AppendRecord(content, uint64(i+1), 0, []byte(payload(i)))
		ends = append(ends, len(content))
	}
	return content, ends
}

// reopen opens a journal with one segment and returns the blocks that it
// delivers.
func reopen(t *testing.T, content []byte) ([]string, journal.Stats) {
	t.Helper()
	dir := t.TempDir()
	path := filepath.Join(dir, "00000000000000000001.seg")
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	j := open(t, dir, options(clocktest.New(start)))
	defer j.Close()
	put(t, j, 0, "~ last")
	got := drain(t, j, 0)
	if len(got) == 0 || got[len(got)-1] != "~ last" {
		t.Fatalf("the journal does not go on: %q", got)
	}
	return got[:len(got)-1], j.Stats()
}

// TestDamageWhileOpen destroys a file of an open journal: the journal continues
// with the remaining blocks and discards the rest.
func TestDamageWhileOpen(t *testing.T) {
	f := func(name string, damage func(path string) error, want int) {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			j := open(t, dir, options(clocktest.New(start)))
			defer j.Close()
			for i := range 600 {
				put(t, j, i%2, fmt.Sprintf("%03d %s", i, strings.Repeat("x", 1000)))
			}
			before := j.Stats()
			if err := damage(segments(t, dir)[8]); err != nil {
				t.Fatal(err)
			}
			n := len(drain(t, j, 0)) + len(drain(t, j, 1))
			j.Maintain()
			st := j.Stats()
			if n != want {
				t.Errorf("got %d blocks, want %d", n, want)
			}
			if st.Blocks != 0 || int64(n)+st.DroppedBlocks["corrupt"] != before.Blocks {
				t.Errorf("got %d blocks, then %+v", n, st)
			}
		})
	}
	f("removed", os.Remove, 538)
	f("emptied", func(p string) error { return os.Truncate(p, 0) }, 538)
	f("cut", func(p string) error { return os.Truncate(p, 10<<10) }, 547)
	f("zeroed in the middle", func(p string) error {
		f, err := os.OpenFile(p, os.O_RDWR, 0)
		if err != nil {
			return err
		}
		defer f.Close()
		_, err = f.WriteAt(make([]byte, 3000), 20<<10)
		return err
	}, 596)
}

func TestUnknownVersionsAreKeptAside(t *testing.T) {
	dir := t.TempDir()
	c := clocktest.New(start)
	j := open(t, dir, options(c))
	put(t, j, 0, "mine")
	j.Close()
	if err := os.WriteFile(filepath.Join(dir, "meta.json"), []byte(`{"version": 9, "lanes": 1000}`), 0o600); err != nil {
		t.Fatal(err)
	}
	j = open(t, dir, options(c))
	defer j.Close()
	if got := drain(t, j, 0); len(got) != 0 {
		t.Errorf("read %q of a version it does not know", got)
	}
	kept, _ := filepath.Glob(filepath.Join(dir, "unknown", "*.seg.*"))
	if len(kept) != 1 {
		t.Errorf("kept %v", kept)
	}
}

func TestClaim(t *testing.T) {
	root := filepath.Join(t.TempDir(), "journal")
	claim := func(node, endpoint, url string) *journal.Journal {
		t.Helper()
		c := clocktest.New(start)
		o := options(c)
		o.Owner = journal.Owner{Endpoint: endpoint, URL: url, Node: node}
		stop := runClock(c)
		defer stop()
		j, err := journal.Claim(t.Context(), root, o)
		if err != nil {
			t.Fatal(err)
		}
		return j
	}
	a := claim("a", "", "http://user:pass@host/push?token=1")
	put(t, a, 0, "of a")
	b := claim("b", "", "http://host/push?token=1")
	if a.Dir() == b.Dir() {
		t.Fatal("two nodes share a journal")
	}
	put(t, b, 0, "of b")
	a.Close()
	b.Close()
	// Each claim gets its own journal again, in any order.
	b = claim("b", "", "http://other@host/push?token=1")
	a = claim("a", "", "http://host/push?token=1")
	b.Close()
	// b was renamed to c.
	c := claim("c", "", "http://host/push?token=1")
	if diff := cmp.Diff([]string{"of b"}, drain(t, c, 0)); diff != "" {
		t.Error(diff)
	}
	// A journal is found by its name, whatever the URL.
	d := claim("d", "prod", "http://one/")
	put(t, d, 0, "of d")
	d.Close()
	d = claim("d", "prod", "http://two/")
	if diff := cmp.Diff([]string{"of d"}, drain(t, d, 0)); diff != "" {
		t.Error(diff)
	}
	infos, err := journal.List(root)
	if err != nil || len(infos) != 3 {
		t.Fatalf("got %+v, %v", infos, err)
	}
	for _, in := range infos {
		if !in.InUse || in.Err != "" || strings.Contains(in.URL, "pass") || strings.Contains(in.URL, "token=1") {
			t.Errorf("got %+v", in)
		}
	}
	for _, j := range []*journal.Journal{a, c, d} {
		j.Close()
	}
}

// TestClaimKeepsTenantsApart: a node does not adopt the journal of a removed
// node that had another destination or tenant, even if that tenant was set only
// while the node ran.
func TestClaimKeepsTenantsApart(t *testing.T) {
	root := filepath.Join(t.TempDir(), "journal")
	claim := func(owner journal.Owner) *journal.Journal {
		t.Helper()
		c := clocktest.New(start)
		o := options(c)
		o.Owner = owner
		stop := runClock(c)
		defer stop()
		j, err := journal.Claim(t.Context(), root, o)
		if err != nil {
			t.Fatal(err)
		}
		return j
	}
	const secret = "hunter2"
	a := journal.Owner{Endpoint: "mimir", URL: "http://host/push?x=1", Tenant: secret, Node: "a"}
	j := claim(a)
	put(t, j, 0, "of a")
	j.Close()
	for _, other := range []journal.Owner{
		{Endpoint: "mimir", URL: a.URL, Tenant: "other", Node: "b"},
		{Endpoint: "mimir", URL: a.URL, Node: "c"},
		{Endpoint: "mimir", URL: "http://host/push?x=2", Tenant: secret, Node: "d"},
	} {
		j := claim(other)
		if got := drain(t, j, 0); len(got) > 0 {
			t.Errorf("%s got %q", other.Node, got)
		}
		j.Close()
	}
	j = claim(journal.Owner{Endpoint: "mimir", URL: a.URL, Tenant: secret, Node: "renamed"})
	if err := j.Configure(journal.Owner{Endpoint: "mimir", URL: "http://elsewhere/", Tenant: "other", Node: "renamed"}, journal.Limits{}); err != nil {
		t.Fatal(err)
	}
	meta, err := os.ReadFile(filepath.Join(j.Dir(), "meta.json"))
	if err != nil || strings.Contains(string(meta), secret) || !strings.Contains(string(meta), "http://elsewhere/") {
		t.Errorf("got %s, %v", meta, err)
	}
	j.Close()
	j = claim(journal.Owner{Endpoint: "mimir", URL: a.URL, Tenant: secret, Node: "e"})
	if got := drain(t, j, 0); len(got) > 0 {
		t.Errorf("e got %q, which is for another tenant now", got)
	}
	j.Close()
	j = claim(journal.Owner{Endpoint: "mimir", URL: a.URL, Tenant: "anything", Node: "renamed"})
	if diff := cmp.Diff([]string{"of a"}, drain(t, j, 0)); diff != "" {
		t.Errorf("a node does not find its own: %s", diff)
	}
	j.Close()
}

func TestClaimWaitsForThePredecessor(t *testing.T) {
	root := t.TempDir()
	c := clocktest.New(start)
	o := options(c)
	old, err := journal.Claim(t.Context(), root, o)
	if err != nil {
		t.Fatal(err)
	}
	got := make(chan *journal.Journal, 1)
	go func() {
		j, _ := journal.Claim(t.Context(), root, o)
		got <- j
	}()
	for range 100 { // longer than Claim waits for the journal of another node
		if err := c.WaitTimers(t.Context(), 1); err != nil {
			t.Fatal(err)
		}
		c.Advance(50 * time.Millisecond)
	}
	select {
	case <-got:
		t.Fatal("opened twice")
	default:
	}
	old.Close()
	stop := runClock(c)
	defer stop()
	j := <-got
	if j == nil || j.Dir() != old.Dir() {
		t.Fatal("not the same journal")
	}
	j.Close()
}

// runClock advances a clock whenever a goroutine waits for it.
func runClock(c *clocktest.Fake) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() {
		for c.WaitTimers(ctx, 1) == nil {
			c.Advance(50 * time.Millisecond)
		}
	})
	return func() { cancel(); wg.Wait() }
}

func TestRemoveExpired(t *testing.T) {
	root := t.TempDir()
	o := options(clock.System{})
	o.Limits.MaxAge = time.Hour
	for _, name := range []string{"held", "orphan"} {
		j := open(t, filepath.Join(root, name), o)
		put(t, j, 0, "x")
		if name == "held" {
			defer j.Close()
		} else {
			j.Close()
		}
	}
	f := func(now time.Time, want ...string) {
		t.Helper()
		removed, err := journal.RemoveExpired(root, now)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, in := range removed {
			got = append(got, filepath.Base(in.Dir))
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	}
	f(time.Now().Add(30 * time.Minute))
	f(time.Now().Add(2*time.Hour), "orphan")
	if _, err := os.Stat(filepath.Join(root, "orphan")); !os.IsNotExist(err) {
		t.Errorf("it is still there: %v", err)
	}
}

func FuzzScan(f *testing.F) {
	content, _ := smallSegment()
	f.Add(content, uint8(3))
	f.Add(content[:70], uint8(0))
	f.Add([]byte("\xd7WJ\x01\xd7WJ\x01"), uint8(9))
	f.Fuzz(func(t *testing.T, data []byte, cut uint8) {
		journal.Scan(bytes.NewReader(data), int64(len(data)))
		// After any data, the next valid records are found.
		for len(data) < journal.SegmentHeaderSize {
			data = append(data, 0)
		}
		whole := bytes.Clone(data)
		whole = journal.AppendRecord(whole, 1<<40, 1, []byte("one"))
		whole = journal.AppendRecord(whole, 1<<40+1, 2, []byte("two"))
		end := len(whole)
		whole = append(whole, bytes.Repeat([]byte{0xd7}, int(cut))...)
		found, _ := journal.Scan(bytes.NewReader(whole), int64(len(whole)))
		var tail []journal.Found
		for _, r := range found {
			if r.Seq >= 1<<40 {
				tail = append(tail, r)
			}
		}
		if len(tail) != 2 || string(tail[0].Payload) != "one" || string(tail[1].Payload) != "two" {
			// Allowed only if an intact header in data covers these bytes.
			if !claims(data, end) {
				t.Fatalf("found %v", found)
			}
		}
	})
}

// claims reports whether data contains a whole record header.
func claims(data []byte, end int) bool {
	found, _ := journal.Scan(padded{bytes.NewReader(data), int64(end)}, int64(len(data))+256<<20)
	return len(found) > 0
}

// padded is data followed by zeros.
type padded struct {
	r    io.ReaderAt
	size int64
}

func (p padded) ReadAt(b []byte, off int64) (int, error) {
	n, err := p.r.ReadAt(b, off)
	if err == io.EOF {
		clear(b[n:])
		return len(b), nil
	}
	return n, err
}

// TestDamagedCursorAndMeta damages each byte of the small files: no pending
// block is lost.
func TestDamagedCursorAndMeta(t *testing.T) {
	for _, name := range []string{"cursor", "meta.json"} {
		for n, size := 0, 1; n < size; n++ {
			dir := t.TempDir()
			j := open(t, dir, options(clocktest.New(start)))
			for i := range 4 {
				put(t, j, i%2, fmt.Sprint(i))
			}
			b, _ := j.TryNext(0)
			j.Ack(b)
			j.Close()
			path := filepath.Join(dir, name)
			content, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			size = len(content)
			content[n] ^= 0x15
			if err := os.WriteFile(path, content, 0o600); err != nil {
				t.Fatal(err)
			}
			j = open(t, dir, options(clocktest.New(start)))
			kept, _ := filepath.Glob(filepath.Join(dir, "unknown", "*.seg.*"))
			var got []string
			for shard := range j.Shards() {
				got = append(got, drain(t, j, shard)...)
			}
			j.Close()
			slices.Sort(got)
			want := []string{"1", "2", "3"}
			if name == "cursor" {
				want = []string{"0", "1", "2", "3"}
			}
			if len(kept) == 1 {
				want = nil // it looks like another version and is kept
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Fatalf("byte %d of %s (-want +got):\n%s", n, name, diff)
			}
		}
	}
}

// TestMemoryDoesNotGrow fills a journal that is not drained.
func TestMemoryDoesNotGrow(t *testing.T) {
	j := open(t, t.TempDir(), options(clocktest.New(start)))
	defer j.Close()
	heap := func() int64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	fill := func() {
		for i := range 30_000 {
			put(t, j, i%2, "a small block")
		}
	}
	fill()
	before := heap()
	fill()
	if grown := heap() - before; grown > 100<<10 {
		t.Errorf("30,000 blocks more take %d bytes", grown)
	}
	if n := len(drain(t, j, 0)) + len(drain(t, j, 1)); n != 60_000 {
		t.Errorf("got %d blocks", n)
	}
}

package journal_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-run/weir/engine/clock/clocktest"
	"github.com/weir-run/weir/engine/journal"
)

// logged makes o log to the returned buffer.
func logged(o *journal.Options) *bytes.Buffer {
	var b bytes.Buffer
	o.Logger = slog.New(slog.NewTextHandler(&b, nil))
	return &b
}

// errorsIn counts the lines of a log that are errors.
func errorsIn(log *bytes.Buffer) int { return strings.Count(log.String(), "level=ERROR") }

// readFaults returns o with two errors: opening a segment for reading, or
// reading it, fails with that error while it is set.
func readFaults(o journal.Options) (_ journal.Options, opening, reading *error) {
	opening, reading = new(error), new(error)
	return o.WithFiles(func(path string, flag int) (journal.File, error) {
		if flag == os.O_RDONLY && *opening != nil {
			return nil, &os.PathError{Op: "open", Path: path, Err: *opening}
		}
		f, err := journal.OpenOSFile(path, flag)
		if err != nil {
			return nil, err
		}
		return &unreadableFile{f, reading}, nil
	}), opening, reading
}

type unreadableFile struct {
	journal.File
	err *error
}

func (f *unreadableFile) ReadAt(b []byte, off int64) (int, error) {
	if *f.err != nil {
		return 0, *f.err
	}
	return f.File.ReadAt(b, off)
}

// TestSegmentsThatCannotBeReadForNow checks that too many open files, or a
// volume that is temporarily missing, lose no data.
func TestSegmentsThatCannotBeReadForNow(t *testing.T) {
	f := func(name string, open, read error) {
		t.Run(name, func(t *testing.T) {
			o, opening, reading := readFaults(options(clocktest.New(start)))
			log := logged(&o)
			j := openJournal(t, o)
			defer j.Close()
			const blocks = 600 // more than a shard keeps in memory, in several segments
			for i := range blocks {
				put(t, j, 0, fmt.Sprintf("%03d %s", i, strings.Repeat("x", 1000)))
			}
			got := 0
			take := func(n int) {
				for range n {
					b, ok := j.TryNext(0)
					if !ok {
						t.Fatalf("block %d does not come", got)
					}
					if !strings.HasPrefix(string(b.Payload), fmt.Sprintf("%03d ", got)) {
						t.Fatalf("block %d is %.3q", got, b.Payload)
					}
					got++
					j.Ack(b)
				}
			}
			// At the first block, in the middle, and where the shard must search for
			// more blocks.
			for _, n := range []int{0, 100, 156} {
				take(n)
				*opening, *reading = open, read
				for range 20 {
					if b, ok := j.TryNext(0); ok {
						t.Fatalf("got block %.3q of a file that cannot be read", b.Payload)
					}
					j.Maintain()
				}
				*opening, *reading = nil, nil
			}
			j.Maintain()
			take(blocks - got)
			if st := j.Stats(); len(st.DroppedBlocks) > 0 || st.Blocks != 0 {
				t.Errorf("got %+v", st)
			}
			if n := errorsIn(log); n != 3 {
				t.Errorf("it was logged %d times, not once each time:\n%s", n, log)
			}
		})
	}
	f("too many open files", syscall.EMFILE, nil)
	f("no access", syscall.EACCES, nil)
	f("input/output error", nil, syscall.EIO)
}

func openJournal(t *testing.T, o journal.Options) *journal.Journal {
	t.Helper()
	return open(t, t.TempDir(), o)
}

// TestBadSector checks that blocks that the disk cannot read are given up after
// a while and counted, and delay nothing else.
func TestBadSector(t *testing.T) {
	o, _, reading := readFaults(options(clocktest.New(start)))
	log := logged(&o)
	j := openJournal(t, o)
	defer j.Close()
	put(t, j, 0, "bad")
	put(t, j, 1, "later")
	*reading = syscall.EIO
	seconds := 0
	for ; j.Stats().Blocks == 2; seconds++ {
		j.TryNext(0)
		j.Maintain()
	}
	*reading = nil
	if got := drain(t, j, 1); !slices.Equal(got, []string{"later"}) {
		t.Errorf("shard 1 has %q", got)
	}
	if st := j.Stats(); seconds < 20 || seconds > 40 || st.DroppedBlocks["corrupt"] != 1 || st.DroppedSamples["corrupt"] != 3 {
		t.Errorf("after %d s: %+v", seconds, st)
	}
	if n := errorsIn(log); n != 2 {
		t.Errorf("%d errors were logged, want that it waits and that it does not:\n%s", n, log)
	}
}

// TestUnreadableAtTheStart checks that a journal opens even if parts of it
// cannot be read.
func TestUnreadableAtTheStart(t *testing.T) {
	dir := t.TempDir()
	o, _, reading := readFaults(options(clocktest.New(start)))
	j := open(t, dir, o)
	put(t, j, 0, "lost")
	j.Kill()
	*reading = syscall.EIO
	j = open(t, dir, o)
	defer j.Close()
	*reading = nil
	put(t, j, 0, "new")
	if got := drain(t, j, 0); !slices.Equal(got, []string{"new"}) {
		t.Errorf("got %q", got)
	}
	if names := kept(t, dir); len(names) != 1 {
		t.Errorf("kept %q", names)
	}
}

// kept returns the damaged segments that were set aside.
func kept(t *testing.T, dir string) []string { return filesOf(t, dir, ".damaged") }

func filesOf(t *testing.T, dir, suffix string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), suffix) {
			names = append(names, e.Name())
		}
	}
	return names
}

// TestDamageIsLoggedOnce flips a byte in many blocks of one segment.
func TestDamageIsLoggedOnce(t *testing.T) {
	content := journal.SegmentStart(1)
	for i := range 50 {
		content = journal.AppendRecord(content, uint64(i+1), 0, []byte("payload"))
		switch i % 5 {
		case 1:
			content[len(content)-1] ^= 1 // the payload
		case 3:
			content[len(content)-10] ^= 1 // the header
		}
	}
	dir := t.TempDir()
	const name = "00000000000000000001.seg"
	if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
		t.Fatal(err)
	}
	o := options(clocktest.New(start))
	log := logged(&o)
	j := open(t, dir, o)
	defer j.Close()
	if got := drain(t, j, 0); len(got) != 30 {
		t.Errorf("%d blocks came, want 30", len(got))
	}
	if st := j.Stats(); st.DroppedBlocks["corrupt"] != 20 || st.DroppedSamples["corrupt"] != 10 || st.SkippedBytes != 10*(journal.RecordHeaderSize+7) {
		t.Errorf("got %+v", st)
	}
	if n := errorsIn(log); n != 1 {
		t.Errorf("%d errors were logged:\n%s", n, log)
	}
	if names := kept(t, dir); !slices.Equal(names, []string{name + ".damaged"}) {
		t.Fatalf("kept %q", names)
	}
	if b, err := os.ReadFile(filepath.Join(dir, name+".damaged")); err != nil || !bytes.Equal(b, content) {
		t.Errorf("what is kept is not what was damaged (%v)", err)
	}
}

// TestEndOfTheLastSegment distinguishes an interrupted write, which was not
// accepted, from damage to accepted blocks.
func TestEndOfTheLastSegment(t *testing.T) {
	content, ends := smallSegment()
	last := ends[len(ends)-2] // where the last record begins
	f := func(name string, end []byte, lost int64, keeps bool) {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, "00000000000000000001.seg")
			if err := os.WriteFile(path, append(bytes.Clone(content[:last]), end...), 0o600); err != nil {
				t.Fatal(err)
			}
			j := open(t, dir, options(clocktest.New(start)))
			defer j.Close()
			if got := len(drain(t, j, 0)); got != len(ends)-1 {
				t.Errorf("%d blocks came", got)
			}
			j.Maintain()
			if st := j.Stats(); st.DroppedBlocks["corrupt"] != lost || st.SkippedBytes != int64(len(end)) {
				t.Errorf("got %+v, want %d lost", st, lost)
			}
			if got := len(kept(t, dir)) == 1; got != keeps {
				t.Errorf("the file is kept: %t", got)
			}
		})
	}
	flipped := bytes.Clone(content[last:])
	flipped[20] ^= 1
	f("half a header", content[last:last+30], 0, false)
	f("half a payload", content[last:len(content)-3], 0, false)
	f("zeros of a machine that crashed", make([]byte, 4096), 0, false)
	f("a header with another bit", flipped, 1, true)
	f("something else", bytes.Repeat([]byte("else"), 100), 1, true)
}

// TestLostBlocksThatWereDone checks that blocks that were sent are not counted
// as lost.
func TestLostBlocksThatWereDone(t *testing.T) {
	dir := t.TempDir()
	j := open(t, dir, options(clocktest.New(start)))
	var ends []int64
	for i := range 6 {
		put(t, j, 0, fmt.Sprint(i))
		ends = append(ends, j.Stats().Bytes)
	}
	for range 2 {
		b, _ := j.TryNext(0)
		j.Ack(b)
	}
	j.Maintain() // saves the cursor
	j.Kill()
	path := segments(t, dir)[0]
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range []int{0, 1, 3} { // their headers are damaged; 0 and 1 are done
		b[ends[i]-int64(journal.RecordHeaderSize)] ^= 1
	}
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	j = open(t, dir, options(clocktest.New(start)))
	defer j.Close()
	if diff := cmp.Diff([]string{"2", "4", "5"}, drain(t, j, 0)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if n := j.Stats().DroppedBlocks["corrupt"]; n != 1 {
		t.Errorf("%d blocks are counted as lost, want 1", n)
	}
}

// damaged fills a journal with n damaged segments, and delivers the intact
// blocks.
func damaged(t *testing.T, dir string, n int) {
	t.Helper()
	j := open(t, dir, options(clocktest.New(start)))
	big := strings.Repeat("x", 50<<10) // a segment each
	for i := range n {
		put(t, j, 0, fmt.Sprint(i, big))
	}
	for _, path := range filesOf(t, dir, ".seg") {
		f, err := os.OpenFile(filepath.Join(dir, path), os.O_RDWR, 0)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.WriteAt([]byte("y"), 1000); err != nil {
			t.Fatal(err)
		}
		f.Close()
	}
	if got := drain(t, j, 0); len(got) != 0 {
		t.Fatalf("%d damaged blocks came", len(got))
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestFewDamagedSegmentsAreKept(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "[odd]") // no pattern
	damaged(t, dir, 6)
	want := []string{"00000000000000000004.seg.damaged", "00000000000000000005.seg.damaged", "00000000000000000006.seg.damaged"}
	if diff := cmp.Diff(want, kept(t, dir)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	r, _ := inspect(t, dir)
	if diff := cmp.Diff(want, r.Aside); diff != "" {
		t.Errorf("Inspect (-want +got):\n%s", diff)
	}
}

// TestFullDiskTakesWhatIsKept checks that kept damaged files are removed before
// samples are.
func TestFullDiskTakesWhatIsKept(t *testing.T) {
	dir := t.TempDir()
	damaged(t, dir, 3)
	o := options(clocktest.New(start))
	o = o.WithFiles(func(path string, flag int) (journal.File, error) {
		f, err := journal.OpenOSFile(path, flag)
		return &faultyFile{File: f, write: func(b []byte, off int64) (int, error) {
			if len(kept(t, dir)) > 1 {
				return 0, &os.PathError{Op: "write", Path: path, Err: syscall.ENOSPC}
			}
			return f.WriteAt(b, off)
		}}, err
	})
	j := open(t, dir, o)
	defer j.Close()
	put(t, j, 0, "fits")
	if names := kept(t, dir); !slices.Equal(names, []string{"00000000000000000003.seg.damaged"}) {
		t.Errorf("kept %q", names)
	}
}

// TestFullDiskAtTheStart checks that a process that cannot write anything sends
// a backlog that fills the disk.
func TestFullDiskAtTheStart(t *testing.T) {
	dir := t.TempDir()
	j := open(t, dir, options(clocktest.New(start)))
	put(t, j, 0, "backlog")
	j.Kill()
	for _, name := range []string{"meta.json.tmp", "cursor.tmp"} { // nothing can be written there
		if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for _, node := range []string{"prometheus.remote_write.test", "prometheus.remote_write.renamed"} {
		o := options(clocktest.New(start))
		o.Owner.Node = node
		o = o.WithFiles(func(path string, flag int) (journal.File, error) {
			if flag&os.O_CREATE != 0 {
				return nil, syscall.ENOSPC
			}
			return journal.OpenOSFile(path, flag)
		})
		j = open(t, dir, o)
		if err := j.Append(block(0, "new")); err == nil {
			t.Error("a block was accepted by a full disk")
		}
		if got := drain(t, j, 0); !slices.Equal(got, []string{"backlog"}) {
			t.Errorf("%s: got %q", node, got)
		}
		j.Maintain()
		j.Kill()
		put := journal.AppendRecord(journal.SegmentStart(1), 1, 0, []byte("backlog"))
		if err := os.WriteFile(filepath.Join(dir, "00000000000000000001.seg"), put, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// TestFsync checks when written data is forced to the disk.
func TestFsync(t *testing.T) {
	f := func(policy journal.Fsync, want ...string) {
		t.Run(string(policy), func(t *testing.T) {
			var did []string
			dir := filepath.Join(t.TempDir(), "j")
			note := func(what string) { did = append(did, what) }
			o := options(clocktest.New(start))
			o.Limits.Fsync = policy
			o = o.WithFiles(func(path string, flag int) (journal.File, error) {
				f, err := journal.OpenOSFile(path, flag)
				return &faultyFile{
					File:  f,
					write: func(b []byte, off int64) (int, error) { note("write"); return f.WriteAt(b, off) },
					sync:  func() error { note("sync"); return f.Sync() },
				}, err
			}).WithSyncDir(func(path string) error { note("sync " + filepath.Base(path)); return nil })
			j := open(t, dir, o)
			put(t, j, 0, "a")
			note("accepted")
			put(t, j, 0, "b")
			note("accepted")
			j.Maintain()
			note("a second")
			j.Maintain()
			note("a second")
			put(t, j, 0, strings.Repeat("x", 60<<10)) // seals the segment
			put(t, j, 0, strings.Repeat("y", 60<<10))
			note("sealed")
			if err := j.Close(); err != nil {
				t.Error(err)
			}
			parent := "sync " + filepath.Base(filepath.Dir(dir))
			for i := range want {
				want[i] = strings.ReplaceAll(want[i], "sync parent", parent)
			}
			if diff := cmp.Diff(want, did); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	f(journal.FsyncNone,
		"write", "accepted", "write", "accepted", "a second", "a second", "write", "write", "sealed")
	f(journal.FsyncInterval,
		"sync j", "sync parent", "write", "accepted", "write", "accepted", "sync", "a second", "a second",
		"write", "sync", "sync j", "sync parent", "write", "sealed", "sync")
	f(journal.FsyncAlways,
		"sync j", "sync parent", "write", "sync", "accepted", "write", "sync", "accepted", "a second", "a second",
		"write", "sync", "sync j", "sync parent", "write", "sync", "sealed")
}

// TestFsyncChangesWhileOpen checks that a changed policy applies from the next
// block on, and that nothing is accepted if a directory cannot be synced.
func TestFsyncChangesWhileOpen(t *testing.T) {
	var syncs int
	var failing error
	o := options(clocktest.New(start))
	o = o.WithFiles(func(path string, flag int) (journal.File, error) {
		f, err := journal.OpenOSFile(path, flag)
		return &faultyFile{File: f, sync: func() error { syncs++; return f.Sync() }}, err
	}).WithSyncDir(func(string) error { return failing })
	j := openJournal(t, o)
	defer j.Close()
	put(t, j, 0, "a")
	if err := j.Configure(o.Owner, journal.Limits{Fsync: journal.FsyncAlways}); err != nil {
		t.Fatal(err)
	}
	if put(t, j, 0, "b"); syncs != 1 {
		t.Errorf("%d syncs before a block of the new policy was accepted", syncs)
	}
	failing = syscall.EIO
	big := strings.Repeat("x", 64<<10)
	if err := j.Append(block(0, big)); err == nil {
		t.Error("a block was accepted whose file may be gone after a crash")
	}
	failing = nil
	put(t, j, 0, big)
	if got := drain(t, j, 0); len(got) != 3 {
		t.Errorf("%d blocks came, want 3", len(got))
	}
}

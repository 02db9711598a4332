package journal_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-run/weir/engine/clock/clocktest"
	"github.com/weir-run/weir/engine/journal"
)

// acked returns the directory of a killed journal of five blocks, and the
// content of its cursor file. n blocks are done, and the cursor was saved after
// each of them.
func acked(t *testing.T, n int) (dir string, cursor []byte) {
	t.Helper()
	dir = t.TempDir()
	j := open(t, dir, options(clocktest.New(start)))
	for i := range 5 {
		put(t, j, 0, fmt.Sprint(i))
	}
	for range n {
		b, _ := j.TryNext(0)
		j.Ack(b)
		j.Maintain()
	}
	j.Kill()
	cursor, err := os.ReadFile(filepath.Join(dir, "cursor"))
	if err != nil {
		t.Fatal(err)
	}
	return dir, cursor
}

// again returns the blocks that a journal delivers after a restart with the
// given cursor file.
func again(t *testing.T, dir string, cursor []byte) []string {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, "cursor"), cursor, 0o600); err != nil {
		t.Fatal(err)
	}
	j := open(t, dir, options(clocktest.New(start)))
	defer j.Kill()
	return drain(t, j, 0)
}

// TestCursorSlots interrupts a save after and within each of its bytes: the
// previous slot is used.
func TestCursorSlots(t *testing.T) {
	for n := 2; n < 5; n++ {
		_, before := acked(t, n-1)
		_, after := acked(t, n)
		before = append(before, make([]byte, len(after)-len(before))...)
		for i := range after {
			if before[i] == after[i] {
				continue
			}
			dir, _ := acked(t, n)
			torn := append(bytes.Clone(after[:i]), before[i:]...)
			torn[i] ^= 0x15
			all := []string{"0", "1", "2", "3", "4"}
			if diff := cmp.Diff(all[n-1:], again(t, dir, torn)); diff != "" {
				t.Fatalf("save %d broken off at byte %d (-want +got):\n%s", n, i, diff)
			}
		}
		dir, _ := acked(t, n)
		if diff := cmp.Diff([]string{"0", "1", "2", "3", "4"}[n:], again(t, dir, after)); diff != "" {
			t.Errorf("save %d (-want +got):\n%s", n, diff)
		}
	}
}

// TestCursorOfVersion1 reads a cursor file without slots, as weir used to write
// it.
func TestCursorOfVersion1(t *testing.T) {
	f := func(version uint32, want ...string) {
		t.Helper()
		dir, cursor := acked(t, 1)
		shards := int(binary.LittleEndian.Uint32(cursor[12:]))
		old := binary.LittleEndian.AppendUint32([]byte("WEIRCUR\n"), version)
		old = binary.LittleEndian.AppendUint32(old, uint32(shards))
		old = binary.LittleEndian.AppendUint64(old, 6) // the next
		old = binary.LittleEndian.AppendUint64(old, 4) // of shard 0
		for range shards - 1 {
			old = binary.LittleEndian.AppendUint64(old, 6)
		}
		old = binary.LittleEndian.AppendUint32(old, crc32.Checksum(old, crc32.MakeTable(crc32.Castagnoli)))
		if diff := cmp.Diff(want, again(t, dir, old)); diff != "" {
			t.Errorf("version %d (-want +got):\n%s", version, diff)
		}
		kept, err := filepath.Glob(filepath.Join(dir, "unknown", "cursor*"))
		if err != nil || (len(kept) > 0) != (version > 2) {
			t.Errorf("version %d: %q are kept aside, %v", version, kept, err)
		}
	}
	f(1, "3", "4")
	f(3, "0", "1", "2", "3", "4") // it cannot be read
}

// TestCursorIsSavedInPlace: a save does not create a new file. A file that can
// no longer be written is created again.
func TestCursorIsSavedInPlace(t *testing.T) {
	dir := t.TempDir()
	j := open(t, dir, options(clocktest.New(start)))
	defer j.Close()
	path := filepath.Join(dir, "cursor")
	stat := func() os.FileInfo {
		t.Helper()
		fi, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		return fi
	}
	save := func() {
		t.Helper()
		put(t, j, 0, "x")
		b, _ := j.TryNext(0)
		j.Ack(b)
		j.Maintain()
	}
	save()
	first := stat()
	for range 3 {
		save()
	}
	if !os.SameFile(first, stat()) {
		t.Error("a save made another file")
	}
	was, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	j.Maintain() // nothing changed
	if now, err := os.ReadFile(path); err != nil || !bytes.Equal(was, now) {
		t.Errorf("it was written for nothing, %v", err)
	}
	j.CloseCursorFile()
	save()
	save()
	r, err := journal.Inspect(dir, nil)
	if err != nil || len(r.Problems) > 0 || r.CursorSaved.Before(first.ModTime().Add(-time.Minute)) {
		t.Errorf("got %+v, %v", r, err)
	}
}

package journalfile_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-run/weir/natives/loki/source/journal/internal/journalfile"
	"github.com/weir-run/weir/natives/loki/source/journal/internal/journalfile/journalfiletest"
)

var (
	sequence = journalfile.ID{1}
	boot     = journalfile.ID{2}
)

// at returns the cursor of entry number n, one second after the previous entry.
func at(n uint64) journalfile.Cursor {
	return journalfile.Cursor{Seqnum: n, BootID: boot, Monotonic: n * 1e6, Realtime: 1e15 + n*1e6}
}

func write(w *journalfiletest.Writer, from, to uint64) {
	for n := from; n <= to; n++ {
		w.Append(at(n), fmt.Sprintf("MESSAGE=%d", n), "_UNIT=a")
	}
}

func open(t *testing.T, dir string, o journalfile.Options) *journalfile.Reader {
	t.Helper()
	o.Roots, o.Now = []journalfile.Root{{Path: dir}}, time.Now
	r := journalfile.NewReader(o)
	t.Cleanup(func() { _ = r.Close() })
	return r
}

// messages reads all entries, and returns their joined messages and the last
// entry of each sequence.
func messages(t *testing.T, r *journalfile.Reader) (string, []journalfile.Cursor) {
	t.Helper()
	var out []string
	last := map[journalfile.ID]journalfile.Cursor{}
	for {
		e, err := r.Next()
		if err != nil {
			t.Fatal(err)
		}
		if e == nil {
			break
		}
		for _, f := range e.Fields {
			if f.Name == "MESSAGE" {
				out = append(out, f.Value)
			}
		}
		last[e.Cursor.SeqnumID] = e.Cursor
	}
	var cs []journalfile.Cursor
	for _, c := range last {
		cs = append(cs, c)
	}
	return strings.Join(out, " "), cs
}

func wantMessages(t *testing.T, r *journalfile.Reader, want string) []journalfile.Cursor {
	t.Helper()
	got, cs := messages(t, r)
	if got != want {
		t.Errorf("got messages %q, want %q", got, want)
	}
	return cs
}

func numbers(from, to int) string {
	var out []string
	for n := from; n <= to; n++ {
		out = append(out, fmt.Sprint(n))
	}
	return strings.Join(out, " ")
}

// TestFollow reads a file while it is written, rotated and deleted.
func TestFollow(t *testing.T) {
	for _, compact := range []bool{false, true} {
		dir := filepath.Join(t.TempDir(), "later")
		r := open(t, dir, journalfile.Options{})
		wantMessages(t, r, "")
		if len(r.Problems()) != 1 {
			t.Errorf("a directory that does not exist: got problems %v, want one", r.Problems())
		}
		path := filepath.Join(dir, sequence.String(), "system.journal")
		w := journalfiletest.Create(t, path, sequence, compact)
		write(w, 1, 40)
		wantMessages(t, r, numbers(1, 40))
		write(w, 41, 50)
		w.Archive(filepath.Join(dir, sequence.String(), "system@1.journal"))
		w2 := journalfiletest.Create(t, path, sequence, compact)
		write(w2, 51, 60)
		wantMessages(t, r, numbers(41, 60))
		write(w2, 61, 70)
		w2.Archive(filepath.Join(dir, sequence.String(), "system@2.journal"))
		w3 := journalfiletest.Create(t, path, sequence, compact)
		write(w3, 71, 72)
		// Not read yet, but already deleted.
		if err := os.Remove(filepath.Join(dir, sequence.String(), "system@2.journal")); err != nil {
			t.Fatal(err)
		}
		wantMessages(t, r, numbers(61, 72))
		wantMessages(t, r, "")
		if r.Open() != 1 || len(r.Problems()) != 0 || len(r.Losses()) != 0 {
			t.Errorf("%d files are open with problems %v and losses %v, want one and none", r.Open(), r.Problems(), r.Losses())
		}
	}
}

// TestPosition continues after a position: within a file, after a rotation and a
// reboot, after deleted entries, and after a journal that was removed.
func TestPosition(t *testing.T) {
	dir := t.TempDir()
	a := journalfiletest.Create(t, filepath.Join(dir, "system.journal"), sequence, false)
	write(a, 1, 10)
	r := open(t, dir, journalfile.Options{})
	cs := wantMessages(t, r, numbers(1, 10))
	write(a, 11, 20)
	a.Archive(filepath.Join(dir, "system@1.journal"))
	b := journalfiletest.Create(t, filepath.Join(dir, "system.journal"), sequence, true)
	write(b, 21, 22)
	// After a reboot, the clock is an hour behind.
	b.Append(journalfile.Cursor{Seqnum: 23, BootID: journalfile.ID{9}, Monotonic: 5, Realtime: at(23).Realtime - 3600e6}, "MESSAGE=23")
	after := open(t, dir, journalfile.Options{Position: cs})
	cs23 := wantMessages(t, after, numbers(11, 23))
	if ls := after.Losses(); len(ls) != 0 {
		t.Errorf("got losses %v, want none", ls)
	}
	wantMessages(t, open(t, dir, journalfile.Options{Position: cs23}), "")

	if err := os.Remove(filepath.Join(dir, "system@1.journal")); err != nil {
		t.Fatal(err)
	}
	vacuumed := open(t, dir, journalfile.Options{Position: cs})
	wantMessages(t, vacuumed, numbers(21, 23))
	if ls := vacuumed.Losses(); len(ls) != 1 || ls[0].Reason != journalfile.LossDeleted || ls[0].Entries != 10 {
		t.Errorf("got losses %v, want 10 entries that were deleted", ls)
	}

	other := at(99)
	other.SeqnumID = journalfile.ID{77}
	gone := open(t, dir, journalfile.Options{Position: []journalfile.Cursor{other}})
	wantMessages(t, gone, numbers(21, 23))
	if ls := gone.Losses(); len(ls) != 1 || ls[0].Reason != journalfile.LossDeleted {
		t.Errorf("got losses %v, want that the journal is gone", ls)
	}
}

// TestSince skips entries that are too old, even after the position.
func TestSince(t *testing.T) {
	dir := t.TempDir()
	w := journalfiletest.Create(t, filepath.Join(dir, "system.journal"), sequence, false)
	write(w, 1, 30)
	since := time.UnixMicro(int64(at(26).Realtime))
	wantMessages(t, open(t, dir, journalfile.Options{Since: since}), numbers(26, 30))
	c := at(3)
	c.SeqnumID = sequence
	r := open(t, dir, journalfile.Options{Since: since, Position: []journalfile.Cursor{c}})
	wantMessages(t, r, numbers(26, 30))
	if ls := r.Losses(); len(ls) != 0 {
		t.Errorf("got losses %v, want none", ls)
	}
}

// TestForeign continues after the only cursor of another program: by number in
// its sequence, by time in the other sequences.
func TestForeign(t *testing.T) {
	dir := t.TempDir()
	write(journalfiletest.Create(t, filepath.Join(dir, "system.journal"), sequence, false), 1, 5)
	remote := journalfiletest.Create(t, filepath.Join(dir, "remote.journal"), journalfile.ID{3}, false)
	for n := uint64(1); n <= 5; n++ {
		c := at(n)
		c.BootID = journalfile.ID{4}
		remote.Append(c, fmt.Sprintf("MESSAGE=r%d", n))
	}
	c := at(3)
	c.SeqnumID = sequence
	o := journalfile.Options{Foreign: &c, Position: []journalfile.Cursor{c}}
	got, _ := messages(t, open(t, dir, o))
	if got != "r3 4 r4 5 r5" && got != "r3 r4 4 r5 5" && got != "r3 4 r4 r5 5" && got != "r3 r4 4 5 r5" {
		t.Errorf("got %q, want 4 and 5 of the first journal and r3 to r5 of the other one", got)
	}
}

// TestSequence merges files of one journald by number, and never returns an entry
// before one with a lower number, although files are checked one after the other.
func TestSequence(t *testing.T) {
	dir := t.TempDir()
	system := journalfiletest.Create(t, filepath.Join(dir, "system.journal"), sequence, false)
	user := journalfiletest.Create(t, filepath.Join(dir, "user-1000.journal"), sequence, true)
	for n := uint64(1); n <= 50; n++ {
		w := system
		if n%3 == 0 {
			w = user
		}
		write(w, n, n)
	}
	r := open(t, dir, journalfile.Options{})
	wantMessages(t, r, numbers(1, 50))
	write(user, 51, 51)
	write(system, 52, 52)
	wantMessages(t, r, "51 52")
}

// TestFlush reads entries that journald has copied from /run to /var only once.
func TestFlush(t *testing.T) {
	dir := t.TempDir()
	run := journalfiletest.Create(t, filepath.Join(dir, "run.journal"), sequence, false)
	write(run, 1, 10)
	r := open(t, dir, journalfile.Options{})
	cs := wantMessages(t, r, numbers(1, 10))
	for _, id := range []journalfile.ID{sequence, {5}} { // systemd has done both
		flushed := journalfiletest.Create(t, filepath.Join(dir, id.String()[:2]+".journal"), id, false)
		for n := uint64(1); n <= 12; n++ {
			c := at(n)
			c.Seqnum = 10 + n
			flushed.Append(c, fmt.Sprintf("MESSAGE=%d", n), "_UNIT=a")
		}
		wantMessages(t, open(t, dir, journalfile.Options{Position: cs}), "11 12")
		if err := os.Remove(filepath.Join(dir, id.String()[:2]+".journal")); err != nil {
			t.Fatal(err)
		}
	}
}

// TestFlushMeanwhile reads entries once while journald copies them, whether they
// had been read before or not.
func TestFlushMeanwhile(t *testing.T) {
	volatile, persistent := t.TempDir(), t.TempDir()
	o := journalfile.Options{Roots: []journalfile.Root{{Path: volatile, Volatile: true}, {Path: persistent}}, Now: time.Now}
	r := journalfile.NewReader(o)
	t.Cleanup(func() { _ = r.Close() })
	write(journalfiletest.Create(t, filepath.Join(volatile, "system.journal"), sequence, false), 1, 10)
	wantMessages(t, r, numbers(1, 10))
	flushed := journalfiletest.Create(t, filepath.Join(persistent, "system.journal"), journalfile.ID{5}, true)
	write(flushed, 1, 4)
	wantMessages(t, r, "")
	write(flushed, 5, 10)
	if err := os.Remove(filepath.Join(volatile, "system.journal")); err != nil {
		t.Fatal(err)
	}
	write(flushed, 11, 12)
	cs := wantMessages(t, r, "11 12")
	o.Position = cs
	after := journalfile.NewReader(o)
	t.Cleanup(func() { _ = after.Close() })
	wantMessages(t, after, "")
}

// TestDamage skips damaged entries, fields and arrays, and continues with other
// files.
func TestDamage(t *testing.T) {
	type damage func(b []byte) []byte
	find := func(b []byte, kind byte, nth int) int {
		for i := 272; i < len(b); {
			if b[i] == kind {
				if nth--; nth == 0 {
					return i
				}
			}
			size := int(b[i+8]) | int(b[i+9])<<8
			i += (size + 7) &^ 7
		}
		t.Fatalf("no object %d", kind)
		return 0
	}
	f := func(name string, d damage, want string, lost uint64) {
		t.Helper()
		dir := t.TempDir()
		path := filepath.Join(dir, "a.journal")
		write(journalfiletest.Create(t, path, sequence, false), 1, 20)
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, d(b), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, time.Time{}, time.Now().Add(-time.Hour)); err != nil {
			t.Fatal(err)
		}
		write(journalfiletest.Create(t, filepath.Join(dir, "b.journal"), sequence, false), 21, 22)
		r := open(t, dir, journalfile.Options{})
		got, _ := messages(t, r)
		if got != want {
			t.Errorf("%s: got messages %q, want %q", name, got, want)
		}
		var n uint64
		for _, l := range r.Losses() {
			n += l.Entries
		}
		if n != lost {
			t.Errorf("%s: %d entries are reported as lost, want %d", name, n, lost)
		}
	}
	entry := func(n int) string {
		return strings.TrimSpace(strings.Replace(" "+numbers(1, 22)+" ", fmt.Sprintf(" %d ", n), " ", 1))
	}
	f("the type of an entry", func(b []byte) []byte { b[find(b, 3, 5)] = 9; return b }, entry(5), 1)
	f("the offset of an entry", func(b []byte) []byte { b[find(b, 6, 1)+24] = 3; return b }, entry(1), 1)
	f("the size of an entry", func(b []byte) []byte { b[find(b, 3, 5)+15] = 9; return b }, entry(5), 1)
	f("a field", func(b []byte) []byte { b[find(b, 1, 8)+8] = 1; return b }, entry(7), 0)
	f("a loop of arrays", func(b []byte) []byte { i := find(b, 6, 2); copy(b[i+16:], b[176:184]); return b },
		numbers(1, 12)+" 21 22", 8)
	f("an array", func(b []byte) []byte { b[find(b, 6, 2)] = 1; return b }, numbers(1, 4)+" 21 22", 16)
	f("a truncated file", func(b []byte) []byte { return b[:find(b, 6, 3)] }, numbers(1, 12)+" 21 22", 8)
	f("a signature", func(b []byte) []byte { b[0] = 'x'; return b }, "21 22", 0)
	f("an unknown feature", func(b []byte) []byte { b[12] = 1 << 6; return b }, "21 22", 0)
	f("an unknown compression", func(b []byte) []byte { b[find(b, 1, 8)+1] = 64; return b }, entry(7), 0)
}

// TestCopy waits until a file that is being copied is complete.
func TestCopy(t *testing.T) {
	dir, from := t.TempDir(), filepath.Join(t.TempDir(), "from")
	write(journalfiletest.Create(t, from, sequence, false), 1, 20)
	b, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.Create(filepath.Join(dir, "copy.journal"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	r := open(t, dir, journalfile.Options{})
	for _, part := range [][]byte{nil, b[:100], b[100:1000], b[1000:]} {
		wantMessages(t, r, "")
		if _, err := f.Write(part); err != nil {
			t.Fatal(err)
		}
	}
	wantMessages(t, r, numbers(1, 20))
	if ls := r.Losses(); len(ls) != 0 {
		t.Errorf("got losses %v, want none", ls)
	}
}

func TestParseCursor(t *testing.T) {
	const s = "s=2c017697930f42e88548cc1155e0aa47;i=2a932;b=0123456789abcdef0123456789abcdef;m=bfb0058;t=660dc7137b6aa;x=b1767811bf8481f"
	c, err := journalfile.ParseCursor(s)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(s, c.String()); d != "" {
		t.Errorf("cursor (-want +got):\n%s", d)
	}
	for _, bad := range []string{"", "s=1;i=2", "x", strings.Replace(s, "i=", "i=q", 1), strings.Replace(s, "t=", "u=", 1)} {
		if c, err := journalfile.ParseCursor(bad); err == nil {
			t.Errorf("%q is parsed as %s, want an error", bad, c)
		}
	}
}

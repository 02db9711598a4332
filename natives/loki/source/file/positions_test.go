package file

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var when = time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC)

func now() time.Time { return when }

// known returns copies of all positions.
func (s *positions) known() []position {
	var out []position
	for _, p := range s.selectPositions(func(*position) bool { return true }) {
		c := *p
		c.open = append([]span(nil), p.open...)
		out = append(out, c)
	}
	return out
}

var asValues = cmp.AllowUnexported(position{}, span{}, mark{}, identity{})

func mustOpen(t testing.TB, dir string) *positions {
	t.Helper()
	s, _, damage, err := openPositions(dir, "boot", now, func(err error) {
		if err != nil {
			t.Error(err)
		}
	})
	if damage != nil || err != nil {
		t.Fatal(damage, err)
	}
	return s
}

// history makes several changes. It returns the log, and the size of the log and
// the positions after each change.
func history(t testing.TB, dir string) (log []byte, ends []int, states [][]position) {
	s := mustOpen(t, dir)
	a := &position{labels: `{job="j"}`, path: "/a", real: "/b", id: identity{1, 1 << 60}, read: 3}
	b := &position{labels: "{}", path: "/c"}
	for _, change := range []func(){
		func() {},
		func() { s.add(a) },
		func() { s.add(b) },
		func() { s.recordHead(a, markOf([]byte("abc"))); s.save() },
		func() { s.recordSent(a, span{3, 9, 1e18, 2}, markOf([]byte("x")), 5) },
		func() { s.recordSent(a, span{9, 20, 2e18, 3}, markOf([]byte("y")), 6) },
		func() { s.recordSent(b, span{0, 1, 3e18, 1}, mark{}, 7) },
		func() { s.recordDone(a, 9); s.save() },
		func() { s.change(b, func(p *position) { p.finished = true }) },
		func() { s.recordDone(a, 3); s.save() },
		func() { s.recordDone(b, 77); s.recordDone(b, 0); s.save() },
		func() { s.remove(a) },
	} {
		change()
		log, err := os.ReadFile(filepath.Join(dir, positionsName))
		if err != nil {
			t.Fatal(err)
		}
		ends, states = append(ends, len(log)), append(states, s.known())
	}
	if err := s.close(); err != nil {
		t.Fatal(err)
	}
	log, err := os.ReadFile(filepath.Join(dir, positionsName))
	if err != nil {
		t.Fatal(err)
	}
	return log, ends, states
}

// TestCutLog: if a kill truncates the log anywhere, the positions are those
// before the first incomplete change.
func TestCutLog(t *testing.T) {
	log, ends, states := history(t, t.TempDir())
	for n := range len(log) + 1 {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, positionsName), log[:n], 0o600); err != nil {
			t.Fatal(err)
		}
		s := mustOpen(t, dir)
		var want []position
		for i, end := range ends {
			if end <= n {
				want = states[i]
			}
		}
		if diff := cmp.Diff(want, s.known(), asValues); diff != "" {
			t.Fatalf("cut at %d of %d (-want +got):\n%s", n, len(log), diff)
		}
		again := s.known()
		if err := s.close(); err != nil {
			t.Fatal(err)
		}
		s = mustOpen(t, dir)
		if diff := cmp.Diff(again, s.known(), asValues); diff != "" {
			t.Fatalf("cut at %d, opened again (-first +second):\n%s", n, diff)
		}
		if err := s.close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestDamagedLog: a log with a damaged byte is reported and kept, and the records
// before it are used.
func TestDamagedLog(t *testing.T) {
	log, ends, _ := history(t, t.TempDir())
	for n := range ends[5] {
		dir := t.TempDir()
		broken := bytes.Clone(log)
		broken[n] ^= 0x55
		if err := os.WriteFile(filepath.Join(dir, positionsName), broken, 0o600); err != nil {
			t.Fatal(err)
		}
		s, found, damage, err := openPositions(dir, "boot", now, func(error) {})
		if !found || damage == nil || err != nil {
			t.Fatalf("byte %d: got found %v, damage %v, error %v", n, found, damage, err)
		}
		kept, err := filepath.Glob(filepath.Join(dir, "*.damaged.*"))
		if err != nil || len(kept) != 1 {
			t.Errorf("got %q, %v; want the damaged log to be kept", kept, err)
		}
		if err := s.close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestFailingDisk: if the log cannot be written, positions still change, and a
// later log contains everything.
func TestFailingDisk(t *testing.T) {
	dir := t.TempDir()
	var problems []error
	at := when
	s, _, _, err := openPositions(dir, "boot", func() time.Time { return at }, func(err error) { problems = append(problems, err) })
	if err != nil {
		t.Fatal(err)
	}
	p := &position{path: "/a"}
	s.add(p)
	// Creating a file fails if a directory has its path, and so does writing to a
	// closed file.
	if err := os.Mkdir(s.path+".tmp", 0o755); err != nil {
		t.Fatal(err)
	}
	if err := s.f.Close(); err != nil {
		t.Fatal(err)
	}
	s.recordSent(p, span{0, 5, 1, 1}, mark{}, 1)
	s.recordSent(p, span{5, 9, 2, 1}, mark{}, 1)
	at = at.Add(2 * time.Second)
	s.save()
	if len(problems) != 2 || errors.Join(problems...) == nil {
		t.Errorf("got %v, want a failed write and a failed replacement", problems)
	}
	if err := os.Remove(s.path + ".tmp"); err != nil {
		t.Fatal(err)
	}
	s.recordDone(p, 0)
	at = at.Add(2 * time.Second)
	s.save()
	if len(problems) != 3 || problems[2] != nil {
		t.Errorf("got %v, want it to work again", problems)
	}
	want := s.known()
	if err := s.close(); err != nil {
		t.Fatal(err)
	}
	s = mustOpen(t, dir)
	if diff := cmp.Diff(want, s.known(), asValues); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if err := s.close(); err != nil {
		t.Fatal(err)
	}
}

// TestLogStaysSmall checks that the log is replaced when most of it is old.
func TestLogStaysSmall(t *testing.T) {
	s := mustOpen(t, t.TempDir())
	p := &position{path: "/a"}
	s.add(p)
	for i := range int64(60_000) {
		s.recordSent(p, span{i, i + 1, 1e18 + i, 1}, mark{}, 1)
		s.recordDone(p, i)
	}
	fi, err := os.Stat(s.path)
	if err != nil {
		t.Fatal(err)
	}
	if fi.Size() > 2*compactAfter {
		t.Errorf("the log has %d bytes", fi.Size())
	}
	want := s.known()
	dir := filepath.Dir(s.path)
	if err := s.close(); err != nil {
		t.Fatal(err)
	}
	s = mustOpen(t, dir)
	for i := range want {
		want[i].open = nil // the last range was done
	}
	if diff := cmp.Diff(want, s.known(), asValues); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if err := s.close(); err != nil {
		t.Fatal(err)
	}
}

// FuzzLoad: all bytes are either loaded or refused, and loaded positions are
// written and read unchanged.
func FuzzLoad(f *testing.F) {
	log, ends, _ := history(f, f.TempDir())
	for _, end := range ends {
		f.Add(log[:end])
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		s := &positions{all: map[uint64]*position{}}
		_ = s.load(b)
		out := appendHeader(nil)
		for _, p := range s.selectPositions(func(*position) bool { return true }) {
			out = appendPosition(out, p)
		}
		again := &positions{all: map[uint64]*position{}}
		if err := again.load(out); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(s.known(), again.known(), asValues, cmp.Comparer(func(a, b []span) bool { return len(a) == len(b) })); diff != "" {
			t.Errorf("(-first +again):\n%s", diff)
		}
	})
}

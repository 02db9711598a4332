package versions

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func newStore(t *testing.T) (*Store, *bytes.Buffer) {
	t.Helper()
	var log bytes.Buffer
	return Open(t.TempDir(), slog.New(slog.NewTextHandler(&log, nil))), &log
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

var one = Version{ID: "1", Sources: []Source{{"a/x.lua", "one"}, {"lib/y.json", "{}"}}, Test: "a/x_test.lua"}

func TestRecord(t *testing.T) {
	s, log := newStore(t)
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	s.now = func() time.Time { return now }
	if got := s.Get("a.x", "/s"); got.Passed != nil || got.Rejected != nil {
		t.Errorf("got %+v of an empty store", got)
	}
	must(t, s.Reject("a.x", "/s", Rejection{ID: "0", Reason: "no"}))
	must(t, s.Pass("a.x", "/s", one))
	must(t, s.Pass("a.x", "/other", Version{ID: "9", Sources: one.Sources[:1]}))
	must(t, s.Reject("a.x", "/s", Rejection{ID: "2", Reason: "still no"}))
	passed := one
	passed.Time = now
	want := Record{Script: "a.x", Dir: "/s", Passed: &passed, Rejected: &Rejection{ID: "2", Time: now, Reason: "still no"}}
	if diff := cmp.Diff(want, Look(filepath.Dir(s.dir)).Get("a.x", "/s")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}

	// The version that passes again ends the rejection, and keeps its time.
	must(t, s.Pass("a.x", "/s", one))
	if got := s.Get("a.x", "/s"); got.Rejected != nil || got.Passed.ID != "1" {
		t.Errorf("got %+v", got)
	}
	for path, mode := range map[string]os.FileMode{s.dir: 0o700, s.path("a.x", "/s"): 0o600} {
		info, err := os.Stat(path)
		must(t, err)
		if got := info.Mode().Perm(); got != mode {
			t.Errorf("%s has mode %o, want %o", path, got, mode)
		}
	}
	if log.Len() > 0 {
		t.Errorf("logged %s", log)
	}
}

func TestDamaged(t *testing.T) {
	f := func(want string, damage func(b []byte) []byte) {
		t.Helper()
		s, log := newStore(t)
		must(t, s.Pass("a.x", "/s", one))
		path := s.path("a.x", "/s")
		b, err := os.ReadFile(path)
		must(t, err)
		must(t, os.WriteFile(path, damage(b), 0o600))
		if got := Look(filepath.Dir(s.dir)).Get("a.x", "/s"); got.Passed != nil {
			t.Errorf("%s: got %+v", want, got)
		}
		if got := s.Get("a.x", "/s"); got.Passed != nil {
			t.Errorf("%s: got %+v", want, got)
		}
		if !strings.Contains(log.String(), want) {
			t.Errorf("logged %q, want %q", log, want)
		}
		log.Reset()
		if s.Get("a.x", "/s"); log.Len() > 0 {
			t.Errorf("%s: logged again", want)
		}
		must(t, s.Pass("a.x", "/s", one)) // it can be stored again
		if got := s.Get("a.x", "/s"); got.Passed == nil {
			t.Errorf("%s: the new version is not there", want)
		}
	}
	f("its checksum is wrong", func(b []byte) []byte { return bytes.Replace(b, []byte("one"), []byte("two"), 1) })
	f("its checksum is wrong", func(b []byte) []byte { return b[:len(b)-1] })
	f("it is damaged", func(b []byte) []byte { return nil })
	f("it is damaged", func(b []byte) []byte { return bytes.ToUpper(b) })
	f("its format is 7, not 1", func(b []byte) []byte { b[len(magic)] = 7; return b })
}

func TestNotWritable(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "file")
	must(t, os.WriteFile(dir, nil, 0o600))
	s := Open(dir, slog.New(slog.DiscardHandler))
	for _, err := range []error{s.Pass("a.x", "/s", one), s.Reject("a.x", "/s", Rejection{ID: "2"})} {
		if err == nil || !strings.Contains(err.Error(), "cannot keep the tested version of a.x: ") {
			t.Errorf("got %v", err)
		}
	}
	s.Sweep()
	s, _ = newStore(t)
	if err := s.Pass("a.x", "/s", Version{ID: "1", Sources: []Source{{"a/x.lua", "\xff"}}}); err == nil || !strings.Contains(err.Error(), "a/x.lua is not UTF-8") {
		t.Errorf("got %v", err)
	}
	huge := Version{ID: "1", Sources: []Source{{"a/x.lua", strings.Repeat("x", maxFile)}}}
	if err := s.Pass("a.x", "/s", huge); err == nil || !strings.Contains(err.Error(), "larger than 16 MiB") {
		t.Errorf("got %v", err)
	}
}

func TestSweep(t *testing.T) {
	s, _ := newStore(t)
	now := time.Now()
	for _, script := range []string{"a.used", "a.unused", "a.recent"} {
		must(t, s.Pass(script, "/s", one))
	}
	must(t, os.WriteFile(filepath.Join(s.dir, "x"+suffix+tmp), nil, 0o600))
	must(t, os.WriteFile(filepath.Join(s.dir, "x"+suffix+aside), nil, 0o600))
	old := now.Add(-maxUnused - time.Hour)
	for _, path := range []string{s.path("a.used", "/s"), s.path("a.unused", "/s"), filepath.Join(s.dir, "x"+suffix+aside)} {
		must(t, os.Chtimes(path, old, old))
	}
	next := Open(filepath.Dir(s.dir), slog.New(slog.DiscardHandler)) // a process that ran for long leaves old files
	must(t, next.Pass("a.used", "/s", one))
	next.Sweep()
	var got []string
	entries, err := os.ReadDir(s.dir)
	must(t, err)
	for _, e := range entries {
		got = append(got, strings.SplitN(e.Name(), "-", 2)[0])
	}
	if diff := cmp.Diff([]string{"a.recent", "a.used"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for i := range maxFiles + 5 {
		must(t, os.WriteFile(filepath.Join(s.dir, string(rune('a'+i%26))+strings.Repeat("x", i/26)+suffix), nil, 0o600))
	}
	next.Sweep()
	if entries, err = os.ReadDir(s.dir); err != nil || len(entries) > maxFiles {
		t.Errorf("%d files are left, %v; want at most %d", len(entries), err, maxFiles)
	}
	if next.Get("a.used", "/s").Passed == nil {
		t.Error("a file in use was removed")
	}
}

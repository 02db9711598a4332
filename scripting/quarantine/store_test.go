package quarantine

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-run/weir/engine/clock/clocktest"
	"github.com/weir-run/weir/engine/files"
)

var start = time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC)

type harness struct {
	t     *testing.T
	dir   string
	clock *clocktest.Fake
	s     *Store
	lost  map[string]int
}

func newHarness(t *testing.T) *harness {
	l := &harness{t: t, dir: filepath.Join(t.TempDir(), "q"), clock: clocktest.New(start), lost: map[string]int{}}
	l.reopen()
	return l
}

// reopen is what the next process does.
func (l *harness) reopen() {
	l.s = New(l.dir, l.clock, slog.New(slog.DiscardHandler), func(reason string, e Entry) { l.lost[reason] += e.Records })
}

func (l *harness) put(data string) uint64 {
	l.t.Helper()
	id, err := l.s.Put(Entry{Node: "a.b.c", Records: len(data), Text: "failed", Error: []byte(`{"line":1}`)}, []byte(data))
	if err != nil {
		l.t.Fatal(err)
	}
	return id
}

// want compares the data of all entries, as the store and as anybody reads it.
func (l *harness) want(want ...string) {
	l.t.Helper()
	ids, err := l.s.IDs()
	if err != nil {
		l.t.Fatal(err)
	}
	var got []string
	for _, id := range ids {
		_, data, err := l.s.Read(id)
		if err != nil {
			l.t.Error(err)
		}
		got = append(got, string(data))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		l.t.Errorf("entries (-want +got):\n%s", diff)
	}
	list, err := List(l.dir)
	if err != nil {
		l.t.Fatal(err)
	}
	if len(list.Entries) != len(want) {
		l.t.Errorf("%d entries are listed, want %d", len(list.Entries), len(want))
	}
}

func TestPutReadDrop(t *testing.T) {
	l := newHarness(t)
	l.want()
	a := l.put("one\nNaN(0x7ff8000000000000)\n")
	l.clock.Advance(time.Second)
	b := l.put("two")
	e, data, err := Read(l.dir, b)
	if err != nil || string(data) != "two" {
		t.Fatalf("got %q, %v", data, err)
	}
	want := Entry{ID: b, Node: "a.b.c", Records: 3, Text: "failed", Error: []byte(`{"line":1}`), Time: start.Add(time.Second), Size: e.Size}
	if diff := cmp.Diff(want, e); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	l.reopen()
	l.want("one\nNaN(0x7ff8000000000000)\n", "two")
	if err := l.s.Drop(a, 99); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "there is no entry 99") {
		t.Errorf("got %v", err)
	}
	l.want("two")
	if c := l.put("three"); c <= b {
		t.Errorf("ID %d after %d", c, b)
	}
	if n, size := l.s.Size(); n != 2 || size == 0 {
		t.Errorf("got %d entries of %d bytes", n, size)
	}
	if err := l.s.Drop(b, b+1); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(l.dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("an empty quarantine leaves its directory: %v", err)
	}
}

func TestBounds(t *testing.T) {
	l := newHarness(t)
	l.s.Configure(Limits{MaxSize: 3000, MaxAge: time.Hour})
	for range 5 {
		l.put(strings.Repeat("x", 1000))
	}
	l.want(strings.Repeat("x", 1000), strings.Repeat("x", 1000))
	if l.lost[LostSize] != 3000 {
		t.Errorf("lost %v, want 3000 by size", l.lost)
	}
	// The newest stays whatever its size.
	l.put(strings.Repeat("y", 5000))
	l.want(strings.Repeat("y", 5000))
	l.s.Configure(Limits{MaxSize: 8000, MaxAge: time.Hour})
	l.clock.Advance(59 * time.Minute)
	l.s.Sweep()
	l.put("z")
	l.clock.Advance(2 * time.Minute)
	l.s.Sweep()
	l.want("z")
	if l.lost[LostAge] != 5000 {
		t.Errorf("lost %v, want 5000 by age", l.lost)
	}
}

// A process that dies while it writes leaves nothing that counts.
func TestUnfinished(t *testing.T) {
	l := newHarness(t)
	l.put("one")
	left := filepath.Join(l.dir, fileName(2)+files.Unfinished)
	if err := os.WriteFile(left, []byte("weirq"), 0o600); err != nil {
		t.Fatal(err)
	}
	l.reopen()
	l.want("one")
	if _, err := os.Stat(left); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the unfinished file is still there: %v", err)
	}
}

func TestDamaged(t *testing.T) {
	spoil := map[string]func(b []byte) []byte{
		"cut off":   func(b []byte) []byte { return b[:len(b)-1] },
		"no header": func(b []byte) []byte { return b[:5] },
		"magic":     func(b []byte) []byte { b[0] = 'x'; return b },
		"version":   func(b []byte) []byte { b[len(magic)] = 9; return b },
		"data":      func(b []byte) []byte { b[len(b)-6]++; return b },
		"lengths":   func(b []byte) []byte { b[len(magic)+8]++; return b },
	}
	for name, f := range spoil {
		t.Run(name, func(t *testing.T) {
			l := newHarness(t)
			id := l.put("one")
			l.put("two")
			path := filepath.Join(l.dir, fileName(id))
			b, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, f(b), 0o600); err != nil {
				t.Fatal(err)
			}
			l.reopen()
			if _, _, err := l.s.Read(id); err == nil {
				t.Error("it can be read")
			}
			l.want("two")
			if (l.lost[LostDamaged] > 0) != (name == "data") { // whose head can be read still
				t.Errorf("lost %v", l.lost)
			}
			list, err := List(l.dir)
			if err != nil || len(list.Aside) != 1 || list.Aside[0] != fileName(id)+aside {
				t.Errorf("got %v aside, %v", list.Aside, err)
			}
		})
	}
}

// A write that fails stores nothing, and the next one is as good as ever.
func TestFullDisk(t *testing.T) {
	l := newHarness(t)
	l.put("one")
	full := errors.New("no space left on device")
	l.s.write = func(path string, b []byte) error { return full }
	if _, err := l.s.Put(Entry{}, []byte("two")); !errors.Is(err, full) || err.Error() != "cannot put a batch into quarantine: no space left on device" {
		t.Errorf("got %v", err)
	}
	l.want("one")
	l.s.write = writeFile
	l.put("three")
	l.want("one", "three")
	// A place that cannot be made.
	other := New(filepath.Join(l.dir, fileName(1), "x"), l.clock, slog.New(slog.DiscardHandler), nil)
	if _, err := other.Put(Entry{}, nil); err == nil {
		t.Error("it stores below a file")
	}
}

func TestNodes(t *testing.T) {
	storage := t.TempDir()
	for _, node := range []string{"http.paths.default", "mod.x/http.paths.y"} {
		s := New(Dir(storage, node), clocktest.New(start), slog.New(slog.DiscardHandler), nil)
		if _, err := s.Put(Entry{Node: node}, nil); err != nil {
			t.Fatal(err)
		}
	}
	got, err := Nodes(storage)
	if diff := cmp.Diff([]string{"http.paths.default", "mod.x/http.paths.y"}, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	if got, err := Nodes(t.TempDir()); len(got) > 0 || err != nil {
		t.Errorf("got %v, %v", got, err)
	}
}

func FuzzDecode(f *testing.F) {
	b, err := encode(&Entry{ID: 1, Node: "a"}, []byte("data"))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Add(b[:headerSize])
	f.Fuzz(func(t *testing.T, b []byte) {
		e, data, err := decode(b)
		if err != nil {
			return
		}
		e.Size = 0
		again, err := encode(&e, data)
		if err != nil {
			t.Fatal(err)
		}
		if _, got, err := decode(again); err != nil || string(got) != string(data) {
			t.Fatal(fmt.Errorf("%q became %q: %v", data, got, err))
		}
	})
}

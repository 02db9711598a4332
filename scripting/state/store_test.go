package state_test

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-run/weir/scripting/state"
)

// open loads the store in a directory and commits declarations.
func open(t *testing.T, o state.Options, version int64, decls ...state.Decl) (*state.Store, *state.Plan) {
	t.Helper()
	o.Node = "test.node.default"
	if o.Logger == nil {
		o.Logger = quiet
	}
	s := state.New(o)
	if err := s.Load(); err != nil {
		t.Fatal(err)
	}
	p := s.Plan(decls, version, false, 0)
	p.Commit(0)
	return s, p
}

// content returns the content of a store as text.
func content(s *state.Store) string {
	var b strings.Builder
	for _, c := range s.All() {
		fmt.Fprintf(&b, "%s:", c.Decl().Name)
		for _, e := range c.Entries(1<<30, 0) {
			key := e.Key
			if c.Decl().Kind == state.Queue {
				key = ""
			}
			fmt.Fprintf(&b, " %s=%v%s", key, e.Value.Float(), e.Value.Data)
		}
		b.WriteString("\n")
	}
	return b.String()
}

var everyKind = []state.Decl{
	decl("counter", state.Counter, persistent), decl("map", state.Map, persistent), decl("set", state.Set, persistent),
	decl("lru", state.LRU, persistent), decl("queue", state.Queue, persistent), decl("memory", state.Counter),
}

func fillAll(s *state.Store, round int) {
	c := s.All()
	c[0].Add("a", 1, 0)
	c[0].Add(fmt.Sprint(round), 1, 0)
	c[1].Set("k", str(strings.Repeat("v", round)), 0)
	c[2].Insert(fmt.Sprint(round), 0)
	c[2].Delete(fmt.Sprint(round-2), 0)
	c[3].Set("k", state.Value{Kind: state.Composite, Data: "xyz"}, 0)
	c[4].Push(num(float64(round)), 0)
	c[4].Push(str("x"), 0)
	c[4].Pop(0)
	c[5].Add("a", 1, 0)
	if round == 3 {
		c[1].Clear()
		c[1].Set("after", num(1), 0)
	}
}

// TestPersistent: after a kill, flushed changes are there, and unflushed ones
// are not.
func TestPersistent(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state", "n")
	s, _ := open(t, state.Options{Dir: dir}, 1, everyKind...)
	for round := range 6 {
		fillAll(s, round)
		s.Flush()
		if round == 2 {
			s.Maintain()
		}
	}
	want := strings.Replace(content(s), "memory: a=6", "memory:", 1)
	s.All()[0].Add("lost", 1, 0)
	s.Kill()

	s, _ = open(t, state.Options{Dir: dir}, 1, everyKind...)
	if diff := cmp.Diff(want, content(s)); diff != "" {
		t.Errorf("state after a kill (-want +got):\n%s", diff)
	}
	// The same file is continued, and a queue keeps its order.
	fillAll(s, 6)
	s.Flush()
	want = strings.Replace(content(s), "memory: a=1", "memory:", 1)
	s.Kill()
	s, _ = open(t, state.Options{Dir: dir}, 1, everyKind...)
	if diff := cmp.Diff(want, content(s)); diff != "" {
		t.Errorf("state after another kill (-want +got):\n%s", diff)
	}
	s.Close()
	if n := len(files(t, dir)); n != 1 {
		t.Errorf("%d files are left", n)
	}
}

func files(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// TestBrokenOff cuts a file at every byte: the result is the state after some
// flush, and contains at least all complete records.
func TestBrokenOff(t *testing.T) {
	dir := t.TempDir()
	s, p := open(t, state.Options{Dir: dir}, 1, decl("n", state.Counter, persistent))
	s.Flush()
	path := filepath.Join(dir, files(t, dir)[0])
	states := map[string]int64{}
	for range 5 {
		p.Collections[0].Add("a", 1, 0)
		p.Collections[0].Add("b", 1, 0)
		s.Flush()
		fi, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		states[content(s)] = fi.Size()
	}
	s.Kill()
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	states["n:\n"] = 0
	for cut := range len(whole) + 1 {
		for _, tail := range []string{"", "\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00"} {
			if tail != "" && cut%8 > 0 {
				continue // a few will do
			}
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, filepath.Base(path)), append(slices.Clone(whole[:cut]), tail...), 0o600); err != nil {
				t.Fatal(err)
			}
			o := state.Options{Dir: dir}.WithoutSync()
			s, p := open(t, o, 1, decl("n", state.Counter, persistent))
			got := content(s)
			size, ok := states[got]
			if !ok {
				t.Fatalf("cut at %d there is %q, which no flush left", cut, got)
			}
			for _, other := range states {
				if other <= int64(cut) && other > size {
					t.Fatalf("cut at %d there is %q, and a later state was whole", cut, got)
				}
			}
			p.Collections[0].Add("c", 1, 0) // and it goes on
			s.Flush()
			want := content(s)
			s.Kill()
			s, _ = open(t, o, 1, decl("n", state.Counter, persistent))
			if diff := cmp.Diff(want, content(s)); diff != "" {
				t.Fatalf("cut at %d, then written (-want +got):\n%s", cut, diff)
			}
			s.Close()
		}
	}
}

// TestDamaged: a damaged file is reported and kept, and the records before the
// damage are used.
func TestDamaged(t *testing.T) {
	f := func(name string, want string, damage func([]byte) []byte) {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			s, p := open(t, state.Options{Dir: dir}, 1, decl("n", state.Counter, persistent))
			s.Flush()
			path := filepath.Join(dir, files(t, dir)[0])
			for range 3 {
				p.Collections[0].Add("a", 1, 0)
				s.Flush()
			}
			s.Kill()
			b, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			b = damage(b)
			if err := os.WriteFile(path, b, 0o600); err != nil {
				t.Fatal(err)
			}
			var log bytes.Buffer
			s, _ = open(t, state.Options{Dir: dir, Logger: slog.New(slog.NewTextHandler(&log, nil))}, 1, decl("n", state.Counter, persistent))
			if got := content(s); got != want {
				t.Errorf("got %q, want %q", got, want)
			}
			if !strings.Contains(log.String(), path+".damaged") {
				t.Errorf("the log does not name the file:\n%s", &log)
			}
			s.Flush()
			s.Close()
			kept, err := os.ReadFile(path + ".damaged")
			if err != nil || !bytes.Equal(kept, b) {
				t.Errorf("the damaged file is not kept: %v", err)
			}
			s, _ = open(t, state.Options{Dir: dir}, 1, decl("n", state.Counter, persistent))
			if got := content(s); got != want {
				t.Errorf("got %q after another start, want %q", got, want)
			}
			s.Close()
		})
	}
	// The last two records are 12+1+4+… bytes; the damage is in the record before
	// the last.
	record := func(b []byte) int { return bytes.LastIndex(b[:len(b)-20], []byte("C\x00p")) }
	f("a byte", "n: a=1\n", func(b []byte) []byte { b[record(b)+3]++; return b })
	f("a length", "n: a=1\n", func(b []byte) []byte { b[record(b)-12]++; return b })
	f("a length beyond the end", "n: a=1\n", func(b []byte) []byte { b[record(b)-9]++; return b })
	f("no state file", "n:\n", func(b []byte) []byte { b[0]++; return b })
	f("another version", "n:\n", func(b []byte) []byte { b[8]++; return b })
}

// disk is a disk that becomes full.
type disk struct {
	mu   sync.Mutex
	full bool
}

func (d *disk) err() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.full {
		return syscall.ENOSPC
	}
	return nil
}

func (d *disk) set(full bool) { d.mu.Lock(); defer d.mu.Unlock(); d.full = full }

func (d *disk) open(path string, flag int) (state.File, error) {
	if err := d.err(); err != nil && flag&os.O_CREATE != 0 {
		return nil, err
	}
	f, err := state.OpenOSFile(path, flag)
	return &faultyFile{f, d}, err
}

type faultyFile struct {
	state.File
	d *disk
}

func (f *faultyFile) WriteAt(b []byte, off int64) (int, error) {
	if err := f.d.err(); err != nil {
		n, _ := f.File.WriteAt(b[:len(b)/2], off)
		return n, err
	}
	return f.File.WriteAt(b, off)
}

// TestFullDisk: while the disk is full, the state is kept in memory and the
// error is reported. Afterwards, everything is written to disk.
func TestFullDisk(t *testing.T) {
	f := func(name string, full int) {
		t.Run(name, func(t *testing.T) {
			dir, d := t.TempDir(), &disk{}
			var said []string
			o := state.Options{Dir: dir, Trouble: func(err error) { said = append(said, fmt.Sprint(err)) }}.WithFiles(d.open)
			s, _ := open(t, o, 1, everyKind...)
			for round := range 8 {
				d.set(round >= full && round < 6)
				fillAll(s, round)
				s.Flush()
				if round == 4 {
					s.Maintain() // still full
				}
				if round >= full && round < 6 && len(said) != 1 {
					t.Fatalf("round %d: said %q, want one error", round, said)
				}
				if round == 6 {
					if len(said) != 1 {
						t.Fatalf("said %q, want one error until Maintain tries again", said)
					}
					s.Maintain()
				}
			}
			if len(said) != 2 || !strings.Contains(said[0], "no space left") || !strings.Contains(said[0], "cannot write persistent state") || said[1] != "<nil>" {
				t.Errorf("said %q", said)
			}
			want := strings.Replace(content(s), "memory: a=8", "memory:", 1)
			s.Kill()
			s, _ = open(t, state.Options{Dir: dir}, 1, everyKind...)
			if diff := cmp.Diff(want, content(s)); diff != "" {
				t.Errorf("state after a kill (-want +got):\n%s", diff)
			}
			s.Close()
		})
	}
	f("from the start", 0)
	f("later", 2)
}

// TestFullDiskIsBounded: keys that are added and removed while the disk is
// unavailable are not recorded individually.
func TestFullDiskIsBounded(t *testing.T) {
	d := &disk{}
	s, p := open(t, state.Options{Dir: t.TempDir()}.WithFiles(d.open), 1, decl("s", state.Set, persistent))
	s.Flush()
	d.set(true)
	c := p.Collections[0]
	for i := range 20_000 {
		c.Insert(fmt.Sprint(i), 0)
		c.Delete(fmt.Sprint(i), 0)
		if n := c.Dirty(); n > 2000 {
			t.Fatalf("%d keys are remembered", n)
		}
	}
	c.Insert("last", 0)
	d.set(false)
	s.Maintain()
	if n := c.Dirty(); n != 0 {
		t.Errorf("%d keys are not written", n)
	}
	s.Close()
}

// TestGrows: a file is rewritten when it has become too long, and nothing is
// lost.
func TestGrows(t *testing.T) {
	dir := t.TempDir()
	s, p := open(t, state.Options{Dir: dir}, 1, decl("n", state.Counter, persistent))
	for i := range 200 {
		for k := range 1000 {
			p.Collections[0].Add(fmt.Sprint("key", k), 1, 0)
		}
		s.Flush()
		if i%10 == 0 {
			s.Maintain()
		}
	}
	// The same if every process writes a little and dies.
	for range 60 {
		for k := range 1000 {
			p.Collections[0].Add(fmt.Sprint("key", k), 1, 0)
		}
		s.Flush()
		s.Kill()
		s, p = open(t, state.Options{Dir: dir}, 1, decl("n", state.Counter, persistent))
		s.Maintain()
	}
	s.Maintain()
	fi, err := os.Stat(filepath.Join(dir, files(t, dir)[0]))
	if err != nil || fi.Size() > 3<<19 || len(files(t, dir)) != 1 {
		t.Errorf("%v: %d bytes in %q", err, fi.Size(), files(t, dir))
	}
	want := content(s)
	s.Kill()
	s, _ = open(t, state.Options{Dir: dir}, 1, decl("n", state.Counter, persistent))
	if got := content(s); got != want || !strings.Contains(got, "key7=260 ") {
		t.Error("state is lost")
	}
	s.Close()
}

func TestPlan(t *testing.T) {
	var log bytes.Buffer
	s := state.New(state.Options{Node: "n", Logger: slog.New(slog.NewTextHandler(&log, nil))})
	plan := func(version int64, isolate bool, decls ...state.Decl) *state.Plan {
		return s.Plan(decls, version, isolate, 0)
	}
	p := plan(1, true, decl("a", state.Counter), decl("b", state.Map))
	if p.Changed {
		t.Error("the first declarations are a change")
	}
	p.Commit(0)
	a, b := p.Collections[0], p.Collections[1]
	for i := range 5 {
		a.Add(fmt.Sprint(i), float64(i), 0)
		b.Set(fmt.Sprint(i), num(float64(i)), 0)
	}

	// The same declarations, or other limits, keep the same collections.
	p = plan(1, true, decl("a", state.Counter, limit(3)), decl("b", state.Map))
	if p.Changed || p.Collections[0] != a || p.Collections[1] != b {
		t.Error("limits are a change")
	}
	if a.Len(0) != 5 {
		t.Error("a plan changed what runs")
	}
	p.Commit(0)
	if got := keys(a, 0); !slices.Equal(got, []string{"2", "3", "4"}) || !strings.Contains(log.String(), "dropped=2") {
		t.Errorf("got %q, want the newest three\n%s", got, &log)
	}

	// A compatible other kind, an incompatible kind, and a removed collection.
	p = plan(1, false, decl("b", state.LRU), decl("a", state.Set))
	if !p.Changed || p.OldVersion != 1 || len(p.Old) != 2 {
		t.Errorf("got %+v, want a change", p)
	}
	if got := keys(p.Collections[0], 0); len(got) != 5 || p.Collections[0] == b {
		t.Errorf("got %q in the lru", got)
	}
	if p.Collections[1].Len(0) != 0 {
		t.Error("a set was made of a counter")
	}
	if len(s.All()) != 2 || s.Find("a") != a {
		t.Error("a plan changed the store")
	}
	p.Commit(0)
	if !strings.Contains(log.String(), "state is declared as another kind") {
		t.Errorf("the log does not say what is lost:\n%s", &log)
	}
	plan(1, false, decl("b", state.LRU)).Commit(0)
	if s.Find("a") != nil {
		t.Error("what is no longer declared is there")
	}

	// Isolated: changes to the copies do not affect the originals.
	p = plan(2, true, decl("b", state.LRU))
	if !p.Changed || p.Collections[0] == s.Find("b") || p.Collections[0].Len(0) != 5 {
		t.Error("another version shares its state")
	}
	p.Collections[0].Clear()
	if s.Find("b").Len(0) != 5 {
		t.Error("a plan changed the store")
	}
}

// TestChangedOnDisk: declarations that changed while nothing ran are compared
// with those in the file. Collections that are no longer persistent leave no
// file behind.
func TestChangedOnDisk(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state", "n")
	s, p := open(t, state.Options{Dir: dir}, 3, decl("a", state.Counter, persistent))
	p.Collections[0].Add("k", 7, 0)
	s.Close()

	s = state.New(state.Options{Node: "test.node.default", Dir: dir, Logger: quiet})
	if err := s.Load(); err != nil {
		t.Fatal(err)
	}
	p = s.Plan([]state.Decl{decl("a", state.Map, persistent)}, 4, false, 0)
	if !p.Changed || p.OldVersion != 3 || p.Old[0].Get("k", 0) != num(7) || p.Collections[0].Get("k", 0) != num(7) {
		t.Errorf("got %+v", p)
	}
	p.Commit(0)
	s.Flush()
	s.Plan([]state.Decl{decl("a", state.Map)}, 4, false, 0).Commit(0)
	s.Flush()
	if got := files(t, dir); len(got) != 0 {
		t.Errorf("%q are left of state that is not persistent", got)
	}
	// If it is declared persistent again, it is written again.
	s.Plan([]state.Decl{decl("a", state.Map, persistent)}, 4, false, 0).Commit(0)
	s.Close()
	s, _ = open(t, state.Options{Dir: dir}, 4, decl("a", state.Map, persistent))
	if got := content(s); got != "a: k=7\n" {
		t.Errorf("got %q", got)
	}
	s.Close()
}

// TestFlushTogether flushes from several goroutines while others write.
func TestFlushTogether(t *testing.T) {
	dir := t.TempDir()
	s, p := open(t, state.Options{Dir: dir}, 1, decl("n", state.Counter, persistent))
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			for i := range 200 {
				p.Collections[0].Add(fmt.Sprint(i%10), 1, 0)
				s.Flush()
				if g == 0 && i%20 == 0 {
					s.Maintain()
				}
			}
		})
	}
	wg.Wait()
	s.Kill()
	s, _ = open(t, state.Options{Dir: dir}, 1, decl("n", state.Counter, persistent))
	for i := range 10 {
		if got := s.Find("n").Get(fmt.Sprint(i), 0).Float(); got != 80 {
			t.Errorf("%d: got %v, want 80", i, got)
		}
	}
	s.Close()
}

func TestDir(t *testing.T) {
	seen := map[string]string{}
	for _, node := range []string{"a.b.x", "a.b.X", "m/a.b.x", "m-a.b.x", strings.Repeat("long.", 100), "..", "ä"} {
		dir := filepath.Base(state.Dir("/s", node))
		if was, ok := seen[strings.ToLower(dir)]; ok {
			t.Errorf("%q and %q have the same directory", was, node)
		}
		seen[strings.ToLower(dir)] = node
		if len(dir) > 100 || strings.HasPrefix(dir, ".") {
			t.Errorf("%q is no good name", dir)
		}
	}
}

package versions

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/weir-run/weir/engine/files"
)

func newStore(t *testing.T) (*Store, *bytes.Buffer) {
	t.Helper()
	var log bytes.Buffer
	return Open(t.TempDir(), DefaultLimits, slog.New(slog.NewTextHandler(&log, nil))), &log
}

// reopen returns the store as the next process finds it.
func reopen(s *Store) *Store { return Open(filepath.Dir(s.dir), s.limits, s.log) }

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

var start = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// minute returns a time after start.
func minute(n int) time.Time { return start.Add(time.Duration(n) * time.Minute) }

// activate makes a version active whose script has the ID as its text.
func activate(t *testing.T, s *Store, script, id, node string, at time.Time) {
	t.Helper()
	become(t, s, script, Version{ID: id}, []File{{"a/x.lua", id}, {"lib/y.lua", "shared"}}, node, at)
}

func become(t *testing.T, s *Store, script string, v Version, files []File, node string, at time.Time) {
	t.Helper()
	_, err := s.Activate(script, "/s", v, files, node, at)
	must(t, err)
}

func ids(vs []Version) (out []string) {
	for _, v := range vs {
		out = append(out, v.ID)
	}
	return out
}

func count(t *testing.T, dir string) int {
	t.Helper()
	entries, err := os.ReadDir(dir)
	must(t, err)
	return len(entries)
}

func TestRecord(t *testing.T) {
	s, log := newStore(t)
	s.now = func() time.Time { return minute(9) }
	if got := s.Get("a.x", "/s"); len(got.Versions) > 0 || got.Passed() != nil {
		t.Errorf("got %+v of an empty store", got)
	}
	files := []File{{"a/x.lua", "one"}, {"lib/y.json", "{}"}, {"a/x_test.lua", "\xff"}}
	become(t, s, "a.x", Version{ID: "1", Test: "a/x_test.lua", Passed: minute(1)}, files, "a.x.n", minute(1))
	_, err := s.Activate("a.x", "/other", Version{ID: "9"}, files[:1], "a.x.n", minute(1))
	must(t, err)
	must(t, s.Refuse("a.x", "/s", Refusal{ID: "2", Step: "test", Reason: "no"}))
	must(t, s.Pin("a.x", "/s", Pin{Node: "a.x.n", ID: "1", Over: "o"}))
	want := Record{Script: "a.x", Dir: "/s",
		Versions: []Version{{ID: "1", Test: "a/x_test.lua", Passed: minute(1), Nodes: []Activation{{"a.x.n", minute(1)}},
			Sources: []Source{{"a/x.lua", hash("one"), 3}, {"lib/y.json", hash("{}"), 2}, {"a/x_test.lua", hash("\xff"), 1}}}},
		Refused: []Refusal{{ID: "2", Time: minute(9), Step: "test", Reason: "no"}},
		Pins:    []Pin{{Node: "a.x.n", ID: "1", Time: minute(9), Over: "o"}}}
	for _, s := range []*Store{s, Look(filepath.Dir(s.dir)), reopen(s)} {
		got := s.Get("a.x", "/s")
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		read, err := s.Files(got.Versions[0])
		if diff := cmp.Diff(files, read); diff != "" || err != nil {
			t.Errorf("%v (-want +got):\n%s", err, diff)
		}
	}
	if n := count(t, filepath.Join(s.dir, texts)); n != 3 {
		t.Errorf("%d texts are stored, want 3: versions share equal texts", n)
	}
	for path, mode := range map[string]os.FileMode{s.dir: 0o700, s.path("a.x", "/s"): 0o600, s.textPath(hash("one")): 0o600} {
		info, err := os.Stat(path)
		must(t, err)
		if got := info.Mode().Perm(); got != mode {
			t.Errorf("%s has mode %o, want %o", path, got, mode)
		}
	}
	must(t, s.Unpin("a.x", "/s", "a.x.n"))
	if _, ok := reopen(s).Pinned("a.x", "/s", "a.x.n"); ok {
		t.Error("the node is still pinned")
	}
	if log.Len() > 0 {
		t.Errorf("logged %s", log)
	}
}

// Versions are in the order in which they became active, on each node.
func TestOrder(t *testing.T) {
	s, _ := newStore(t)
	activate(t, s, "a.x", "1", "m", minute(1))
	activate(t, s, "a.x", "1", "n", minute(2))
	activate(t, s, "a.x", "2", "n", minute(3))
	activate(t, s, "a.x", "2", "n", minute(4)) // as at a restart
	f := func(want string) {
		t.Helper()
		r := reopen(s).Get("a.x", "/s")
		got := fmt.Sprint(ids(r.Versions), ids(r.Of("m")), ids(r.Of("n")), ids(r.Of("unknown")))
		if got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	f("[1 2] [1] [1 2] [1 2]")
	if at, ok := s.Get("a.x", "/s").Versions[1].Since("n"); !at.Equal(minute(3)) || !ok {
		t.Errorf("got %s, want the time when the version became active", at)
	}
	activate(t, s, "a.x", "1", "n", minute(5)) // the file has its old content again
	f("[2 1] [1] [2 1] [2 1]")
	activate(t, s, "a.x", "3", "n", minute(7))
	activate(t, s, "a.x", "4", "n", minute(6)) // which was noted late
	f("[2 1 4 3] [1] [2 1 4 3] [2 1 4 3]")

	before := func(node, id, want string) {
		t.Helper()
		got, ok := s.Get("a.x", "/s").Before(node, id)
		if ok != (want != "") || got.ID != want {
			t.Errorf("before %s on %s: got %q, %t, want %q", id, node, got.ID, ok, want)
		}
	}
	before("n", "3", "4")
	before("n", "4", "1")
	before("n", "2", "")
	before("m", "1", "")
	before("m", "3", "1") // it was not active there
	before("unknown", "3", "4")
	if got := s.Get("a.x", "/s").Find("4"); len(got) != 1 || len(s.Get("a.x", "/s").Find("")) != 4 || len(s.Get("a.x", "/s").Find("7")) != 0 {
		t.Errorf("got %+v", got)
	}
}

func TestPassed(t *testing.T) {
	s, _ := newStore(t)
	tested := func(id string, passed time.Time) {
		t.Helper()
		become(t, s, "a.x", Version{ID: id, Passed: passed}, []File{{"a/x.lua", id}}, "n", minute(1))
	}
	f := func(wantPassed string, id string, wantRejected bool) {
		t.Helper()
		r := reopen(s).Get("a.x", "/s")
		got := ""
		if p := r.Passed(); p != nil {
			got = p.ID
		}
		if rejected := r.Rejected(id, "test") != nil; got != wantPassed || rejected != wantRejected {
			t.Errorf("got passed %q, %s rejected %t, want %q, %t", got, id, rejected, wantPassed, wantRejected)
		}
	}
	tested("1", minute(1))
	tested("2", time.Time{})
	f("1", "2", false)
	must(t, s.Refuse("a.x", "/s", Refusal{ID: "2", Step: "test", Reason: "no"}))
	must(t, s.Refuse("a.x", "/s", Refusal{ID: "2", Step: "shadow", Reason: "no"}))
	must(t, s.Refuse("a.x", "/s", Refusal{ID: "2", Step: "test", Reason: "again"}))
	f("1", "2", true)
	if got := len(s.Get("a.x", "/s").Refused); got != 2 {
		t.Errorf("got %d refusals, want the last of each step", got)
	}
	tested("2", minute(2))
	f("2", "2", false)
	if s.Get("a.x", "/s").Rejected("2", "shadow") == nil {
		t.Error("passing the tests ended the refusal of another step")
	}
	tested("2", minute(3))
	if got := s.Get("a.x", "/s").Passed().Passed; !got.Equal(minute(2)) {
		t.Errorf("passed at %s, want the first time", got)
	}
}

// A refusal is in force until the version becomes active on the node, or the limits of
// the step change.
func TestRefusal(t *testing.T) {
	s, _ := newStore(t)
	now := minute(1)
	s.now = func() time.Time { return now }
	refuse := func(node, limits string) {
		t.Helper()
		must(t, s.Refuse("a.x", "/s", Refusal{ID: "2", Step: "shadow", Node: node, Reason: "no", Limits: limits}))
	}
	f := func(node, limits string, want bool) {
		t.Helper()
		for _, r := range []Record{s.Get("a.x", "/s"), reopen(s).Get("a.x", "/s")} {
			if got := r.Refusal(node, "2", "shadow", limits) != nil; got != want {
				t.Errorf("refused for %s with %s: %t, want %t", node, limits, got, want)
			}
		}
	}
	activate(t, s, "a.x", "1", "n", minute(0))
	refuse("n", "few")
	refuse("m", "few")
	f("n", "few", true)
	f("n", "many", false)
	f("other", "few", false)
	activate(t, s, "a.x", "2", "n", minute(1).Add(time.Millisecond)) // in the same second
	f("n", "few", false)
	f("m", "few", true)
	now = minute(1).Add(2 * time.Millisecond)
	refuse("n", "few") // for the same reason
	f("n", "few", true)
	now = minute(2)
	refuse("n", "few")
	if got := s.Get("a.x", "/s").Refusal("n", "2", "shadow", "few").Time; !got.Equal(minute(1).Add(2 * time.Millisecond)) {
		t.Errorf("refused at %s, want the first time", got)
	}
	activate(t, s, "a.x", "2", "n", minute(3)) // it was the last to become active
	f("n", "few", false)
	if got := s.Get("a.x", "/s").Refusal("m", "2", "canary", "few"); got != nil {
		t.Errorf("got %+v, which is of another step", got)
	}
	if got := s.Get("a.x", "/s").History("m", "", "").Refused; len(got) != 1 || got[0].Limits != "" {
		t.Errorf("the history has %+v, want the refusal of m without limits", got)
	}
}

// The histories of a weir that does not run are those of all nodes.
func TestHistories(t *testing.T) {
	s, _ := newStore(t)
	activate(t, s, "a.x", "1", "n", minute(1))
	activate(t, s, "a.x", "2", "n", minute(2))
	activate(t, s, "a.x", "1", "m", minute(3))
	must(t, s.Pin("a.x", "/s", Pin{Node: "m", ID: "2"}))
	activate(t, s, "a.y", "3", "n", minute(4)) // it has another script now
	before := count(t, s.dir)
	var got []string
	for _, h := range Look(filepath.Dir(s.dir)).Histories() {
		got = append(got, fmt.Sprint(h.Node, " ", h.Script, " ", h.File, " ", h.Running, " ", h.Stopped, " ", len(h.Versions)))
	}
	want := []string{"m a.x " + filepath.FromSlash("/s/a/x.lua") + " 2 true 1", "n a.y " + filepath.FromSlash("/s/a/x.lua") + " 3 true 1"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if n := count(t, s.dir); n != before {
		t.Errorf("there are %d files, want %d: reading must not change the store", n, before)
	}
}

// A pin ends when another content than that of its files becomes active.
func TestPin(t *testing.T) {
	s, _ := newStore(t)
	activate(t, s, "a.x", "1", "n", minute(1))
	activate(t, s, "a.x", "2", "n", minute(2))
	over := Content([]File{{"a/x.lua", "2"}, {"lib/y.lua", "shared"}}, "")
	s.now = func() time.Time { return minute(3) }
	must(t, s.Pin("a.x", "/s", Pin{Node: "n", ID: "2", Over: over}))
	must(t, s.Pin("a.x", "/s", Pin{Node: "n", ID: "1", Over: over}))
	must(t, s.Refuse("a.x", "/s", Refusal{ID: "2", Step: StepRollback, Node: "n"}))
	f := func(wantPin, wantLastGood string) {
		t.Helper()
		r := reopen(s).Get("a.x", "/s")
		p, _ := r.Pinned("n")
		last := ""
		if v := r.LastGood("n", ""); v != nil {
			last = v.ID
		}
		if p.ID != wantPin || last != wantLastGood {
			t.Errorf("got pin %q, last good version %q, want %q, %q", p.ID, last, wantPin, wantLastGood)
		}
	}
	f("1", "1")
	activate(t, s, "a.x", "2", "m", minute(4))
	activate(t, s, "a.x", "3", "m", minute(4))
	f("1", "1")
	must(t, s.Refuse("a.x", "/s", Refusal{ID: "3", Step: StepRollback, Node: "m"}))
	must(t, s.Unpin("a.x", "/s", "n"))
	f("", "2") // it became active again after it was rolled back
	must(t, s.Pin("a.x", "/s", Pin{Node: "n", ID: "1", Over: over}))
	ended, err := s.Activate("a.x", "/s", Version{ID: "4"}, []File{{"a/x.lua", "4"}}, "n", minute(5))
	if err != nil || ended == nil || ended.ID != "1" {
		t.Errorf("got %+v, %v, want the pin that ended", ended, err)
	}
	f("", "4")
}

// A record stays within its limits, and versions that are needed stay in it.
func TestLimits(t *testing.T) {
	s, _ := newStore(t)
	s.limits.Versions = 3
	become(t, s, "a.x", Version{ID: "passed", Passed: minute(0)}, []File{{"a/x.lua", "passed"}}, "n", minute(0))
	for i := range 6 {
		activate(t, s, "a.x", fmt.Sprint(i), "n", minute(i+1))
		if i == 1 {
			must(t, s.Pin("a.x", "/s", Pin{Node: "other", ID: "1"}))
		}
		must(t, s.Refuse("a.x", "/s", Refusal{ID: fmt.Sprint(i), Step: "canary", Reason: strings.Repeat("é", maxReason)}))
	}
	got := reopen(s).Get("a.x", "/s")
	if diff := cmp.Diff([]string{"passed", "1", "5"}, ids(got.Versions)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if n := count(t, filepath.Join(s.dir, texts)); n != 4 {
		t.Errorf("%d texts are left, want those of 3 versions and the one they share", n)
	}
	if n := len(got.Refused[0].Reason); n > maxReason+len("…") {
		t.Errorf("the reason has %d bytes", n)
	}
	for i := range maxRefusals + maxNodes {
		must(t, s.Refuse("a.x", "/s", Refusal{ID: fmt.Sprint(i), Step: "test"}))
		activate(t, s, "a.x", "5", fmt.Sprint(i), minute(10+i))
	}
	if got := s.Get("a.x", "/s"); len(got.Refused) != maxRefusals || len(got.Versions[2].Nodes) != maxNodes {
		t.Errorf("got %d refusals and %d nodes", len(got.Refused), len(got.Versions[2].Nodes))
	}
}

// Refusals are limited for each node, so that those of many nodes with one script are
// kept.
func TestLimitRefusals(t *testing.T) {
	var r Record
	refuse := func(id int, node string) { r.refuse(Refusal{ID: fmt.Sprint(id), Step: "shadow", Node: node}) }
	for i := range 300 {
		refuse(0, fmt.Sprint("n", i))
	}
	for i := range maxRefusals + 3 {
		refuse(i, "")
		refuse(i, "n0")
	}
	kept := map[string]int{}
	for _, f := range r.Refused {
		kept[f.Node]++
	}
	if kept[""] != maxRefusals || kept["n0"] != maxRefusals || kept["n1"] != 1 || len(kept) != 301 {
		t.Errorf("got refusals %v", kept)
	}
	if r.Refusal("n0", "2", "shadow", "") != nil || r.Refusal("n0", "3", "shadow", "") == nil {
		t.Error("the oldest refusals of the node must go")
	}
	for i := range maxAllRefusals + 1 {
		refuse(0, fmt.Sprint("m", i))
	}
	if len(r.Refused) != maxAllRefusals || r.Refused[0].Node != "m1" {
		t.Errorf("got %d refusals, the oldest of %s", len(r.Refused), r.Refused[0].Node)
	}
}

// The size is that of all scripts: their oldest versions go first, but none loses
// its newest.
func TestLimitSize(t *testing.T) {
	s, _ := newStore(t)
	big := func(script, id string, at int) {
		t.Helper()
		become(t, s, script, Version{ID: id}, []File{{"a/x.lua", strings.Repeat(id, 1000)}}, "n", minute(at))
	}
	s.limits.Size = 3500
	big("a.x", "1", 1)
	big("a.x", "2", 2)
	s = reopen(s)
	big("a.y", "3", 3)
	big("a.y", "4", 4)
	if got := fmt.Sprint(ids(reopen(s).Get("a.x", "/s").Versions), ids(s.Get("a.y", "/s").Versions)); got != "[2] [3 4]" {
		t.Errorf("got %s, want [2] [3 4]", got)
	}
	s.limits.Size = 100
	big("a.y", "5", 5)
	if got := fmt.Sprint(ids(reopen(s).Get("a.x", "/s").Versions), ids(s.Get("a.y", "/s").Versions)); got != "[2] [5]" {
		t.Errorf("got %s, want the newest of each script", got)
	}
	if n := count(t, filepath.Join(s.dir, texts)); n != 2 {
		t.Errorf("%d texts are left, want 2", n)
	}
}

func TestDamaged(t *testing.T) {
	f := func(want string, damage func(b []byte) []byte) {
		t.Helper()
		s, log := newStore(t)
		activate(t, s, "a.x", "one", "n", start)
		path := s.path("a.x", "/s")
		b, err := os.ReadFile(path)
		must(t, err)
		must(t, os.WriteFile(path, damage(b), 0o600))
		if got := Look(filepath.Dir(s.dir)).Get("a.x", "/s"); len(got.Versions) > 0 {
			t.Errorf("%s: got %+v", want, got)
		}
		s = reopen(s)
		if got := s.Get("a.x", "/s"); len(got.Versions) > 0 {
			t.Errorf("%s: got %+v", want, got)
		}
		if !strings.Contains(log.String(), want) {
			t.Errorf("logged %q, want %q", log, want)
		}
		if _, err := os.Stat(path + aside); err != nil {
			t.Errorf("%s: it was not set aside: %v", want, err)
		}
		log.Reset()
		s = reopen(s)
		if s.Get("a.x", "/s"); log.Len() > 0 {
			t.Errorf("%s: logged again", want)
		}
		activate(t, s, "a.x", "one", "n", start) // it can be stored again
		if got := reopen(s).Get("a.x", "/s"); len(got.Versions) != 1 {
			t.Errorf("%s: the new version is not there", want)
		}
	}
	f("its checksum is wrong", func(b []byte) []byte { return bytes.Replace(b, []byte("one"), []byte("two"), 1) })
	f("its checksum is wrong", func(b []byte) []byte { return b[:len(b)-1] })
	f("it is damaged", func(b []byte) []byte { return nil })
	f("it is damaged", func(b []byte) []byte { return bytes.ToUpper(b) })
	f("its format is 7, not 1", func(b []byte) []byte { b[len(format.Magic)] = 7; return b })
}

// A text that is damaged costs the versions that have it, until it is written again.
func TestDamagedText(t *testing.T) {
	f := func(want, text string) {
		t.Helper()
		s, _ := newStore(t)
		activate(t, s, "a.x", "one", "n", start)
		must(t, os.WriteFile(s.textPath(hash("one")), []byte(text), 0o600))
		v := s.Get("a.x", "/s").Versions[0]
		if _, err := s.Files(v); err == nil || !strings.Contains(err.Error(), "cannot read a/x.lua of version one in the history: "+want) {
			t.Errorf("got %v, want %s", err, want)
		}
		activate(t, s, "a.x", "two", "n", minute(1))
		activate(t, s, "a.x", "one", "n", minute(2))
		if _, err := s.Files(v); err != nil {
			t.Error(err)
		}
	}
	f("it is damaged: its hash is wrong", "two")
	f("", "longer")
}

// A process that dies in the middle of a write leaves a store that can be read.
func TestKilled(t *testing.T) {
	s, log := newStore(t)
	activate(t, s, "a.x", "1", "n", minute(1))
	// Between the texts and the record.
	must(t, files.Replace(s.textPath(hash("2")), []byte("2"), true))
	// In the middle of a text, and of a record.
	must(t, os.WriteFile(s.textPath(hash("3"))+files.Unfinished, []byte("half"), 0o600))
	must(t, os.WriteFile(s.path("a.x", "/s")+files.Unfinished, []byte("half"), 0o600))
	s = reopen(s)
	activate(t, s, "a.x", "1", "n", minute(1))
	s.Sweep()
	if got := ids(s.Get("a.x", "/s").Versions); !slices.Equal(got, []string{"1"}) {
		t.Errorf("got %q", got)
	}
	if n, m := count(t, s.dir), count(t, filepath.Join(s.dir, texts)); n != 2 || m != 2 {
		t.Errorf("%d files and %d texts are left, want the record, the folder of texts, and 2 texts", n, m)
	}
	activate(t, s, "a.x", "2", "n", minute(2))
	if _, err := s.Files(reopen(s).Get("a.x", "/s").Versions[1]); err != nil || log.Len() > 0 {
		t.Errorf("got %v, logged %s", err, log)
	}
}

// A store that cannot be written keeps what it has in memory, and writes that when
// it can.
func TestNotWritable(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "file")
	must(t, os.WriteFile(dir, nil, 0o600))
	s := Open(dir, DefaultLimits, slog.New(slog.DiscardHandler))
	_, err := s.Activate("a.x", "/s", Version{ID: "1"}, []File{{"a/x.lua", "1"}}, "n", start)
	for _, err := range []error{
		err,
		s.Refuse("a.x", "/s", Refusal{ID: "2"}),
	} {
		if err == nil || !strings.Contains(err.Error(), "cannot keep the history of a.x: ") {
			t.Errorf("got %v", err)
		}
	}
	s.Sweep()
	if files, err := s.Files(s.Get("a.x", "/s").Versions[0]); err != nil || files[0].Text != "1" {
		t.Errorf("got %v, %v", files, err)
	}
	must(t, os.Remove(dir))
	activate(t, s, "a.y", "3", "n", start)
	s = reopen(s)
	if got := s.Get("a.x", "/s"); len(got.Versions) != 1 || len(got.Refused) != 1 {
		t.Errorf("got %+v", got)
	} else if _, err := s.Files(got.Versions[0]); err != nil {
		t.Error(err)
	}
}

func TestSweep(t *testing.T) {
	s, log := newStore(t)
	now := time.Now()
	for _, script := range []string{"a.used", "a.broken", "a.unused", "a.recent"} {
		activate(t, s, script, script, "n", start)
	}
	must(t, os.WriteFile(filepath.Join(s.dir, "x"+suffix+files.Unfinished), nil, 0o600))
	must(t, os.WriteFile(filepath.Join(s.dir, "x"+suffix+aside), nil, 0o600))
	earlierStore := filepath.Join(filepath.Dir(s.dir), earlier, "x.tested")
	must(t, os.MkdirAll(filepath.Dir(earlierStore), 0o700))
	must(t, os.WriteFile(earlierStore, nil, 0o600))
	old := now.Add(-maxUnused - time.Hour)
	for _, path := range []string{s.path("a.used", "/s"), s.path("a.broken", "/s"), s.path("a.unused", "/s"), filepath.Join(s.dir, "x"+suffix+aside)} {
		must(t, os.Chtimes(path, old, old))
	}
	next := reopen(s) // a process that ran for long leaves old files
	activate(t, next, "a.used", "a.used", "n", start)
	next.Get("a.broken", "/s") // its last good version runs
	next.Sweep()
	var got []string
	entries, err := os.ReadDir(s.dir)
	must(t, err)
	for _, e := range entries {
		got = append(got, strings.SplitN(e.Name(), "-", 2)[0])
	}
	if diff := cmp.Diff([]string{"a.broken", "a.recent", "a.used", "sources"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if n := count(t, filepath.Join(s.dir, texts)); n != 4 {
		t.Errorf("%d texts are left, want those of three scripts and the one they share", n)
	}
	if _, err := os.Stat(filepath.Dir(earlierStore)); !os.IsNotExist(err) || !strings.Contains(log.String(), "an earlier version of weir") {
		t.Errorf("the copies of an earlier version are there (%v), logged %s", err, log)
	}
	for i := range maxFiles + 5 {
		must(t, os.WriteFile(filepath.Join(s.dir, string(rune('a'+i%26))+strings.Repeat("x", i/26)+suffix), nil, 0o600))
	}
	next.Sweep()
	if n := count(t, s.dir); n > maxFiles+1 {
		t.Errorf("%d files are left; want at most %d records and the texts", n, maxFiles)
	}
	if len(reopen(next).Get("a.used", "/s").Versions) == 0 {
		t.Error("a file in use was removed")
	}
}

func TestContent(t *testing.T) {
	a, b := File{"a", "1"}, File{"b", "2"}
	if Content([]File{a, b}, "") != Content([]File{b, a}, "") {
		t.Error("the order matters")
	}
	if Content([]File{a}, "") == Content([]File{b}, "") || Content([]File{{"a", "2"}}, "") == Content([]File{a}, "") {
		t.Error("different files have the same content")
	}
	if Content([]File{a, b}, "b") != Content([]File{a}, "") {
		t.Error("the test file matters")
	}
}

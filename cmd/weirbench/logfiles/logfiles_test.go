package logfiles_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-run/weir/cmd/weirbench/logfiles"
)

func newWriter(t *testing.T, o logfiles.Options) *logfiles.Writer {
	t.Helper()
	o.Dir = t.TempDir()
	w, err := logfiles.New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	})
	return w
}

// booked returns the numbers in files in their order, by sequence.
func booked(t *testing.T, paths ...string) map[string][]int {
	t.Helper()
	out := map[string][]int{}
	for _, p := range paths {
		b, err := os.ReadFile(p)
		if err != nil {
			t.Fatal(err)
		}
		for line := range bytes.Lines(b) {
			sequence, n, ok := logfiles.Find(line)
			if !ok {
				t.Fatalf("%s has a line without a number: %q", p, line)
			}
			out[string(sequence)] = append(out[string(sequence)], n)
		}
	}
	return out
}

// whole reports whether each sequence consists of 1 to the number of written
// lines.
func whole(t *testing.T, got map[string][]int, want map[string]int) {
	t.Helper()
	for sequence, n := range want {
		if len(got[sequence]) != n {
			t.Errorf("%s: %d lines of %d", sequence, len(got[sequence]), n)
			continue
		}
		for i, number := range got[sequence] {
			if number != i+1 {
				t.Errorf("%s: number %d comes at %d", sequence, number, i+1)
				break
			}
		}
	}
}

func TestLines(t *testing.T) {
	f := func(asJSON bool) {
		t.Helper()
		w := newWriter(t, logfiles.Options{Files: 2, JSON: asJSON, Seed: 1})
		for file := range 2 {
			if err := w.Write(file, 2000); err != nil {
				t.Fatal(err)
			}
		}
		st := w.Stats(true)
		want := map[string]int{"00000d": 500, "00000i": 1200, "00000w": 200, "00000e": 100, "00001d": 500, "00001i": 1200, "00001w": 200, "00001e": 100}
		if diff := cmp.Diff(logfiles.Stats{Lines: 4000, Written: want}, st); diff != "" {
			t.Error(diff)
		}
		whole(t, booked(t, w.Path(0), w.Path(1)), want)
		b, err := os.ReadFile(w.Path(1))
		if err != nil {
			t.Fatal(err)
		}
		if mean := len(b) / 2000; mean < 195 || mean > 205 {
			t.Errorf("JSON %t: lines are %d bytes", asJSON, mean)
		}
		for line := range bytes.Lines(b) {
			sequence, _, _ := logfiles.Find(line)
			level := logfiles.Levels[sequence[5]]
			if !asJSON {
				if !bytes.Contains(line, []byte(" "+level+" ")) {
					t.Fatalf("level %s is not in %q", level, line)
				}
				continue
			}
			var v struct{ TS, Level, Msg, Path, Seq string }
			if err := json.Unmarshal(line, &v); err != nil || v.Level != level || v.Msg == "" || !strings.HasPrefix(v.Path, "/api/v1/") || len(v.Seq) != logfiles.MarkLen {
				t.Fatalf("%q: %+v, %v", line, v, err)
			}
		}
	}
	f(true)
	f(false)
}

func TestFind(t *testing.T) {
	f := func(line, want string, number int) {
		t.Helper()
		sequence, n, ok := logfiles.Find([]byte(line))
		if ok != (want != "") || string(sequence) != want || n != number {
			t.Errorf("%q: got %q, %d, %t", line, sequence, n, ok)
		}
	}
	f("GET /x #00012i-0000000345", "00012i", 345)
	f(`{"color":"#ff0000","seq":"#00000d-0000000001"}`, "00000d", 1)
	f("##00000e-0000000002#", "00000e", 2)
	f("", "", 0)
	f("#00012i-000000034", "", 0)
	f("#00012x-0000000345", "", 0)
	f("#0001zi-0000000345", "", 0)
	f("#00012i-00000003f5", "", 0)
	f("#00012i_0000000345", "", 0)
}

func TestSame(t *testing.T) {
	text := func(seed uint64) string {
		w := newWriter(t, logfiles.Options{Files: 1, Seed: seed})
		if err := w.Write(0, 10); err != nil {
			t.Fatal(err)
		}
		b, err := os.ReadFile(w.Path(0))
		if err != nil {
			t.Fatal(err)
		}
		var out strings.Builder
		for line := range strings.Lines(string(b)) {
			_, rest, _ := strings.Cut(line, " ") // skip the time
			out.WriteString(rest)
		}
		return out.String()
	}
	if a, b := text(3), text(3); a != b {
		t.Errorf("one seed, two texts:\n%s\n%s", a, b)
	}
	if text(3) == text(4) {
		t.Error("two seeds, one text")
	}
}

// TestRotate: every line is in some file, in order, except the lines of removed
// files.
func TestRotate(t *testing.T) {
	f := func(how logfiles.Rotation, kept ...string) {
		t.Helper()
		w := newWriter(t, logfiles.Options{Files: 1, Keep: 3})
		for i := range 3 {
			if err := w.Write(0, 100); err != nil {
				t.Fatal(err)
			}
			if err := w.Rotate(0, how, 20*i); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.WriteTorn(0, 10, func() {
			b, err := os.ReadFile(w.Path(0))
			if err != nil || len(b) == 0 || b[len(b)-1] == '\n' {
				t.Errorf("%s: the last line is not torn: %q, %v", how, b, err)
			}
		}); err != nil {
			t.Fatal(err)
		}
		for i := range kept {
			kept[i] = w.Path(0) + kept[i]
		}
		got := booked(t, kept...)
		if how == logfiles.Recreate {
			if n := len(got["00000i"]); n != 6 {
				t.Errorf("recreate leaves %d lines", n)
			}
			return
		}
		whole(t, got, w.Stats(true).Written)
	}
	f(logfiles.Rename, ".3", ".2", ".1", "")
	f(logfiles.CopyTruncate, ".3", ".2", ".1", "")
	f(logfiles.Recreate, "")
}

func TestRotateAt(t *testing.T) {
	w := newWriter(t, logfiles.Options{Files: 1, RotateAt: 100_000, Rotation: logfiles.Rename, Keep: 2})
	if err := w.Write(0, 5000); err != nil {
		t.Fatal(err)
	}
	names, err := filepath.Glob(w.Path(0) + "*")
	if err != nil {
		t.Fatal(err)
	}
	for i := range names {
		names[i] = strings.TrimPrefix(names[i], w.Path(0))
	}
	if diff := cmp.Diff([]string{"", ".1", ".2"}, names); diff != "" {
		t.Error(diff)
	}
	got := booked(t, w.Path(0)+".2", w.Path(0)+".1", w.Path(0))
	if n := len(got["00000i"]); n != 1800 || got["00000i"][0] != 1201 {
		t.Errorf("%d lines are there, from %d", n, got["00000i"][0])
	}
}

func TestErrors(t *testing.T) {
	f := func(want string, o logfiles.Options) {
		t.Helper()
		if _, err := logfiles.New(o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	f("cannot write 0 files", logfiles.Options{})
	f("negative size", logfiles.Options{Files: 1, RotateAt: -1})
	f(`rotate by "mv"`, logfiles.Options{Files: 1, RotateAt: 1, Rotation: "mv"})
	f("cannot make a log file", logfiles.Options{Files: 1, Dir: filepath.Join(t.TempDir(), "none")})
	w := newWriter(t, logfiles.Options{Files: 1})
	if err := w.Rotate(0, "mv", 0); err == nil {
		t.Error("an unknown rotation gives no error")
	}
	if err := os.Remove(w.Path(0)); err != nil {
		t.Fatal(err)
	}
	for _, how := range []logfiles.Rotation{logfiles.Rename, logfiles.CopyTruncate, logfiles.Recreate} {
		if err := w.Rotate(0, how, 0); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s of nothing gives %v", how, err)
		}
	}
}

// TestServer sends the requests that the runner sends.
func TestServer(t *testing.T) {
	s, err := logfiles.Listen(logfiles.Options{Dir: t.TempDir(), Files: 3})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Serve(ctx) }()
	stats := func() (st logfiles.Stats) {
		t.Helper()
		resp, err := http.Get("http://" + s.Control() + "/stats?detail=1")
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		if err := json.NewDecoder(resp.Body).Decode(&st); err != nil {
			t.Fatal(err)
		}
		return st
	}
	post := func(path string, want int) {
		t.Helper()
		resp, err := http.Post("http://"+s.Control()+path, "", nil)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != want {
			t.Errorf("%s answers %s", path, resp.Status)
		}
	}
	post("/write?lines=3004", 200)
	if st := stats(); st.Lines != 3004 || st.Written["00002i"] < 600 {
		t.Errorf("got %+v", st)
	}
	post("/write?lines=many", 400)
	post("/rate?lines=-1", 400)
	post("/rate?lines=1000", 200)
	for before := stats().Lines; stats().Lines < before+100; {
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	// Files that were removed.
	rec := httptest.NewRecorder()
	s.Handler().ServeHTTP(rec, httptest.NewRequest("POST", "/write?lines=5", nil))
	if rec.Code != 500 {
		t.Errorf("writing to closed files answers %d", rec.Code)
	}
}

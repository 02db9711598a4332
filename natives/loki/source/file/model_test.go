package file_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-run/weir/engine/component/componenttest"
	"github.com/weir-run/weir/engine/flow/flowtest"
)

// writer writes numbered lines like a program whose log is rotated: to the file
// that it has open, whatever its current name.
type writer struct {
	h       *harness
	r       *rand.Rand
	f       *os.File
	n       int
	rest    string // the rest of a line that was written in part
	rotated int
	date0   time.Time // time of the last file that was closed
}

func (w *writer) open() {
	w.h.t.Helper()
	f, err := os.OpenFile(w.h.path("app.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	w.h.must(err)
	w.f = f
}

func (w *writer) write(s string) {
	w.h.t.Helper()
	_, err := w.f.WriteString(s)
	w.h.must(err)
}

// lines writes some lines, the last one possibly only in part.
func (w *writer) lines(most int, whole bool) {
	w.write(w.rest)
	w.rest = ""
	for range w.r.IntN(most) + 1 {
		w.n++
		line := fmt.Sprintf("%06d %s\n", w.n, strings.Repeat("x", w.r.IntN(30)))
		w.rest += line
	}
	cut := len(w.rest)
	if !whole && w.r.IntN(3) == 0 {
		cut -= w.r.IntN(4)
	}
	w.write(w.rest[:cut])
	w.rest = w.rest[cut:]
}

func (w *writer) rename() {
	w.rotated++
	w.h.rename("app.log", fmt.Sprintf("app.log.%d", w.rotated))
}

func (w *writer) reopen() {
	w.write(w.rest)
	w.rest = ""
	w.h.must(w.f.Close())
	w.date(fmt.Sprintf("app.log.%d", w.rotated))
	w.open()
}

func (w *writer) copyTruncate() {
	w.lines(2, true)
	w.rotated++
	b, err := os.ReadFile(w.h.path("app.log"))
	w.h.must(err)
	w.h.must(os.WriteFile(w.h.path(fmt.Sprintf("app.log.%d", w.rotated)), b, 0o644))
	w.date(fmt.Sprintf("app.log.%d", w.rotated))
	w.h.must(os.Truncate(w.h.path("app.log"), 0))
}

// date gives a complete file a distinct time, because the clock of the file
// system may tick only every few milliseconds.
func (w *writer) date(name string) {
	w.h.t.Helper()
	if _, err := os.Stat(w.h.path(name)); err != nil {
		return // it was removed
	}
	w.date0 = w.date0.Add(time.Second)
	w.h.must(os.Chtimes(w.h.path(name), w.date0, w.date0))
}

// crash continues as if the process had been killed: only the files on disk are
// left.
func (h *harness) crash() {
	h.t.Helper()
	old, stop := h.node, h.stop
	h.sink.to.Stop() // the output of the old component is ignored
	h.node = componenttest.New(h.t, old.ID)
	h.node.Clock = old.Clock
	h.must(os.MkdirAll(h.node.DataPath, 0o755))
	entries, err := os.ReadDir(old.DataPath)
	h.must(err)
	for _, e := range entries {
		b, err := os.ReadFile(filepath.Join(old.DataPath, e.Name()))
		h.must(err)
		h.must(os.WriteFile(filepath.Join(h.node.DataPath, e.Name()), b, 0o600))
	}
	stop()
	next := newSink("sink")
	next.got = h.sink.entries()
	h.sink = next
	targets := h.args.Targets
	h.args = h.arguments()
	h.args.Targets = targets
	h.start()
}

// TestModel rotates a log in all ways at random moments, while receivers refuse
// or keep lines, and weir is restarted and killed. Each line arrives once and in
// order. After a kill, it may arrive several times with the same timestamp.
func TestModel(t *testing.T) {
	rounds := 40
	if testing.Short() {
		rounds = 10
	}
	for seed := range uint64(rounds) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { model(t, seed) })
		})
	}
}

func model(t *testing.T, seed uint64) {
	r := rand.New(rand.NewPCG(seed, 1))
	h := newHarness(t)
	w := &writer{h: h, r: r}
	w.open()
	fi, err := w.f.Stat()
	h.must(err)
	w.date0 = fi.ModTime().Add(time.Hour)
	h.start()
	killed := false
	for range 60 {
		running := h.stop != nil
		op := r.IntN(16)
		t.Logf("op %d at line %d, %d came", op, w.n, len(h.sink.entries()))
		switch {
		case op < 4:
			w.lines(8, false)
		case op < 7 && running:
			h.pass(time.Duration(r.IntN(8)) * 250 * time.Millisecond)
		case op == 7:
			w.lines(3, false)
			w.rename()
			if r.IntN(2) == 0 && running {
				h.pass(time.Second)
			}
			w.lines(3, false)
			w.reopen()
			w.lines(3, false)
		case op == 8 && running:
			// Lines that are removed between two checks leave no trace in the
			// file.
			w.lines(2, true)
			h.pass(6 * time.Second)
			w.copyTruncate()
			h.pass(6 * time.Second)
		case op == 9 && running && w.rest == "":
			// The lines must be read before the file is removed, because a kill
			// would lose them.
			h.sink.set(func() { h.sink.refuse = nil })
			h.pass(10 * time.Second)
			h.remove("app.log")
			w.lines(2, true)
			h.pass(250 * time.Millisecond)
			w.reopen()
			w.lines(2, false)
		case op == 10:
			h.sink.set(func() { h.sink.refuse = flowtest.ErrRefused })
		case op == 11:
			h.sink.set(func() { h.sink.refuse = nil })
		case op == 12:
			h.sink.set(func() { h.sink.hold = !h.sink.hold })
		case op == 13:
			var hs = h.sink.holds
			h.sink.set(func() { h.sink.holds = nil })
			for _, i := range r.Perm(len(hs)) {
				hs[i].Release()
			}
		case op == 14 && running:
			h.sink.set(func() { killed = killed || h.sink.hold || len(h.sink.holds) > 0 })
			h.stop()
			h.stop = nil
		case op == 15 && running:
			killed = true
			h.crash()
		case !running:
			h.start()
		}
	}
	if h.stop == nil {
		h.start()
	}
	w.write(w.rest)
	h.sink.set(func() { h.sink.refuse = nil })
	h.pass(20 * time.Second)
	h.stop()
	h.once(w.n, killed)
	if t.Failed() {
		t.Log(h.node.Logs())
	}
}

// once checks that lines 1 to n arrived once and in order, or repeatedly with the
// same timestamps.
func (h *harness) once(n int, repeated bool) {
	h.t.Helper()
	at := map[string]int64{}
	var got []string
	var last int64
	for _, e := range h.sink.entries() {
		number, _, _ := strings.Cut(e.line, " ")
		if t, ok := at[number]; ok {
			if t != e.t || !repeated {
				h.t.Errorf("line %s came again, at %d and %d", number, t, e.t)
			}
			continue
		}
		if e.t <= last {
			h.t.Errorf("line %s is of %d, the previous line of %d", number, e.t, last)
		}
		last = e.t
		at[number] = e.t
		got = append(got, number)
	}
	for i := range max(n, len(got)) {
		want := fmt.Sprintf("%06d", i+1)
		if i >= len(got) || got[i] != want {
			h.t.Errorf("line %d of %d is %q; %d lines came", i+1, n, strings.Join(got[min(i, len(got)):min(i+3, len(got))], " "), len(got))
			break
		}
	}
}

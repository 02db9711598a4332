package top_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"
	"github.com/google/go-cmp/cmp"

	"github.com/weir-run/weir/cmd/weir/top"
	"github.com/weir-run/weir/engine/service/http"
)

var start = time.Unix(1000, 0).UTC()

// lines returns two lines of weir's response, 2 s apart. In between, each of n nodes
// uses CPU time and data.
func lines(nodes ...http.NodeUsage) (before, now http.Usage) {
	before, now = http.Usage{Time: start}, http.Usage{Time: start.Add(2 * time.Second), OtherCPU: 0.2, Nodes: nodes}
	for _, n := range nodes {
		before.Nodes = append(before.Nodes, http.NodeUsage{ID: n.ID})
	}
	return before, now
}

func TestBetween(t *testing.T) {
	oldest := start.Add(-8 * time.Second)
	before := http.Usage{Time: start, OtherCPU: 1, Nodes: []http.NodeUsage{
		{ID: "a", CPU: 1, Calls: 10, RecordsIn: 100, RecordsOut: 90, BytesIn: 1000, BytesOut: 900, Errors: 1, Dropped: map[string]uint64{"relabel": 5}, Lost: map[string]uint64{}},
		{ID: "again", CPU: 3, Calls: 50, RecordsIn: 500},
		{ID: "gone"},
	}}
	now := http.Usage{Time: start.Add(2 * time.Second), OtherCPU: 1.1, Nodes: []http.NodeUsage{
		{ID: "a", Name: "n", Health: "healthy", CPU: 1.5, Calls: 14, RecordsIn: 120, RecordsOut: 94, BytesIn: 1400, BytesOut: 940, Errors: 3,
			Dropped: map[string]uint64{"relabel": 9, "other": 2}, Lost: map[string]uint64{"refused": 2}, Queue: 7, Oldest: &oldest},
		{ID: "again", CPU: 3, Calls: 2, RecordsIn: 20}, // it was removed and added again
		{ID: "new", RecordsOut: 8, BytesOut: 80, Calls: 4},
	}}
	got := top.Between(before, now)
	want := top.Rates{Time: now.Time, Seconds: 2, CPU: 30, OtherCPU: 5, Nodes: []top.Node{
		{ID: "a", Name: "n", Health: "healthy", CPU: 25, Calls: 2, RecordsIn: 10, RecordsOut: 2, BytesIn: 200, BytesOut: 20, Dropped: 3, Lost: 1, Errors: 1,
			Queue: 7, Age: 10, DroppedBy: map[string]uint64{"relabel": 9, "other": 2}, LostBy: map[string]uint64{"refused": 2}},
		{ID: "again", Calls: 1, RecordsIn: 10},
		{ID: "new", Calls: 2, RecordsOut: 4, BytesOut: 40},
	}}
	near := cmp.Comparer(func(a, b float64) bool { return a-b < 1e-9 && b-a < 1e-9 })
	if diff := cmp.Diff(want, got, near, cmp.FilterPath(func(p cmp.Path) bool { return p.Last().String() == ".receives" }, cmp.Ignore())); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if r := got.Nodes[0].Records(); r != 10 {
		t.Errorf("got %v records/s for a node that receives, want those that arrive", r)
	}
	if r, b := got.Nodes[2].Records(), got.Nodes[2].Bytes(); r != 4 || b != 40 {
		t.Errorf("got %v records/s and %v bytes/s for a source, want those that it sends", r, b)
	}
	now.CPUError = "another CPU profile is being taken"
	if r := top.Between(before, now); r.CPU != 0 || r.Nodes[0].CPU != 0 {
		t.Errorf("got CPU %v and %v without a measurement, want 0", r.CPU, r.Nodes[0].CPU)
	}
	if r := top.Between(now, before); r.Seconds <= 0 || r.CPU < 0 {
		t.Errorf("the clock was set back: got %v", r)
	}
}

func TestView(t *testing.T) {
	nodes := []top.Node{
		{ID: "b.x", CPU: 1, Calls: 9, Queue: 3}, {ID: "A.x", CPU: 5}, {ID: "c.y", CPU: 5, Lost: 2},
	}
	f := func(v top.View, want string) {
		t.Helper()
		var ids []string
		for _, n := range v.Nodes(nodes) {
			ids = append(ids, n.ID)
		}
		if got := strings.Join(ids, " "); got != want {
			t.Errorf("%+v: got %q, want %q", v, got, want)
		}
	}
	f(top.View{Sort: "cpu"}, "A.x c.y b.x")
	f(top.View{Sort: "cpu", Reverse: true}, "b.x c.y A.x")
	f(top.View{Sort: "calls", Limit: 1}, "b.x")
	f(top.View{Sort: "lost"}, "c.y A.x b.x")
	f(top.View{Sort: "queue", Limit: 5}, "b.x A.x c.y")
	f(top.View{Sort: "name"}, "A.x b.x c.y")
	f(top.View{Sort: "name", Reverse: true}, "c.y b.x A.x")
	f(top.View{Sort: "cpu", Filter: "a.X"}, "A.x")
	f(top.View{Sort: "cpu", Filter: "none"}, "")
	for _, v := range []top.View{{}, {Sort: "size"}, {Sort: "cpu", Limit: -1}} {
		if v.Check() == nil {
			t.Errorf("%+v is accepted", v)
		}
	}
	for _, s := range top.Sorts() {
		if err := (top.View{Sort: s}).Check(); err != nil {
			t.Error(err)
		}
	}
}

func TestWrite(t *testing.T) {
	oldest := start.Add(-58 * time.Second)
	before, now := lines(
		http.NodeUsage{ID: "prometheus.scrape.app", Health: "healthy", CPU: 0.25, Calls: 20, RecordsOut: 25_000, BytesOut: 3_000_000},
		http.NodeUsage{ID: "pipe.one/prometheus.remote_write.out", Health: "unhealthy", CPU: 0.02, Calls: 19, RecordsIn: 24_990, BytesIn: 2_999_000, RecordsOut: 3,
			Lost: map[string]uint64{"rejected": 4}, Errors: 1, Queue: 1_234_567, Oldest: &oldest},
	)
	var b strings.Builder
	if err := top.Write(&b, top.Between(before, now), top.View{Sort: "cpu"}); err != nil {
		t.Fatal(err)
	}
	want := `2 nodes, CPU 23.5%, 10.0% of it outside of nodes, over 2.0s
NODE                                     CPU% CALL/s  REC/s BYTE/s DROP/s LOST/s  ERR/s  QUEUE    AGE  OUT/s
prometheus.scrape.app                    12.5     10  12.5k   1.5M      0      0      0      0      -  12.5k
! pipe.one/prometheus.remote_write.out    1.0    9.5  12.5k   1.5M      0    2.0    0.5   1.2M    60s    1.5
`
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// screen is a screen with a size and nodes, to which keys are sent.
type screen struct{ tea.Model }

func newScreen(width, height int, nodes ...http.NodeUsage) *screen {
	s := &screen{top.NewScreen(top.View{Sort: "cpu"}, true)}
	s.send(tea.WindowSizeMsg{Width: width, Height: height})
	before, now := lines(nodes...)
	s.send(before)
	s.send(now)
	return s
}

func (s *screen) send(msg tea.Msg) (cmd tea.Cmd) {
	s.Model, cmd = s.Update(msg)
	return cmd
}

// press sends keys: runes, or names in <>.
func (s *screen) press(keys ...string) {
	for _, k := range keys {
		s.send(key(k))
	}
}

func key(k string) tea.KeyPressMsg {
	named := map[string]rune{"enter": tea.KeyEnter, "esc": tea.KeyEscape, "left": tea.KeyLeft, "right": tea.KeyRight, "up": tea.KeyUp, "down": tea.KeyDown,
		"backspace": tea.KeyBackspace, "pgdown": tea.KeyPgDown, "pgup": tea.KeyPgUp, "home": tea.KeyHome, "end": tea.KeyEnd}
	if code, ok := named[k]; ok {
		return tea.KeyPressMsg{Code: code}
	}
	if k == "ctrl+c" {
		return tea.KeyPressMsg{Code: 'c', Mod: tea.ModCtrl}
	}
	return tea.KeyPressMsg{Code: []rune(k)[0], Text: k}
}

// lines returns the lines of the screen without colours and spaces at the end.
func (s *screen) lines() (out []string) {
	for _, l := range strings.Split(ansi.Strip(s.View().Content), "\n") {
		out = append(out, strings.TrimRight(l, " "))
	}
	return out
}

// ids returns the first word of each line of a node.
func (s *screen) ids() string {
	var ids []string
	for _, l := range s.lines()[2:] {
		if id, _, ok := strings.Cut(l, " "); ok && strings.HasPrefix(id, "n") {
			ids = append(ids, id)
		}
	}
	return strings.Join(ids, " ")
}

func many(n int) (out []http.NodeUsage) {
	for i := range n {
		out = append(out, http.NodeUsage{ID: fmt.Sprintf("n%03d", i), Health: "healthy", CPU: float64(n-i) / 1000, Queue: int64(i)})
	}
	return out
}

func TestScreen(t *testing.T) {
	s := newScreen(80, 8,
		http.NodeUsage{ID: "prometheus.scrape.app", Health: "healthy", CPU: 0.25, Calls: 20, RecordsOut: 25_000, BytesOut: 3_000_000},
		http.NodeUsage{ID: "pipe.one/prometheus.remote_write.out", Health: "unhealthy", CPU: 0.02, Queue: 1_234_567},
		http.NodeUsage{ID: "each.x/a\x1b[31m\nb/日本語.y", Health: "healthy"},
	)
	want := []string{
		"3 nodes, CPU 23.5%, 10.0% of it outside of nodes, over 2.0s",
		"NODE                       CPU% CALL/s  REC/s BYTE/s DROP/s LOST/s  ERR/s  QUEUE",
		"prometheus.scrape.app      12.5     10  12.5k   1.5M      0      0      0      0",
		"! …heus.remote_write.out    1.0      0      0      0      0      0      0   1.2M",
		"each.x/a�[31m�b/日本語.y    0.0      0      0      0      0      0      0      0",
		"", "",
		"q quit  ←→ sort  r reverse  / filter  ↑↓ scroll",
	}
	if diff := cmp.Diff(want, s.lines()); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if text := s.View().Content; !strings.Contains(text, "\x1b[31m!") || strings.Contains(text, "a\x1b[31m") {
		t.Errorf("the unhealthy node must be red, and the name of a node must not be: %q", text)
	}

	s.send(top.Disconnected{Reason: "weir does not answer"})
	if l := s.lines(); l[0] != "weir does not answer" || l[2] != want[2] {
		t.Errorf("got %q, want the reason and the last rates", l)
	}
	before, now := lines(many(1)...) // another process, whose counters begin at 0
	s.send(before)
	if l := s.lines(); l[2] != want[2] {
		t.Errorf("got %q, want the last rates until the next ones are known", l)
	}
	s.send(now)
	if l := s.lines(); !strings.HasPrefix(l[0], "1 nodes") || s.ids() != "n000" {
		t.Errorf("got %q", l)
	}
	now.CPUError = "another CPU profile is being taken"
	s.send(now)
	if l := s.lines(); !strings.Contains(l[0], "CPU is unknown: another CPU profile") || !strings.HasPrefix(l[2], "n000                          -") {
		t.Errorf("got %q", l)
	}
}

// No line is wider than the screen and the screen has its height, whatever its size.
func TestScreenSizes(t *testing.T) {
	for _, width := range []int{1, 7, 20, 40, 79, 80, 81, 103, 120, 300} {
		for _, height := range []int{1, 3, 4, 24, 600} {
			s := newScreen(width, height, many(500)...)
			for _, keys := range [][]string{nil, {"end"}, {"/", "4"}} {
				s.press(keys...)
				got := strings.Split(s.View().Content, "\n")
				if len(got) > max(height, 4) {
					t.Errorf("%d×%d: %d lines", width, height, len(got))
				}
				for _, l := range got {
					if ansi.StringWidth(l) > width {
						t.Errorf("%d×%d: line with a width of %d: %q", width, height, ansi.StringWidth(l), l)
					}
				}
			}
		}
	}
	if l := newScreen(200, 5, many(1)...).lines()[1]; !strings.HasSuffix(l, "AGE  OUT/s") {
		t.Errorf("a wide screen has no more columns: %q", l)
	}
}

func TestKeys(t *testing.T) {
	s := newScreen(80, 7, many(10)...)
	want := func(ids, help string) {
		t.Helper()
		l := s.lines()
		if got := s.ids(); got != ids || !strings.Contains(l[len(l)-1], help) {
			t.Errorf("got nodes %q and %q, want %q and %q", got, l[len(l)-1], ids, help)
		}
	}
	want("n000 n001 n002 n003", "1–4 of 10")
	s.press("down")
	want("n001 n002 n003 n004", "2–5 of 10")
	s.press("end")
	want("n006 n007 n008 n009", "7–10 of 10")
	s.press("down", "pgdown")
	want("n006 n007 n008 n009", "7–10 of 10")
	s.press("pgup", "up")
	want("n001 n002 n003 n004", "2–5 of 10")
	s.press("home", "up")
	want("n000 n001 n002 n003", "1–4 of 10")
	s.press("r")
	want("n009 n008 n007 n006", "")
	s.press("r", "left", "left") // name, and then the last column: the queue
	want("n009 n008 n007 n006", "")
	if !strings.Contains(s.View().Content, "\x1b[7m QUEUE\x1b[0m") {
		t.Errorf("the column is not marked: %q", s.View().Content)
	}
	s.press("right")
	want("n000 n001 n002 n003", "")
	s.press("/", "0", "0", "q", "backspace", "7")
	want("n007", "filter: 007_")
	s.press("enter", "r")
	want("n007", "filter: 007   esc clear")
	s.press("/", "\x1b")
	want("", "filter: 007�_")
	s.press("esc", "r")
	want("n000 n001 n002 n003", "1–4 of 10")
	s.press("?", "x")
	want("n000 n001 n002 n003", "1–4 of 10")
	s.send(tea.WindowSizeMsg{Width: 80, Height: 30})
	want("n000 n001 n002 n003 n004 n005 n006 n007 n008 n009", "q quit")

	quits := func(k string) bool {
		cmd := s.send(key(k))
		return cmd != nil && cmd() == tea.Quit()
	}
	if !quits("q") || !quits("ctrl+c") || quits("x") {
		t.Error("q and ctrl+c end the program, other keys do not")
	}
	s.press("/")
	if quits("q") || !quits("ctrl+c") {
		t.Error("while the filter is edited, only ctrl+c ends the program")
	}
}

// Before the first rates, the screen shows that it measures.
func TestScreenWithoutRates(t *testing.T) {
	s := &screen{top.NewScreen(top.View{Sort: "cpu"}, false)}
	if l := s.lines(); l[0] != "measuring…" || len(l) != 24 {
		t.Errorf("got %q", l)
	}
	s.press("down", "end", "pgdown", "up", "r", "left")
	if l := s.lines(); l[0] != "measuring…" {
		t.Errorf("got %q", l)
	}
}

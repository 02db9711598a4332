package journal_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/clock"
	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/component/componenttest"
	"github.com/weir-run/weir/engine/flow"
	"github.com/weir-run/weir/engine/flow/flowtest"
	"github.com/weir-run/weir/engine/rule"
	"github.com/weir-run/weir/natives/loki/source/journal"
	"github.com/weir-run/weir/natives/loki/source/journal/internal/journalfile"
	"github.com/weir-run/weir/natives/loki/source/journal/internal/journalfile/journalfiletest"
)

// harness has a journal and a node that reads it, which can be started
// repeatedly.
type harness struct {
	t     *testing.T
	dir   string // of the journal
	node  *componenttest.Node
	start time.Time // of entry 0
}

func newHarness(t *testing.T) *harness {
	return &harness{t, t.TempDir(), componenttest.New(t, "loki.source.journal.default"), time.Now().Add(-time.Hour).Truncate(time.Microsecond)}
}

func (l *harness) create(name string) *journalfiletest.Writer {
	l.t.Helper()
	return journalfiletest.Create(l.t, filepath.Join(l.dir, name), journalfile.ID{1}, true)
}

// at returns the cursor of entry number n.
func (l *harness) at(n uint64) journalfile.Cursor {
	return journalfile.Cursor{SeqnumID: journalfile.ID{1}, Seqnum: n, BootID: journalfile.ID{2}, Monotonic: n, Realtime: uint64(l.start.UnixMicro()) + n}
}

// write appends entries with the numbers as messages.
func (l *harness) write(w *journalfiletest.Writer, from, to uint64) {
	l.t.Helper()
	for n := from; n <= to; n++ {
		w.Append(l.at(n), fmt.Sprintf("MESSAGE=%d", n), "_SYSTEMD_UNIT=a.service")
	}
}

// arguments returns arguments with a body in the config language, without
// path and forward_to.
func (l *harness) arguments(body string, to *flow.Receiver) *journal.Arguments {
	l.t.Helper()
	a := componenttest.Arguments[*journal.Arguments](l.t, journal.Registration(), fmt.Sprintf("path = %q\nforward_to = []\n%s", l.dir, body))
	a.ForwardTo = []*flow.Receiver{to}
	return a
}

// build builds the component with the real clock.
func (l *harness) build(a *journal.Arguments) component.Component {
	l.t.Helper()
	o := l.node.Options()
	o.Clock = clock.System{}
	c, err := journal.Registration().Build(o, a, nil)
	if err != nil {
		l.t.Fatal(err)
	}
	return c
}

// wait returns the lines of a sink when there are n.
func (l *harness) wait(sink *flowtest.Sink, n int) (lines []string) {
	l.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	bs, err := sink.WaitLines(ctx, n)
	if err != nil {
		l.t.Fatalf("waited for %d lines: %v\n%s", n, err, l.node.Logs())
	}
	for _, b := range bs {
		for i := range b.Line {
			lines = append(lines, fmt.Sprintf("%s %d %s", b.Stream[i], b.T[i]-l.start.UnixNano(), b.Line[i]))
		}
	}
	return lines
}

// run starts the component, waits for n lines and stops it.
func (l *harness) run(n int, body string) []string {
	l.t.Helper()
	sink := flowtest.NewSink("sink")
	stop := l.node.Run(l.t, l.build(l.arguments(body, sink.Receiver())))
	defer stop()
	return l.wait(sink, n)
}

// want checks the messages of lines, which are numbers.
func (l *harness) want(lines []string, from, to int) {
	l.t.Helper()
	var got, want []string
	for _, line := range lines {
		got = append(got, line[strings.LastIndexByte(line, ' ')+1:])
	}
	for n := from; n <= to; n++ {
		want = append(want, fmt.Sprint(n))
	}
	if d := cmp.Diff(want, got); d != "" {
		l.t.Errorf("messages (-want +got):\n%s", d)
	}
}

func label(source, target string) *rule.Rule {
	r := new(rule.Rule)
	r.SetToDefault()
	r.SourceLabels, r.TargetLabel = []string{source}, target
	return r
}

func TestEntries(t *testing.T) {
	l := newHarness(t)
	w := l.create("system.journal")
	w.Append(l.at(1), "MESSAGE=one", "_SYSTEMD_UNIT=ssh.service", "PRIORITY=3")
	w.Append(l.at(2), "PRIORITY=3")
	w.Append(l.at(1003), "MESSAGE=one", "_SYSTEMD_UNIT=ssh.service", "PRIORITY=3", "OTHER=x")
	sink := flowtest.NewSink("sink")
	a := l.arguments(`labels = { host = "h", job = "not this" }`, sink.Receiver())
	a.RelabelRules = rule.Rules{label("__journal__systemd_unit", "unit"), label("__journal_priority_keyword", "level")}
	stop := l.node.Run(t, l.build(a))
	got := l.wait(sink, 2)
	stop()
	labels := `{host="h",job="loki.source.journal.default",level="error",unit="ssh.service"} `
	if d := cmp.Diff([]string{labels + "1001 one", labels + "1003003 one"}, got); d != "" {
		t.Errorf("lines (-want +got):\n%s", d)
	}
	if got := l.node.Stats.DroppedLines()["no_message"]; got != 1 {
		t.Errorf("%d entries without a message were counted, want 1", got)
	}
	w.Append(l.at(1004), "MESSAGE=four")
	got = l.run(1, "format_as_json = true")
	if d := cmp.Diff([]string{`{job="loki.source.journal.default"} 1004004 {"MESSAGE":"four"}`}, got); d != "" {
		t.Errorf("lines after a restart (-want +got):\n%s", d)
	}
}

// TestMatches: values of the same field are alternatives, all fields must match,
// and the position moves past entries that do not match.
func TestMatches(t *testing.T) {
	l := newHarness(t)
	w := l.create("system.journal")
	for n, fields := range []string{"A=1 B=1", "A=2 B=1", "A=3 B=1", "A=1 B=2", "B=1", "A=2 B=1 A=9", "A=7"} {
		w.Append(l.at(uint64(n)+1), append(strings.Fields(fields), fmt.Sprintf("MESSAGE=%d", n+1))...)
	}
	var got []string
	for _, line := range l.run(3, `matches = "A=1 A=2 B=1"`) {
		got = append(got, line[strings.LastIndexByte(line, ' ')+1:])
	}
	if d := cmp.Diff([]string{"1", "2", "6"}, got); d != "" {
		t.Errorf("messages (-want +got):\n%s", d)
	}
	at, err := journal.LoadPosition(filepath.Join(l.node.DataPath, "cursor"), journal.BootID())
	if err != nil || len(at) != 1 || at[0].Seqnum != 7 {
		t.Errorf("the position is %v, %v, want entry 7", at, err)
	}
}

func TestMaxAge(t *testing.T) {
	l := newHarness(t)
	w := l.create("system.journal")
	old := l.at(1)
	old.Realtime -= uint64(8 * time.Hour / time.Microsecond)
	w.Append(old, "MESSAGE=old")
	l.write(w, 2, 3)
	l.want(l.run(2, ""), 2, 3)
}

// TestRotation follows a journal through rotations, the deletion of a file that
// was not read yet because of a slow receiver, and restarts.
func TestRotation(t *testing.T) {
	l := newHarness(t)
	w := l.create("system.journal")
	l.write(w, 1, 100)
	slow := &slowSink{open: make(chan struct{}), all: make(chan struct{}), n: 1000}
	to := flow.NewReceiver("slow", batch.SignalLogs, nil, nil)
	to.Set(slow)
	stop := l.node.Run(t, l.build(l.arguments("", to)))
	l.waitHealth("following the journal")
	for n := uint64(100); n < 1000; n += 100 {
		l.write(w, n+1, n+100)
		w.Archive(filepath.Join(l.dir, fmt.Sprintf("system@%d.journal", n)))
		w = l.create("system.journal")
	}
	close(slow.open)
	<-slow.all
	stop()
	l.want(slow.lines, 1, 1000)
	if err := os.Remove(filepath.Join(l.dir, "system@100.journal")); err != nil {
		t.Fatal(err)
	}
	l.write(w, 1001, 1002)
	l.want(l.run(2, ""), 1001, 1002)
}

// slowSink accepts nothing until open is closed.
type slowSink struct {
	open  chan struct{}
	lines []string
	all   chan struct{} // closed when there are n lines
	n     int
}

func (s *slowSink) ConsumeLogs(ctx context.Context, b *batch.Logs) error {
	select {
	case <-s.open:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	s.lines = append(s.lines, b.Line...)
	if s.n -= len(b.Line); s.n == 0 {
		close(s.all)
	}
	return nil
}

// TestVacuum: if the entries after the position were deleted while weir was down,
// reading continues with the next entry, and the loss is counted and logged.
func TestVacuum(t *testing.T) {
	l := newHarness(t)
	w := l.create("system.journal")
	l.write(w, 1, 5)
	l.want(l.run(5, ""), 1, 5)
	l.write(w, 6, 10)
	w.Archive(filepath.Join(l.dir, "system@1.journal"))
	l.write(l.create("system.journal"), 11, 12)
	if err := os.Remove(filepath.Join(l.dir, "system@1.journal")); err != nil {
		t.Fatal(err)
	}
	l.want(l.run(2, ""), 11, 12)
	if got := l.node.Stats.DroppedLines()["deleted"]; got != 5 {
		t.Errorf("%d entries were counted as deleted, want 5", got)
	}
	if logs := l.node.Logs(); !strings.Contains(logs, "reason=deleted") {
		t.Errorf("the log does not tell that entries were deleted:\n%s", logs)
	}
}

func TestDamage(t *testing.T) {
	l := newHarness(t)
	w := l.create("system.journal")
	l.write(w, 1, 3)
	w.Damage()
	l.write(w, 5, 6)
	got := l.run(5, "")
	if len(got) != 5 || l.node.Stats.DroppedLines()["damaged"] != 1 {
		t.Errorf("got %d lines, and %v were counted, want 5 and one that is damaged", len(got), l.node.Stats.DroppedLines())
	}
}

// TestUpdate changes the receivers while the component runs: nothing is lost or
// sent twice. Other arguments need another component.
func TestUpdate(t *testing.T) {
	l := newHarness(t)
	w := l.create("system.journal")
	l.write(w, 1, 5)
	first, second := flowtest.NewSink("first"), flowtest.NewSink("second")
	c := l.build(l.arguments("", first.Receiver()))
	l.node.Run(t, c)
	l.want(l.wait(first, 5), 1, 5)
	if err := c.(component.Updater).Update(l.arguments("", second.Receiver())); err != nil {
		t.Fatal(err)
	}
	l.write(w, 6, 9)
	l.want(l.wait(second, 4), 6, 9)
	if err := c.(component.Updater).Update(l.arguments(`max_age = "1h"`, second.Receiver())); err != component.ErrRebuild {
		t.Errorf("an update of max_age returns %v, want ErrRebuild", err)
	}
}

// keeper accepts lines and keeps them until it is asked to flush, or for ever.
type keeper struct {
	got  chan struct{}
	lets bool
}

func (k *keeper) ConsumeLogs(_ context.Context, b *batch.Logs) error {
	var h *batch.Hold
	h = b.Ack.Hold(func() {
		if k.lets {
			h.Release()
		}
	})
	k.got <- struct{}{}
	return nil
}

func TestPositionWaitsForAck(t *testing.T) {
	for _, lets := range []bool{false, true} {
		l := newHarness(t)
		l.write(l.create("system.journal"), 1, 1)
		k := &keeper{make(chan struct{}, 1), lets}
		to := flow.NewReceiver("keeper", batch.SignalLogs, nil, nil)
		to.Set(k)
		stop := l.node.Run(t, l.build(l.arguments("", to)))
		<-k.got
		stop()
		_, err := os.Stat(filepath.Join(l.node.DataPath, "cursor"))
		if lets != (err == nil) {
			t.Errorf("lines let go %v: the position is %v", lets, err)
		}
	}
}

// TestOtherPositions starts from the positions of Promtail and of an old weir
// that stored only one cursor, and starts over if the position is damaged.
func TestOtherPositions(t *testing.T) {
	l := newHarness(t)
	l.write(l.create("system.journal"), 1, 5)
	cursor := filepath.Join(l.node.DataPath, "cursor")
	if err := os.MkdirAll(l.node.DataPath, 0o700); err != nil {
		t.Fatal(err)
	}
	write := func(path, text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	promtail := filepath.Join(t.TempDir(), "positions.yml")
	write(promtail, "positions:\n  cursor-journal: "+l.at(2).String()+"\n")
	l.want(l.run(3, fmt.Sprintf("legacy_position {\nfile = %q\nname = \"journal\"\n}", promtail)), 3, 5)

	write(cursor, l.at(3).String())
	l.want(l.run(2, ""), 4, 5)

	write(cursor, "weir journal position 1\nboot "+journal.BootID()+"\ns=nonsense\n")
	l.want(l.run(5, ""), 1, 5)
	if _, err := os.Stat(cursor + ".damaged"); err != nil {
		t.Errorf("the damaged position is not kept: %v", err)
	}
}

// TestPowerCut: after a restart of the machine, the position is one whose entries
// sinks have certainly written to the disk.
func TestPowerCut(t *testing.T) {
	l := newHarness(t)
	path := filepath.Join(t.TempDir(), "cursor")
	text := "weir journal position 1\nboot b1\n" + l.at(9).String() + "\ncheckpoint " + l.at(4).String() + "\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for boot, want := range map[string]uint64{"b1": 9, "b2": 4} {
		at, err := journal.LoadPosition(path, boot)
		if err != nil || len(at) != 1 || at[0].Seqnum != want {
			t.Errorf("boot %s: the position is %v, %v, want entry %d", boot, at, err, want)
		}
	}
}

func TestValidate(t *testing.T) {
	a := journal.Registration().NewArgs().(*journal.Arguments)
	a.MaxAge, a.Matches, a.Labels = 0, "X", map[string]string{"a b": ""}
	err := a.Validate()
	for _, want := range []string{"max_age is 0s", `"X" must be FIELD=value`, `"a b" is not a valid label name`} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not say %q", err, want)
		}
	}
}

// waitHealth waits until the health has the message msg.
func (l *harness) waitHealth(msg string) component.Health {
	l.t.Helper()
	l.node.Wait(l.t, func() bool { return strings.Contains(l.node.Health().Message, msg) })
	return l.node.Health()
}

// TestLater waits for a directory that does not exist, and reports it.
func TestLater(t *testing.T) {
	l := newHarness(t)
	l.dir = filepath.Join(l.dir, "later")
	sink := flowtest.NewSink("sink")
	l.node.Run(t, l.build(l.arguments("", sink.Receiver())))
	if h := l.waitHealth("there are no journal files in " + l.dir); h.State != component.Unhealthy {
		t.Errorf("health is %v, want unhealthy", h)
	}
	l.write(l.create("system.journal"), 1, 3)
	l.want(l.wait(sink, 3), 1, 3)
	if h := l.waitHealth("following the journal"); h.State != component.Healthy {
		t.Errorf("health is %v, want healthy", h)
	}
}

// TestHost: without a path, a host without a journal is an error in the config,
// in a check and at a start.
func TestHost(t *testing.T) {
	for _, goos := range []string{"darwin", "windows", "linux"} {
		err := journal.CheckHost("", goos)
		if goos == "linux" != (err == nil) || err != nil && !strings.Contains(err.Error(), "this host runs "+goos+": check and run this config on the Linux host") {
			t.Errorf("%s: got %v, want an error with what to do, except on Linux", goos, err)
		}
		if err := journal.CheckHost("copies", goos); err != nil {
			t.Errorf("%s, with a path: got %v, want no error", goos, err)
		}
	}
	r := journal.Registration()
	want := journal.CheckHost("", runtime.GOOS)
	for _, e := range r.Check(r.NewArgs(), nil) {
		if e.Warning || want == nil || e.Err.Error() != want.Error() {
			t.Errorf("a check says %v (warning %v), want the error %v", e, e.Warning, want)
		}
	}
}

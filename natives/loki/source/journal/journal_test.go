package journal_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/component/componenttest"
	"github.com/weir-run/weir/engine/flow"
	"github.com/weir-run/weir/engine/flow/flowtest"
	"github.com/weir-run/weir/natives/loki/source/journal"
	"github.com/weir-run/weir/natives/prometheus/rule"
)

func entry(n int, fields ...string) journal.Entry {
	e := journal.Entry{Fields: map[string]string{}, Cursor: fmt.Sprintf("s=1;i=%x", n), Usec: 1_000_000}
	for i := 0; i < len(fields); i += 2 {
		e.Fields[fields[i]] = fields[i+1]
	}
	return e
}

// run reads a journal to its end, waits until n lines were accepted and stops.
func run(t *testing.T, node *componenttest.Node, f *journal.Fake, n int, edit func(*journal.Arguments)) []string {
	t.Helper()
	sink := flowtest.NewSink("sink")
	a := journal.Registration().NewArgs().(*journal.Arguments)
	a.ForwardTo = []*flow.Receiver{sink.Receiver()}
	if edit != nil {
		edit(a)
	}
	if err := a.Validate(); err != nil {
		t.Fatal(err)
	}
	f.More = make(chan struct{})
	c, err := journal.Build(node.Options(), a, f)
	if err != nil {
		t.Fatal(err)
	}
	stop := node.Run(t, c)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	bs, err := sink.WaitLines(ctx, n)
	if err != nil {
		t.Errorf("waited for %d lines: %v", n, err)
	}
	close(f.More)
	stop()
	var out []string
	for _, b := range bs {
		for i, l := range b.Line {
			out = append(out, fmt.Sprintf("%s %d %s", b.Stream[i], b.T[i], l))
		}
	}
	return out
}

func TestEntries(t *testing.T) {
	r := new(rule.Rule)
	r.SetToDefault()
	r.SourceLabels, r.TargetLabel = []string{"__journal__systemd_unit"}, "unit"
	p := new(rule.Rule)
	p.SetToDefault()
	p.SourceLabels, p.TargetLabel = []string{"__journal_priority_keyword"}, "level"
	node := componenttest.New(t, "loki.source.journal.default")
	f := &journal.Fake{Entries: []journal.Entry{
		entry(1, "MESSAGE", "one", "_SYSTEMD_UNIT", "ssh.service", "PRIORITY", "3"),
		entry(2, "PRIORITY", "3"),
		entry(3, "MESSAGE", "one", "_SYSTEMD_UNIT", "ssh.service", "PRIORITY", "3", "OTHER", "x"),
	}}
	edit := func(a *journal.Arguments) {
		a.RelabelRules = rule.Rules{r, p}
		a.Labels = map[string]string{"host": "h", "job": "not this"}
	}
	labels := `{host="h",job="loki.source.journal.default",level="error",unit="ssh.service"} `
	want := []string{labels + "1000000001 one", labels + "1000000003 one"}
	if d := cmp.Diff(want, run(t, node, f, 2, edit)); d != "" {
		t.Errorf("lines (-want +got):\n%s", d)
	}
	if got := node.Stats.DroppedLines()["no_message"]; got != 1 {
		t.Errorf("%d entries without a message were counted, want 1", got)
	}

	// The next one begins behind what was accepted.
	next := componenttest.New(t, node.ID)
	next.DataPath = node.DataPath
	f = &journal.Fake{Entries: append(f.Entries, entry(4, "MESSAGE", "four"))}
	got := run(t, next, f, 1, func(a *journal.Arguments) { a.FormatAsJSON = true })
	if d := cmp.Diff([]string{`{job="loki.source.journal.default"} 1000000004 {"MESSAGE":"four"}`}, got); d != "" {
		t.Errorf("lines after a restart (-want +got):\n%s", d)
	}
	if f.Cursor != "s=1;i=3" {
		t.Errorf("the journal was opened at %q", f.Cursor)
	}
}

// keeper accepts lines and keeps them until it is asked for them, or for ever.
type keeper struct {
	got  chan struct{}
	lets bool
}

func (k *keeper) ConsumeLogs(_ context.Context, b *batch.Logs) error {
	var h *batch.Hold
	h = b.Receipt.Hold(func() {
		if k.lets {
			h.Release()
		}
	})
	k.got <- struct{}{}
	return nil
}

func TestPositionWaitsForReceipt(t *testing.T) {
	for _, lets := range []bool{false, true} {
		node := componenttest.New(t, "loki.source.journal.default")
		k := &keeper{make(chan struct{}, 1), lets}
		to := flow.NewReceiver("keeper", batch.SignalLogs, nil, nil)
		to.Set(k)
		a := journal.Registration().NewArgs().(*journal.Arguments)
		a.ForwardTo = []*flow.Receiver{to}
		f := &journal.Fake{Entries: []journal.Entry{entry(1, "MESSAGE", "kept")}, More: make(chan struct{})}
		c, err := journal.Build(node.Options(), a, f)
		if err != nil {
			t.Fatal(err)
		}
		stop := node.Run(t, c)
		<-k.got
		close(f.More)
		stopped := make(chan struct{})
		go func() {
			defer close(stopped)
			stop()
		}()
		for over := false; !over; {
			select {
			case <-stopped:
				over = true
			default:
				node.Clock.Advance(100 * time.Millisecond)
			}
		}
		_, err = os.Stat(filepath.Join(node.DataPath, "cursor"))
		if lets != (err == nil) {
			t.Errorf("lines let go %v: the position is %v", lets, err)
		}
	}
}

func TestLegacyPosition(t *testing.T) {
	file := filepath.Join(t.TempDir(), "positions.yml")
	if err := os.WriteFile(file, []byte("positions:\n  cursor-journal: s=1;i=1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	node := componenttest.New(t, "loki.source.journal.default")
	f := &journal.Fake{Entries: []journal.Entry{entry(1, "MESSAGE", "one"), entry(2, "MESSAGE", "two")}}
	got := run(t, node, f, 1, func(a *journal.Arguments) { a.Legacy = &journal.Legacy{File: file, Name: "journal"} })
	if d := cmp.Diff([]string{`{job="loki.source.journal.default"} 1000000002 two`}, got); d != "" {
		t.Errorf("lines (-want +got):\n%s", d)
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

func TestWithoutSystemd(t *testing.T) {
	if journal.Missing == nil {
		t.Skip("it is here")
	}
	r := journal.Registration()
	node := componenttest.New(t, "loki.source.journal.default")
	if _, err := r.Build(node.Options(), r.NewArgs()); err == nil || !strings.Contains(err.Error(), "-tags journal") {
		t.Errorf("got %v, want what is missing and how to get it", err)
	}
	if es := r.Check(r.NewArgs(), nil); len(es) != 1 || !es[0].Warning {
		t.Errorf("a check says %v", es)
	}
}

//go:build integration

package integration

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weir-run/weir/cmd/weirbench/logfiles"
)

// TestLogLimits: a real Loki refuses lines that are too long and streams with too
// many labels. They are counted and logged and not retried for ever, and all
// other lines in the same pushes arrive.
func TestLogLimits(t *testing.T) {
	t.Parallel()
	const rounds, perRound = 10, 100
	l := startLines(t, logfiles.Options{Files: 3, Seed: 9})
	loki := startLoki(t, "max_line_size: 400", "max_label_names_per_series: 5")
	dir, more := t.TempDir(), t.TempDir()
	write(t, filepath.Join(dir, "config.alloy"), l.source("loki.write.out.receiver")+fmt.Sprintf(`
loki.source.file "more" {
  targets = [
    { __path__ = "%[1]s/long.log", job = "long" },
    { __path__ = "%[1]s/wide.log", job = "wide", a = "1", b = "2", c = "3", d = "4" },
  ]
  forward_to = [loki.write.out.receiver]
}
`, more)+lokiWrite(loki.endpoint()))
	var long, wide []string
	for i := range rounds * perRound {
		line := fmt.Sprintf("line %d of long", i)
		if i%7 == 3 {
			line += strings.Repeat(" and on", 100)
		}
		long = append(long, line)
		wide = append(wide, fmt.Sprintf("line %d of wide", i))
	}
	weir := startWeir(t, dir)
	appended := func(name string, all []string, round int) {
		appendTo(t, filepath.Join(more, name), strings.Join(all[round*perRound:(round+1)*perRound], "\n")+"\n")
	}
	for round := range rounds {
		l.add(perRound)
		appended("long.log", long, round)
		appended("wide.log", wide, round)
		loki.arrive(t, `{job="load"}`, l.written())
	}
	l.whole(loki, `{job="load"}`)

	var want []string
	refused := len(wide)
	for _, line := range long {
		if len(line) > 400 {
			refused++
		} else {
			want = append(want, line)
		}
	}
	loki.arrive(t, `{job="long"}`, len(want))
	for i, e := range loki.mustQuery(t, `{job="long"}`) {
		if i >= len(want) || e.line != want[i] {
			t.Errorf("line %d is %q", i, e.line)
			break
		}
	}
	if n, err := loki.count(`{job="wide"}`); n != 0 || err != nil {
		t.Errorf("Loki has %d lines with too many labels, %v", n, err)
	}
	eventually(t, "the refused lines are counted", func() error {
		if got := droppedLines(t, metricsPage(t, weir), lokiWriteID); got != refused {
			return fmt.Errorf("%d, want %d", got, refused)
		}
		if n := counterOf(t, metricsPage(t, weir), lokiWriteID, "weir_journal_pending_blocks", ""); n > 0 {
			return errors.New("some are still sent")
		}
		return nil
	})
	for _, named := range []string{"max entry size", "label names"} {
		if !strings.Contains(weir.output(), named) {
			t.Errorf("the log does not say what was wrong: %q", named)
		}
	}
	if code := weir.stop(); code != 0 {
		t.Errorf("exit status %d after SIGTERM", code)
	}
}

//go:build integration

package integration

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"sort"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weir-run/weir/cmd/weirbench/logfiles"
)

// lines are log files that are written and rotated while a test runs. Each line
// has a number, so that lost, duplicate and reordered lines are always detected.
type lines struct {
	*logfiles.Writer
	t     *testing.T
	dir   string
	files int
	wg    sync.WaitGroup
	quit  chan struct{}
}

// startLines creates files and keeps all rotated files.
func startLines(t *testing.T, o logfiles.Options) *lines {
	t.Helper()
	o.Dir, o.Keep = t.TempDir(), 1000
	w, err := logfiles.New(o)
	if err != nil {
		t.Fatal(err)
	}
	l := &lines{Writer: w, t: t, dir: o.Dir, files: o.Files}
	t.Cleanup(func() {
		l.pause()
		w.Close()
	})
	return l
}

// add writes n lines to each file.
func (l *lines) add(n int) {
	l.t.Helper()
	for i := range l.files {
		if err := l.Write(i, n); err != nil {
			l.t.Fatal(err)
		}
	}
}

// rotate rotates one file.
func (l *lines) rotate(file int, how logfiles.Rotation, late int) {
	l.t.Helper()
	if err := l.Rotate(file, how, late); err != nil {
		l.t.Fatal(err)
	}
}

// flow writes n lines to each file, 20 times per second, until pause.
func (l *lines) flow(n int) {
	l.quit = make(chan struct{})
	l.wg.Go(func() {
		tick := time.NewTicker(50 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-l.quit:
				return
			case <-tick.C:
			}
			for i := range l.files {
				if err := l.Write(i, n); err != nil {
					l.t.Error(err)
				}
			}
		}
	})
}

// pause stops flow.
func (l *lines) pause() {
	if l.quit != nil {
		close(l.quit)
		l.wg.Wait()
		l.quit = nil
	}
}

// written returns the number of lines in all files.
func (l *lines) written() int { return int(l.Stats(false).Lines) }

// atLeast returns an error unless n lines were written.
func (l *lines) atLeast(n int) error {
	if got := l.written(); got < n {
		return fmt.Errorf("%d of %d lines", got, n)
	}
	return nil
}

// source returns a loki.source.file block for the files, with a job label and
// more arguments.
func (l *lines) source(to string, more ...string) string {
	return fmt.Sprintf(`
local.file_match "load" {
  path_targets = [{ __path__ = "%s/app-*.log", job = "load" }]
  sync_period  = "1s"
}

loki.source.file "load" {
  targets    = local.file_match.load.targets
  forward_to = [%s]
  %s
}
`, l.dir, to, strings.Join(more, "\n  "))
}

// lokiWrite returns a block loki.write "out" with endpoint blocks.
func lokiWrite(endpoints ...string) string {
	return "\nloki.write \"out\" {\n" + strings.Join(endpoints, "") + "}\n"
}

const (
	lokiWriteID  = "loki.write.out"
	lokiSourceID = "loki.source.file.load"
)

// judge returns an error unless all written lines have arrived, each exactly
// once, and in order in each stream and sequence. except selects lines that may
// be missing; it may be nil.
func (l *lines) judge(arrived []entry, except func(sequence string, n int) bool) error {
	type place struct{ stream, sequence string }
	times, last, wrong := map[string]map[int]int{}, map[place]int{}, []string(nil)
	texts := l.texts()
	for _, e := range arrived {
		mark, n, ok := logfiles.Find([]byte(e.line))
		if !ok {
			wrong = append(wrong, fmt.Sprintf("%q has no number", tail(e.line, 100)))
			continue
		}
		sequence := string(mark)
		if times[sequence] == nil {
			times[sequence] = map[int]int{}
		}
		times[sequence][n]++
		at := place{e.stream(), sequence}
		if n < last[at] && times[sequence][n] == 1 {
			wrong = append(wrong, fmt.Sprintf("%s: %d comes after %d in %s", sequence, n, last[at], at.stream))
		}
		last[at] = max(last[at], n)
		if text, ok := texts[fmt.Sprint(sequence, n)]; ok && text != e.line {
			wrong = append(wrong, fmt.Sprintf("%s: %d is %q in the file and arrived as %q", sequence, n, text, e.line))
		}
	}
	written := l.Stats(true).Written
	for sequence, upTo := range written {
		var lost, double []int
		for n := 1; n <= upTo; n++ {
			switch seen := times[sequence][n]; {
			case seen == 0 && (except == nil || !except(sequence, n)):
				lost = append(lost, n)
			case seen > 1:
				double = append(double, n)
			}
		}
		if lost != nil {
			wrong = append(wrong, fmt.Sprintf("%s: %d of %d lines are lost: %s", sequence, len(lost), upTo, ranges(lost)))
		}
		if double != nil {
			wrong = append(wrong, fmt.Sprintf("%s: %d of %d lines came more than once: %s", sequence, len(double), upTo, ranges(double)))
		}
		for n := range times[sequence] {
			if n < 1 || n > upTo {
				wrong = append(wrong, fmt.Sprintf("%s: line %d of %d came", sequence, n, upTo))
			}
		}
	}
	if len(wrong) == 0 {
		return nil
	}
	sort.Strings(wrong)
	sort.SliceStable(wrong, func(i, j int) bool {
		return strings.Contains(wrong[i], " lost: ") && !strings.Contains(wrong[j], " lost: ")
	})
	if more := len(wrong) - 20; more > 0 {
		wrong = append(wrong[:20], fmt.Sprintf("and %d more", more))
	}
	return fmt.Errorf("%d of %d lines are there:\n%s", len(arrived), l.written(), strings.Join(wrong, "\n"))
}

// texts returns the lines in the remaining files, by sequence and number.
func (l *lines) texts() map[string]string {
	all := map[string]string{}
	names, _ := filepath.Glob(filepath.Join(l.dir, "app-*"))
	for _, name := range names {
		content, err := os.ReadFile(name)
		if err != nil {
			continue
		}
		for line := range bytes.Lines(content) {
			line = bytes.TrimSuffix(line, []byte("\n"))
			if mark, n, ok := logfiles.Find(line); ok {
				all[fmt.Sprint(string(mark), n)] = string(line)
			}
		}
	}
	return all
}

// ranges formats sorted numbers as ranges, at most ten.
func ranges(ns []int) string {
	var b strings.Builder
	for parts := 0; len(ns) > 0; parts++ {
		if parts == 10 {
			fmt.Fprintf(&b, " and %d more", len(ns))
			break
		}
		end := 1
		for end < len(ns) && ns[end] == ns[end-1]+1 {
			end++
		}
		fmt.Fprintf(&b, " %d", ns[0])
		if end > 1 {
			fmt.Fprintf(&b, "-%d", ns[end-1])
		}
		ns = ns[end:]
	}
	return b.String()[1:]
}

// arrive waits until Loki has want lines that selector selects.
func (l *lokiServer) arrive(t *testing.T, selector string, want int) {
	t.Helper()
	eventually(t, fmt.Sprintf("%d lines arrive", want), func() error {
		n, err := l.count(selector)
		if err == nil && n < want {
			err = fmt.Errorf("%d", n)
		}
		return err
	})
}

// whole waits until all lines are in Loki, each exactly once and in order.
func (l *lines) whole(loki *lokiServer, selector string) (arrived []entry) {
	l.t.Helper()
	want := l.written()
	var wrong error
	deadline := time.Now().Add(patience)
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for ; time.Now().Before(deadline); <-tick.C {
		// A query is expensive. A count is too high if lines were sent twice,
		// because it includes duplicates that Loki returns only once.
		n, err := loki.count(selector)
		if err == nil && n < want {
			err = fmt.Errorf("%d of %d lines arrived", n, want)
		}
		if wrong = err; err != nil {
			continue
		}
		if arrived, wrong = loki.query(selector); wrong == nil {
			wrong = l.judge(arrived, nil)
		}
		if wrong == nil {
			return arrived
		}
	}
	l.t.Errorf("waited %s until every line arrives: %v", patience, wrong)
	if arrived = loki.mustQuery(l.t, selector); l.judge(arrived, nil) != nil {
		l.t.Error(l.judge(arrived, nil))
	}
	return arrived
}

// taken waits until weir, which has run since the start, has read every line that
// has been written.
func (l *lines) taken(weir *weirRun) {
	l.t.Helper()
	want := l.written()
	eventually(l.t, "every line is read", func() error {
		got := counterOf(l.t, metricsPage(l.t, weir), lokiSourceID, "weir_component_lines_out_total", "")
		if int(got) < want {
			return fmt.Errorf("%v of %d", got, want)
		}
		return nil
	})
}

// linesDropped matches counters of dropped lines that are not 0.
var linesDropped = regexp.MustCompile(`(?m)^weir_\w*(dropped|lost)\w*_total\{.*\} [^0\n].*$`)

// noneDropped fails the test if weir reports lost lines.
func noneDropped(t *testing.T, weir *weirRun) {
	t.Helper()
	for _, line := range linesDropped.FindAllString(metricsPage(t, weir), -1) {
		t.Errorf("weir says that it dropped something: %s", line)
	}
}

// droppedLines returns the number of lines that a node dropped, for all reasons.
func droppedLines(t *testing.T, page, id string) int {
	t.Helper()
	return int(counterOf(t, page, id, "weir_component_lines_dropped_total", ""))
}

// appendTo appends to a file and creates it if necessary.
func appendTo(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o666)
	if err == nil {
		_, err = f.WriteString(text)
		f.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestJudge checks that the judge of the other tests detects errors.
func TestJudge(t *testing.T) {
	l := startLines(t, logfiles.Options{Files: 1, Seed: 1})
	l.add(40)
	var all []entry
	content, err := os.ReadFile(l.Path(0))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(content)) {
		all = append(all, entry{ns: int64(len(all)), line: strings.TrimSuffix(line, "\n")})
	}
	f := func(arrived []entry, want string) {
		t.Helper()
		err := l.judge(arrived, nil)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	without := func(i int) []entry { return append(append([]entry(nil), all[:i]...), all[i+1:]...) }
	f(all, "")
	f(without(3), "00000i: 1 of 24 lines are lost: 3")
	f(without(39), "are lost: 24")
	f(nil, "lines are lost: 1-24")
	f(append(append([]entry(nil), all...), all[7]), "00000i: 1 of 24 lines came more than once: 5")
	f(append(without(0), all[0]), "comes after")
	changed := append([]entry(nil), all...)
	changed[5].line = strings.Replace(changed[5].line, "method=", "METHOD=", 1)
	f(changed, "arrived as")
	changed[5].line = "nothing"
	f(changed, "has no number")
}

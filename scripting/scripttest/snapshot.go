package scripttest

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/weir-run/weir/engine/files"
	"github.com/weir-run/weir/scripting"
)

const (
	// snapshotsDir is the folder of snapshots, next to test files.
	snapshotsDir = "__snapshots__"
	// maxSnapshot is the maximum size of a snapshot, and maxSnapshots that of a
	// file of them, in bytes.
	maxSnapshot  = 1 << 20
	maxSnapshots = 16 << 20
)

// snapshots are the snapshots of one test file. They are in a text file, in the
// folder and with the name that Jest and Vitest use.
type snapshots struct {
	name, path string // of the file; the name is as shown to people
	of         string // the test file
	stored     map[string]string
	checked    map[string]bool
	counts     map[string]int // of the snapshots with the same name, in this run
	update     bool
	write      func(path, content string) error // nil: nothing is written

	written, updated, removed int
}

// snapshotPath is the path of the file with the snapshots of a test file.
func snapshotPath(test string) string {
	return filepath.Join(filepath.Dir(test), snapshotsDir, filepath.Base(test)+".snap")
}

// IsSnapshots reports whether a path is that of a file of snapshots, or of a folder of
// them.
func IsSnapshots(path string) bool {
	return filepath.Base(path) == snapshotsDir || filepath.Base(filepath.Dir(path)) == snapshotsDir
}

// orphans returns the files of snapshots in the folders of targets whose test file is gone,
// sorted.
func orphans(targets []target) (out []string) {
	dirs := map[string]bool{}
	for _, t := range targets {
		dir := filepath.Dir(t.path())
		if t.path() == "" || dirs[dir] {
			continue
		}
		dirs[dir] = true
		found, _ := fs.ReadDir(os.DirFS(dir), snapshotsDir) // most have none
		for _, e := range found {
			test, ok := strings.CutSuffix(e.Name(), ".snap")
			if _, err := files.Stat(filepath.Join(dir, test)); ok && errors.Is(err, fs.ErrNotExist) {
				out = append(out, filepath.Join(dir, snapshotsDir, e.Name()))
			}
		}
	}
	slices.Sort(out)
	return out
}

// openSnapshots reads the snapshots of a test file.
func (s *suite) openSnapshots(test scripting.File) (*snapshots, error) {
	p := &snapshots{
		of: filepath.Base(test.Path), stored: map[string]string{}, checked: map[string]bool{}, counts: map[string]int{},
		update: s.update != nil, write: s.write,
	}
	if test.Path == "" {
		return p, nil
	}
	p.path = snapshotPath(test.Path)
	p.name = display(p.path)
	rel, err := filepath.Rel(s.folder.Dir, p.path)
	if err != nil {
		return nil, fmt.Errorf("cannot read the snapshots %s: %w", p.name, err)
	}
	text, err := files.ReadIn(s.folder.Dir, filepath.ToSlash(rel), maxSnapshots)
	if errors.Is(err, fs.ErrNotExist) {
		return p, nil
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read the snapshots %s: %w", p.name, err)
	}
	return p, p.parse(string(text))
}

const entryMark = "=== "

// parse reads a file of snapshots.
func (p *snapshots) parse(text string) error {
	broken := func(line int, format string, args ...any) error {
		return scripting.File{Name: p.name, Text: text}.Error(line, "", fmt.Errorf(
			format+`; restore the file from version control, or delete it and run "weir test"`, args...))
	}
	name, content, begun := "", []string(nil), false
	end := func() {
		if begun {
			p.stored[name] = strings.TrimRight(strings.Join(content, "\n"), "\n")
		}
	}
	for i, line := range strings.Split(strings.ReplaceAll(text, "\r\n", "\n"), "\n") {
		if written, ok := strings.CutPrefix(line, entryMark); ok {
			end()
			name, content, begun = written, nil, true
			if strings.HasPrefix(written, `"`) {
				unquoted, err := strconv.Unquote(written)
				if err != nil {
					return broken(i+1, "cannot read the name of a snapshot")
				}
				name = unquoted
			}
			if _, ok := p.stored[name]; ok {
				return broken(i+1, "the snapshot %q exists twice", name)
			}
			continue
		}
		body, indented := strings.CutPrefix(line, "  ")
		switch {
		case begun && (indented || line == ""):
			content = append(content, body)
		case begun:
			return broken(i+1, "cannot read the snapshot %q: a line must begin with two spaces or with %q", name, entryMark)
		case line != "" && !strings.HasPrefix(line, "#"):
			return broken(i+1, "cannot read the snapshots: the first one must begin with %q", entryMark)
		}
	}
	end()
	return nil
}

// text is the content of the file, "" without snapshots.
func (p *snapshots) text() string {
	if len(p.stored) == 0 {
		return ""
	}
	names := make([]string, 0, len(p.stored))
	for name := range p.stored {
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b string) int {
		testA, nA := splitSnapshot(a)
		testB, nB := splitSnapshot(b)
		return cmp.Or(strings.Compare(testA, testB), cmp.Compare(nA, nB), strings.Compare(a, b))
	})
	var b strings.Builder
	fmt.Fprintf(&b, "# Snapshots of %s. Do not edit: \"weir test --update\" writes them again.\n", p.of)
	for _, name := range names {
		shown := name
		if strings.TrimSpace(name) != name || strings.HasPrefix(name, `"`) || !printable(name) {
			shown = strconv.Quote(name)
		}
		b.WriteString("\n" + entryMark + shown + "\n")
		for _, line := range splitLines(p.stored[name]) {
			b.WriteString(strings.TrimRight("  "+line, " ") + "\n")
		}
	}
	return b.String()
}

// splitSnapshot splits the name of a snapshot into that of the test, with the
// snapshot's own name if it has one, and the number.
func splitSnapshot(name string) (test string, n int) {
	at := strings.LastIndexByte(name, ' ')
	if at < 0 {
		return name, 0
	}
	n, err := strconv.Atoi(name[at+1:])
	if err != nil {
		return name, 0
	}
	return name[:at], n
}

// again returns the same snapshots for another run of the tests, in which nothing
// is written or updated.
func (p *snapshots) again() *snapshots {
	return &snapshots{name: p.name, path: p.path, of: p.of, stored: p.stored, checked: map[string]bool{}, counts: map[string]int{}}
}

// check compares a text with the next snapshot of a test. name is the snapshot's own,
// or "".
func (p *snapshots) check(test, name, got string) error {
	if p.path == "" {
		return errors.New("cannot store the snapshots of a test file that ships with weir")
	}
	if len(got) > maxSnapshot {
		return fmt.Errorf("cannot store a snapshot of %d bytes: the maximum is %d; take a snapshot of a part", len(got), maxSnapshot)
	}
	if name != "" {
		test += " > " + name
	}
	p.counts[test]++
	key := fmt.Sprintf("%s %d", test, p.counts[test])
	p.checked[key] = true
	// A file keeps neither blank lines at the end of a snapshot nor blanks at the ends of lines.
	lines := splitLines(strings.TrimRight(got, "\n"))
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	got = strings.Join(lines, "\n")
	want, known := p.stored[key]
	switch {
	case known && want == got:
		return nil
	case known && p.update:
		p.updated++
	case known:
		return &Failure{Msg: fmt.Sprintf("the snapshot %q differs; if the new value is correct, run weir test --update", key), Diff: lineDiff(splitLines(want), lines)}
	case p.write == nil:
		return &Failure{Msg: fmt.Sprintf(`there is no snapshot %q in %s; run "weir test" without --ci to write it`, key, p.name), Diff: lineDiff(nil, lines)}
	default:
		p.written++
	}
	p.stored[key] = got
	return nil
}

// finish writes the file if it has changed, and fills in what the report says of it.
// tests are the results of the tests that ran of all that the file declares.
func (p *snapshots) finish(f *File, all []*testCase) error {
	ended := map[string]bool{}
	for _, t := range f.Tests {
		before, again := ended[t.Name]
		ended[t.Name] = t.Status == Passed && (before || !again)
	}
	for key := range p.stored {
		// The snapshots of a test that did not reach its end are kept.
		kept := slices.ContainsFunc(all, func(c *testCase) bool {
			return !ended[c.fullName()] && strings.HasPrefix(key, c.fullName()+" ")
		})
		if p.checked[key] || kept {
			continue
		}
		if p.update {
			delete(p.stored, key)
			p.removed++
			continue
		}
		f.Snapshots.Obsolete = append(f.Snapshots.Obsolete, key)
	}
	slices.Sort(f.Snapshots.Obsolete)
	f.Snapshots.Written, f.Snapshots.Updated, f.Snapshots.Removed = p.written, p.updated, p.removed
	if p.written+p.updated+p.removed == 0 || p.write == nil {
		return nil
	}
	content := p.text()
	if len(content) > maxSnapshots {
		return fmt.Errorf("cannot write the snapshots %s: they have %d bytes, and the maximum is %d", p.name, len(content), maxSnapshots)
	}
	if err := p.write(p.path, content); err != nil {
		return fmt.Errorf("cannot write the snapshots %s: %w", p.name, err)
	}
	return nil
}

// Snapshots is what became of the snapshots of a test file.
type Snapshots struct {
	Written, Updated, Removed int
	// Obsolete are the names of those that no test checks, sorted.
	Obsolete []string
}

// String lists what is not zero.
func (s Snapshots) String() string {
	var parts []string
	for _, p := range []struct {
		n    int
		what string
	}{{s.Written, "written"}, {s.Updated, "updated"}, {s.Removed, "removed"}, {len(s.Obsolete), "obsolete"}} {
		if p.n > 0 {
			parts = append(parts, count(p.n, "snapshot")+" "+p.what)
		}
	}
	return strings.Join(parts, ", ")
}

// snapshot compares the text of a value with the next snapshot of the running test.
func (s *session) snapshot(text, name string) error {
	if s.test == "" || s.snaps == nil {
		return errors.New("cannot take a snapshot outside of a test: move it into it(…)")
	}
	return s.snaps.check(s.test, name, text)
}

// checkSnapshot implements assert.snapshot.
func checkSnapshot(s *session, a []scripting.Value) error {
	name, _ := a[1].(string)
	return s.snapshot(snapshotText(a[0], s.words), name)
}

// snapshotText is a value as a snapshot stores it: a batch in text form, in order of
// series, and any other value as code.
func snapshotText(v scripting.Value, words scripting.TestWords) string {
	if o, ok := v.(*scripting.Object); ok && o.Type == batchType {
		out := o.Data.(*output)
		var text []string
		known := map[string]bool{}
		for _, r := range rows(out.t, out.batches...) {
			sample := lines([]row{r}, nil, true, false) // with its metadata after it
			for _, meta := range sample[1:] {
				if !known[meta] {
					known[meta] = true
					text = append(text, meta)
				}
			}
			text = append(text, sample[0])
		}
		return strings.Join(append(text, logRows(out.nanos, out.logs...)...), "\n")
	}
	if text := textOf(v); text != "" && printable(strings.ReplaceAll(text, "\n", "")) {
		return `"""` + "\n" + text + "\n" + `"""`
	}
	return code{words}.value(v)
}

func printable(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) })
}

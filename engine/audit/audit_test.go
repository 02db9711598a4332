package audit_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/weir-run/weir/engine/audit"
)

func open(t *testing.T, dir string) (*audit.Log, *bytes.Buffer) {
	t.Helper()
	var out bytes.Buffer
	l := audit.New(slog.New(slog.NewTextHandler(&out, nil)))
	if err := l.Open(dir); err != nil {
		t.Fatal(err)
	}
	return l, &out
}

func entry(n int) audit.Entry {
	return audit.Entry{Time: time.Unix(int64(n), 0), Who: "token", Remote: "127.0.0.1", Request: fmt.Sprint("POST /x/", n), Outcome: "done", Status: 200}
}

// TestLog: entries are in the file, in memory after a restart, and in the log.
func TestLog(t *testing.T) {
	dir := t.TempDir()
	l, out := open(t, dir)
	l.Add(entry(1))
	l.Add(audit.Entry{Time: time.Unix(2, 0), Who: "socket", Request: "POST /-/reload", Outcome: "refused", Status: 400, Message: strings.Repeat("é\n", 1000)})
	if want := `msg="change by request" audit=true who=token remote=127.0.0.1 request="POST /x/1" outcome=done status=200`; !strings.Contains(out.String(), want) {
		t.Errorf("got %s, want %s", out, want)
	}
	path := filepath.Join(dir, audit.File)
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"time":"1970-01-01T00:00:01Z","who":"token","remote":"127.0.0.1","request":"POST /x/1","outcome":"done","status":200}` + "\n"
	if got := string(text); !strings.HasPrefix(got, want) || strings.Count(got, "\n") != 2 || len(got) > 2000 {
		t.Errorf("got %s", got)
	}
	if fi, err := os.Stat(path); err != nil || fi.Mode().Perm() != 0o600 {
		t.Errorf("got %v, %v, want mode 0600", fi.Mode(), err)
	}
	// A crash left a part of a line.
	if err := os.WriteFile(path, append(text, `{"time":"19`...), 0o600); err != nil {
		t.Fatal(err)
	}
	again := audit.New(slog.New(slog.DiscardHandler))
	again.Add(entry(3)) // before it is open
	if err := again.Open(dir); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range again.Entries() {
		got = append(got, e.Request)
	}
	if fmt.Sprint(got) != "[POST /x/1 POST /-/reload POST /x/3]" {
		t.Errorf("got %q after a restart", got)
	}
}

// TestBounds: the files and the memory are limited, and the newest entries stay.
func TestBounds(t *testing.T) {
	dir := t.TempDir()
	l, _ := open(t, dir)
	const n = 20_000
	for i := range n {
		l.Add(entry(i))
	}
	size := int64(0)
	for _, name := range []string{audit.File, audit.File + ".1"} {
		fi, err := os.Stat(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if size += fi.Size(); fi.Size() > 1<<20 {
			t.Errorf("%s has %d bytes", name, fi.Size())
		}
	}
	if size < 1<<20 {
		t.Errorf("only %d bytes are kept", size)
	}
	again, _ := open(t, dir)
	for _, l := range []*audit.Log{l, again} {
		if es := l.Entries(); len(es) != 200 || es[199].Request != fmt.Sprint("POST /x/", n-1) {
			t.Errorf("got %d entries, the last is %v", len(es), es[len(es)-1])
		}
	}
}

// TestErrors: a file that cannot be used is reported once.
func TestErrors(t *testing.T) {
	dir := t.TempDir()
	l, out := open(t, dir)
	if err := os.Mkdir(filepath.Join(dir, audit.File), 0o700); err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		l.Add(entry(i))
	}
	if got := strings.Count(out.String(), "cannot write the audit log"); got != 1 {
		t.Errorf("got %d errors, want 1: %s", got, out)
	}
	if n := len(l.Entries()); n != 3 {
		t.Errorf("got %d entries, want 3", n)
	}
	if err := audit.New(slog.New(slog.DiscardHandler)).Open(dir); err == nil || !strings.HasPrefix(err.Error(), "cannot read the audit log: ") {
		t.Errorf("got %v for a directory", err)
	}
}

package storage_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/weir-run/weir/engine/storage"
)

var since = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// TestMain is also the other process: it locks a directory until its standard
// input ends.
func TestMain(m *testing.M) {
	dir := os.Getenv("WEIR_TEST_LOCK")
	if dir == "" {
		os.Exit(m.Run())
	}
	l, err := storage.Acquire(dir, since)
	if err != nil {
		fmt.Println(err)
		os.Exit(2)
	}
	fmt.Println("locked")
	io.Copy(io.Discard, os.Stdin)
	if err := l.Release(); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
}

// other is a process that has a directory locked.
type other struct {
	cmd *exec.Cmd
	in  io.WriteCloser
}

func start(t *testing.T, dir string) (o *other, said string) {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), "WEIR_TEST_LOCK="+dir)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	said, err = bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		in.Close()
		cmd.Process.Kill()
		cmd.Wait()
	})
	return &other{cmd, in}, strings.TrimSpace(said)
}

func TestSecondProcess(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new", "data")
	o, said := start(t, dir)
	if said != "locked" {
		t.Fatalf("got %q from the first process", said)
	}
	_, err := storage.Acquire(dir, time.Now())
	locked, ok := errors.AsType[*storage.LockedError](err)
	if !ok {
		t.Fatalf("got error %v, want a LockedError", err)
	}
	if locked.Owner.PID != o.cmd.Process.Pid || !locked.Owner.Since.Equal(since) {
		t.Errorf("got owner %+v, want process %d since %s", locked.Owner, o.cmd.Process.Pid, since)
	}
	for _, want := range []string{fmt.Sprintf("process %d on ", o.cmd.Process.Pid), "since 2026-01-02T03:04:05Z", "--storage.path", dir} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("got %q, want it to name %q", err, want)
		}
	}

	// A process that is killed has released it.
	if err := o.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	o.cmd.Wait()
	l, err := storage.Acquire(dir, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	// Now the other one is refused, and names us.
	_, said = start(t, dir)
	if want := fmt.Sprintf("process %d on", os.Getpid()); !strings.Contains(said, want) {
		t.Errorf("got %q, want it to name %q", said, want)
	}
	if err := l.Release(); err != nil {
		t.Fatal(err)
	}
	o, said = start(t, dir)
	if said != "locked" {
		t.Fatalf("got %q after the release", said)
	}
	// An orderly end.
	o.in.Close()
	if err := o.cmd.Wait(); err != nil {
		t.Errorf("the other process ended with %v", err)
	}
	if l, err = storage.Acquire(dir, time.Now()); err != nil {
		t.Fatal(err)
	}
	if err := l.Release(); err != nil {
		t.Fatal(err)
	}
}

func TestSameProcess(t *testing.T) {
	dir := t.TempDir()
	l, err := storage.Acquire(dir, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	defer l.Release()
	if _, err := storage.Acquire(dir, time.Now()); err == nil {
		t.Error("a directory was locked twice")
	}
}

func TestAcquireErrors(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := storage.Acquire(file, time.Now()); err == nil || !strings.Contains(err.Error(), "it is a file; name a directory with --storage.path") {
		t.Errorf("got %v for a file", err)
	}
	t.Chdir(dir)
	if _, err := storage.Acquire("", time.Now()); err == nil || !strings.Contains(err.Error(), "--storage.path is empty") {
		t.Errorf("got %v for an empty name", err)
	}
	data := filepath.Join(dir, "data")
	l, err := storage.Acquire(data, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	defer l.Release()
	fi, err := os.Stat(data)
	if err != nil {
		t.Fatal(err)
	}
	if runtime.GOOS != "windows" && fi.Mode().Perm() != 0o700 {
		t.Errorf("got mode %o, want 700", fi.Mode().Perm())
	}
	if l.Dir() != data {
		t.Errorf("got directory %q, want %q", l.Dir(), data)
	}
}

func TestCheck(t *testing.T) {
	f := func(dir, want string) {
		t.Helper()
		err := storage.Check(dir)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("got %v for %q, want %q", err, dir, want)
		}
	}
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	f("", "--storage.path is empty")
	f(filepath.Join(dir, "nowhere"), "nowhere: it does not exist; name the storage directory of a weir with --storage.path")
	f(file, "file: it is a file; name the storage")
	f(dir, ": no weir has run with it; name the storage")
	l, err := storage.Acquire(dir, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	f(dir, "")
	if err := l.Release(); err != nil {
		t.Fatal(err)
	}
	f(dir, "")
}

func TestCheckPrivate(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("there are no such permissions")
	}
	dir := t.TempDir()
	f := func(mode os.FileMode, want string) {
		t.Helper()
		if err := os.Chmod(dir, mode); err != nil {
			t.Fatal(err)
		}
		got := ""
		if err := storage.CheckPrivate(dir); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%#o: got %q, want %q", mode, got, want)
		}
	}
	f(0o700, "")
	f(0o755, "")
	f(0o770, "other users can change files in "+dir+", which has mode 0770: run chmod go-w on it")
	f(0o702, "other users can change files in "+dir+", which has mode 0702: run chmod go-w on it")
}

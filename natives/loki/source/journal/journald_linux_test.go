package journal_test

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

const (
	journaldPath    = "/lib/systemd/systemd-journald"
	journaldEntries = 30_000
)

// errNamespace means that this user may not create namespaces.
var errNamespace = errors.New("cannot mount")

// withJournald is the process of TestJournald. It has its own /run and /var/log,
// in which its own journald runs, and reads the journal of "this machine".
func withJournald(dir string) error {
	runtime.LockOSThread() // journald's Pdeathsig waits for the end of this thread
	for _, at := range []string{"/run", "/var/log"} {
		if err := unix.Mount("tmpfs", at, "tmpfs", 0, "size=1g"); err != nil {
			return fmt.Errorf("%w on %s: %w", errNamespace, at, err)
		}
	}
	for _, d := range []string{"/run/systemd/journal", "/run/systemd/journald.conf.d", "/var/log/journal"} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			return err
		}
	}
	conf := "[Journal]\nStorage=persistent\nSystemMaxFileSize=8M\nRateLimitBurst=0\nRateLimitIntervalSec=0\nAudit=no\nReadKMsg=no\n"
	if err := os.WriteFile("/run/systemd/journald.conf.d/test.conf", []byte(conf), 0o644); err != nil {
		return err
	}
	daemon := exec.Command(journaldPath)
	daemon.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := daemon.Start(); err != nil {
		return err
	}
	var to net.Conn
	for start := time.Now(); to == nil; {
		var err error
		if to, err = net.Dial("unixgram", "/run/systemd/journal/socket"); err != nil && time.Since(start) > time.Minute {
			return err
		}
	}
	read := make(chan error, 1)
	go func() { read <- readForever(dir, "", "TEST=1") }()
	for i := range journaldEntries {
		var err error
		switch i {
		case journaldEntries / 6:
			err = daemon.Process.Signal(syscall.SIGUSR1) // it copies its journal from /run to /var
		case journaldEntries / 2:
			err = daemon.Process.Signal(syscall.SIGUSR2) // it rotates its journal
		}
		if err == nil {
			_, err = fmt.Fprintf(to, "MESSAGE=%d\nTEST=1\nTEXT=%s\nID=%x\n", i+1, strings.Repeat("x", i%500), i)
		}
		if err != nil {
			return err
		}
	}
	return <-read
}

// TestJournald reads the journal of a real journald while it copies the journal
// from /run to /var and rotates it: every entry arrives exactly once.
func TestJournald(t *testing.T) {
	if testing.Short() {
		t.Skip("runs journald for some seconds")
	}
	if _, err := os.Stat(journaldPath); err != nil {
		t.Skip("systemd-journald is not installed (Debian: systemd)")
	}
	if os.Geteuid() != 0 {
		t.Skip("only root can run a journald of its own")
	}
	dir := t.TempDir()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), journaldVariable+"="+dir)
	cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS}
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	if err := cmd.Start(); err != nil {
		t.Skipf("cannot start a process with directories of its own: %v", err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	waitArrived(t, dir, journaldEntries, func() {
		select {
		case <-ended:
			if strings.Contains(stderr.String(), errNamespace.Error()) {
				t.Skip(stderr.String())
			}
			t.Fatalf("the process with journald has ended: %s", stderr.String())
		default:
		}
	})
	if err := cmd.Process.Kill(); err != nil {
		t.Error(err)
	}
	<-ended
	b, err := os.ReadFile(dir + "/out")
	if err != nil {
		t.Fatal(err)
	}
	if got, n := strings.Count(string(b), " end\n"), len(arrived(t, dir)); got != journaldEntries || n != journaldEntries {
		t.Errorf("%d lines with %d different entries have arrived, want %d of both", got, n, journaldEntries)
	}
}

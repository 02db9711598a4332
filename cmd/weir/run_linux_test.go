package main

import (
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestRunTerminal: what weir run prints at a terminal is also in the log of the web UI and of
// support bundles, except the link, which is a secret.
func TestRunTerminal(t *testing.T) {
	dir := t.TempDir()
	config, storage := filepath.Join(dir, "config.alloy"), filepath.Join(dir, "data")
	if err := os.WriteFile(config, []byte("prometheus.echo \"a\" { }\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	host, tty := openTerminal(t)
	cmd := exec.CommandContext(t.Context(), "weir", "run", "--storage.path="+storage, "--server.http.listen-addr=127.0.0.1:0", config)
	cmd.Env = append(os.Environ(), "TERM=xterm", "NO_COLOR=1")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = tty, tty, tty
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	tty.Close()
	var printed strings.Builder
	await := func(text string) {
		t.Helper()
		b := make([]byte, 4<<10)
		for !strings.Contains(printed.String(), text) {
			n, err := host.Read(b)
			if err != nil {
				t.Fatalf("%v before %q in %q", err, text, printed.String())
			}
			printed.Write(b[:n])
		}
	}
	await("started config.alloy")
	if err := os.WriteFile(config, []byte("prometheus.echo \"a\" {\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	await("cannot reload config.alloy")
	if !strings.Contains(printed.String(), "/-/page?token=") {
		t.Errorf("no link in %q", printed.String())
	}

	log, err := readAnswer(ask(t.Context(), storage, http.MethodGet, "/api/v0/log", "text/plain", nil))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`level=info msg="started config.alloy `, `level=error msg="cannot reload config.alloy: `, `level=info msg="page: http://127.0.0.1:`} {
		if !strings.Contains(log, want) {
			t.Errorf("no %s in the log:\n%s", want, log)
		}
	}
	if strings.Contains(log, "token=") {
		t.Errorf("the link is in the log:\n%s", log)
	}
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
}

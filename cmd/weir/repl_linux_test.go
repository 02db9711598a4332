package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// TestReplTerminal: at a terminal, a line is edited and completed, Ctrl-C stops an endless
// loop, Ctrl-D ends the program, and only the user can read the history.
func TestReplTerminal(t *testing.T) {
	t.Run("lua", func(t *testing.T) {
		atTerminal(t, "lua", func(step func(keys, want string)) {
			step("", "lua 1> ")
			step("lon", "lon")
			step("g = { \"漢字\", 3 }\r", "lua 2> ")
			step("long\r", "{ \"漢字\", 3 }\r\nlua 3> ")
			step("batch:drop_w\t", "batch:drop_where")
			step("\x03", "lua 3> ")
			step("print('loops') while true do end\r", "\r\nloops\r\n")
			step("\x03", "the variables of earlier statements are gone\x1b[0m\r\nlua 4> ")
			step("\x1b[A\x1b[A", "lua 4> long")
			step("\r", "nil\r\nlua 5> ")
		})
	})
	t.Run("js", func(t *testing.T) {
		atTerminal(t, "js", func(step func(keys, want string)) {
			step("", "javascript 1> ")
			step("const long = [\r", "| ")
			step("\"漢字\", 3]\r", "javascript 2> ")
			step("long\r", "[\"漢字\", 3]\r\njavascript 3> ")
			step("batch.dropW\t", "batch.dropWhere")
			step("\x03", "javascript 3> ")
			step("console.log('loops'); while (true) {}\r", "\r\nloops\r\n")
			step("\x03", "the variables of earlier statements are gone\x1b[0m\r\njavascript 4> ")
			step("typeof long\r", "\"undefined\"\r\njavascript 5> ")
		})
	})
}

// atTerminal runs weir repl at a terminal. steps types keys and waits for an output.
func atTerminal(t *testing.T, lang string, steps func(step func(keys, want string))) {
	dir := t.TempDir()
	input := filepath.Join(dir, "in.prom")
	if err := os.WriteFile(input, []byte("up{job=\"a\"} 1 1000\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	host, tty := openTerminal(t)
	cmd := exec.CommandContext(t.Context(), "weir", "repl", "--input="+input, "--time=10m", "--lang="+lang)
	cmd.Env = append(os.Environ(), "TERM=xterm", "NO_COLOR=", "XDG_CACHE_HOME="+dir)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = tty, tty, tty
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	tty.Close()
	out := bufio.NewReader(host)
	step := func(keys, want string) {
		t.Helper()
		if _, err := io.WriteString(host, keys); err != nil {
			t.Fatal(err)
		}
		var seen strings.Builder
		for !strings.HasSuffix(seen.String(), want) {
			b, err := out.ReadByte()
			if err != nil {
				t.Fatalf("%v before %q in %q", err, want, seen.String())
			}
			seen.WriteByte(b)
		}
	}
	steps(step)
	step("\x04", "\r\n")
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
	info, err := os.Stat(filepath.Join(dir, "weir", "repl_history_"+replLanguages[lang]))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("history: %v, %v", info, err)
	}
}

// openTerminal returns both ends of a pseudo-terminal.
func openTerminal(t *testing.T) (host, tty *os.File) {
	t.Helper()
	host, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Skipf("there are no pseudo-terminals: %v", err)
	}
	t.Cleanup(func() { host.Close() })
	n, err := unix.IoctlGetInt(int(host.Fd()), unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(int(host.Fd()), unix.TIOCSPTLCK, 0)
	}
	if err == nil {
		err = unix.IoctlSetWinsize(int(host.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: 80})
	}
	if err == nil {
		tty, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|syscall.O_NOCTTY, 0)
	}
	if err != nil {
		t.Fatalf("cannot open a terminal: %v", err)
	}
	return host, tty
}

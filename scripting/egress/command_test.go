package egress_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weir-run/weir/scripting/egress"
)

// program is what a program of a test does.
func program(args []string) {
	switch args[0] {
	case "args":
		fmt.Printf("%q", args[1:])
	case "surroundings":
		dir, _ := os.Getwd()
		env := os.Environ()
		slices.Sort(env)
		fmt.Printf("%s\n%s", dir, strings.Join(env, "\n"))
	case "copy":
		_, _ = io.Copy(os.Stdout, os.Stdin)
	case "fail":
		fmt.Fprint(os.Stderr, "no such thing")
		os.Exit(3)
	case "flood":
		for {
			if _, err := os.Stdout.Write(make([]byte, 4096)); err != nil {
				return
			}
		}
	case "hold": // a connection, for as long as it lives
		hold(args[1])
	case "start", "leave": // a child that holds a connection
		child := exec.Command(os.Args[0], "program", "hold", args[1])
		child.Stdout = os.Stdout
		if err := child.Start(); err != nil {
			panic(err)
		}
		if args[0] == "start" {
			hold(args[1])
		}
		c, err := net.Dial("tcp", args[2]) // until the test has seen the child
		if err != nil {
			panic(err)
		}
		_, _ = io.ReadAll(c)
	}
}

func hold(address string) {
	c, err := net.Dial("tcp", address)
	if err != nil {
		panic(err)
	}
	_, _ = io.ReadAll(c)
}

// command is a program of a test.
func command(t *testing.T, args ...string) egress.Command {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return egress.Command{Path: self, Args: append([]string{"program"}, args...), SearchPath: "/somewhere", MaxOutput: 1 << 16}
}

func TestRun(t *testing.T) {
	run := func(c egress.Command) string {
		t.Helper()
		got, err := egress.Run(t.Context(), c)
		if err != nil {
			return strings.ReplaceAll(err.Error(), c.Path, "PROGRAM")
		}
		return fmt.Sprintf("%d %s|%s", got.Code, got.Stdout, got.Stderr)
	}
	f := func(c egress.Command, want string) {
		t.Helper()
		if got := run(c); got != want {
			t.Errorf("%q: got %q, want %q", c.Args, got, want)
		}
	}
	f(command(t, "args", "a b", "$HOME", "; rm -rf /", "*"), `0 ["a b" "$HOME" "; rm -rf /" "*"]|`)
	f(command(t, "fail"), "3 |no such thing")
	in := command(t, "copy")
	in.Stdin = "some text"
	f(in, "0 some text|")
	f(command(t, "copy"), "0 |") // there is nothing to read
	f(command(t, "flood"), "cannot run PROGRAM: it is too large: it wrote more than 65536 bytes")
	if runtime.GOOS != "windows" { // which adds what it needs itself
		f(command(t, "surroundings"), "0 /\nLC_ALL=C\nPATH=/somewhere|")
	}
	missing := command(t)
	missing.Path = filepath.Join(t.TempDir(), "missing")
	if got := run(missing); !strings.HasPrefix(got, "cannot run PROGRAM: ") || strings.Count(got, "PROGRAM") != 1 {
		t.Errorf("got %q", got)
	}
}

// listen returns an address and what comes there.
func listen(t *testing.T) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

func accept(t *testing.T, l net.Listener) net.Conn {
	t.Helper()
	if err := l.(*net.TCPListener).SetDeadline(time.Now().Add(2 * time.Minute)); err != nil {
		t.Fatal(err)
	}
	c, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// awaitEnd waits until the process at the other end is no more.
func awaitEnd(t *testing.T, c net.Conn) {
	t.Helper()
	if _, err := io.ReadAll(c); err != nil && !errors.Is(err, net.ErrClosed) && !strings.Contains(err.Error(), "reset") {
		t.Error(err)
	}
}

// TestRunKills holds that a program is killed with its children when the
// context ends.
func TestRunKills(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("there are no process groups")
	}
	l := listen(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	done := make(chan error, 1)
	go func() {
		_, err := egress.Run(ctx, command(t, "start", l.Addr().String()))
		done <- err
	}()
	a, b := accept(t, l), accept(t, l)
	cancel(errors.New("it took too long"))
	awaitEnd(t, a)
	awaitEnd(t, b)
	if err := <-done; err == nil || !strings.HasSuffix(err.Error(), ": it took too long") {
		t.Errorf("got %v", err)
	}
}

// TestRunLeaves holds that what a program leaves running is killed, and does not
// keep the call waiting.
func TestRunLeaves(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("there are no process groups")
	}
	child, main := listen(t), listen(t)
	done := make(chan error, 1)
	go func() {
		_, err := egress.Run(t.Context(), command(t, "leave", child.Addr().String(), main.Addr().String()))
		done <- err
	}()
	held := accept(t, child)
	accept(t, main).Close() // it may end
	if err := <-done; err != nil {
		t.Error(err)
	}
	awaitEnd(t, held)
}

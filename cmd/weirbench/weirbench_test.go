package main

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/weir-run/weir/cmd/weirbench/bench"
)

// asProgram makes the test binary run as weirbench, because the runner starts its
// own executable.
const asProgram = "WEIRBENCH_TEST_AS_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		main()
	}
	os.Setenv(asProgram, "1")       // for the child processes
	flag.Set("test.parallel", "16") // concurrent tests wait most of the time
	os.Exit(m.Run())
}

// weirbench runs one command line.
func weirbench(t *testing.T, args ...string) (code int, out, errOut string) {
	t.Helper()
	var o, e bytes.Buffer
	code = execute(t.Context(), append([]string{}, args...), strings.NewReader(""), &o, &e) // nil would select the arguments of the test
	return code, o.String(), e.String()
}

func TestCommandLine(t *testing.T) {
	f := func(code int, want string, args ...string) {
		t.Helper()
		got, out, errOut := weirbench(t, args...)
		if got != code || !strings.Contains(out+errOut, want) {
			t.Errorf("weirbench %s: got %d and\n%s%s\nwant %d and %q", strings.Join(args, " "), got, out, errOut, code, want)
		}
	}
	f(0, "Measure collectors")
	f(0, "passthrough  100 targets × 1,000 series every 5 s", "run", "--help")
	f(2, "unknown command", "measure")
	f(2, `cannot run scenario "fast"`, "run", "fast")
	f(2, `cannot run scenario "fast"`, "run", "churn", "fast")
	f(2, "cannot run all together", "run", "all", "churn")
	f(2, "cannot rename 2 of the series", "run", "--churn=2")
	f(2, `cannot compress "yes": off, accept and always are known`, "run", "--gzip=yes")
	f(2, "cannot measure 0 rounds", "run", "--rounds=0")
	f(2, "cannot serve 0 targets", "run", "--targets=0")
	f(2, "multiple of the interval", "run", "--measure=7s")
	f(2, "unknown flag", "run", "--round=3")
	f(0, "passthrough    a million lines of 200 bytes", "logs", "--help")
	f(2, `cannot run scenario "fast": there are passthrough, native`, "logs", "native", "fast")
	f(2, "cannot measure 0 rounds", "logs", "--rounds=0")
	f(2, "without lines", "logs", "--lines=0")
	f(2, "at least 1s", "logs", "files", "--measure=1ms")
	f(2, "cannot write 0 files", "logs", "--files=0")
	f(1, "none of weir=/nowhere is there for lua", "logs", "lua", "--collectors=weir=/nowhere")
	f(1, `cannot use collector "vmagent": there are floor, rsyslog, syslog-ng, weir`, "logs", "--collectors=vmagent")
	f(1, "there are \n", "logs", "--templates="+t.TempDir())
	f(2, "cannot write 0 files", "files", "--files=0")
	f(1, "cannot make a log file", "files", "--dir=/nowhere")
	f(2, "--push says where to", "floor", "*.log")
	f(1, "cannot find files", "floor", "--push=http://127.0.0.1:0", "[")
	f(0, "weirbench version go", "--version")
	f(2, "cannot break anything so", "faults", "--steps=0")
	f(1, "cannot find weir", "faults", "--weir=/nowhere")
	f(2, "cannot measure reloads with these settings", "reload", "--saves=0")
	f(2, "cannot make a config of 5 components", "reload", "--configs=5")
	f(1, "cannot find weir", "reload", "--weir=/nowhere")
	f(2, "cannot tell anything so quickly", "outage", "--down=1ms")
	f(1, "cannot find weir", "outage", "--collector=weir=/nowhere")
	f(2, "cannot serve -1 targets", "targets", "--targets=-1")
	f(2, `format "json"`, "targets", "--format=json")
	f(1, "cannot listen for remote writes", "sink", "--listen-addr=127.0.0.1:x")
	f(1, `cannot use collector "alloy": there are prometheus, prometheus3, vmagent, weir`, "run", "--collectors=alloy")
	f(1, "none of weir=/nowhere, vmagent=/nowhere is there for passthrough; `make build peers`", "run", "--collectors=weir=/nowhere,vmagent=/nowhere")
	f(1, "skipped: cannot find weir: none of /nowhere is there", "run", "--collectors=weir=/nowhere")
	f(1, "there are \n", "run", "--templates="+t.TempDir())
}

// TestServers uses targets and sink as the runner does: they print their
// addresses in a line of JSON, and end when their standard input is closed.
func TestServers(t *testing.T) {
	f := func(targets int, args ...string) {
		t.Helper()
		in, stdin, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		stdout, out, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		code := make(chan int)
		var errOut bytes.Buffer
		go func() {
			code <- execute(context.Background(), append(args, "--until-eof"), in, out, &errOut)
			out.Close()
		}()
		var h bench.Hello
		if err := json.NewDecoder(stdout).Decode(&h); err != nil {
			t.Fatalf("%s: %v", args, err)
		}
		if len(h.Targets) != targets || (h.Write != "") != (args[0] == "sink") || (h.Push != "") != (args[0] == "sink") {
			t.Errorf("%s says %+v", args, h)
		}
		resp, err := http.Get(h.Control + "/stats")
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != 200 {
			t.Errorf("%s answers %s", args, resp.Status)
		}
		stdin.Close()
		if got := <-code; got != 0 {
			t.Errorf("%s ends with %d: %s", args, got, &errOut)
		}
	}
	f(3, "targets", "--targets=3")
	f(0, "sink")
	f(0, "files", "--dir="+t.TempDir())
}

// TestServersForPeople ends the server with a signal, for which the context
// stands.
func TestServersForPeople(t *testing.T) {
	f := func(want string, args ...string) {
		t.Helper()
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		var out, errOut bytes.Buffer
		if code := execute(ctx, args, strings.NewReader(""), &out, &errOut); code != 0 || !strings.Contains(out.String(), want) {
			t.Errorf("%s: got %d, %q, %q", args, code, &out, &errOut)
		}
	}
	f("/metrics\n", "targets", "--targets=2")
	f("/api/v1/write\n", "sink")
	f("/loki/api/v1/push\n", "sink")
	f("control http://127.0.0.1:", "files", "--dir="+t.TempDir())
}

package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-dap"

	"github.com/weir-run/weir/cmd/weir/starter"
	"github.com/weir-run/weir/scripting/debug"
	"github.com/weir-run/weir/scripting/debug/debugtest"
)

// debugs is a running weir with the node ops.tidy.default, an example of 'weir new', to
// which samples come continuously.
type debugs struct {
	t      *testing.T
	dir    string
	script string // its path
	weir   *exec.Cmd
}

func newDebugs(t *testing.T, lang string) *debugs {
	t.Helper()
	d := &debugs{t: t, dir: t.TempDir()}
	d.script = filepath.Join(d.dir, "scripts", "ops", "tidy."+lang)
	d.run("new", "component", "ops/tidy", "--lang="+lang)
	for name, text := range map[string]string{
		"config.alloy": `ops.ticks "default" {
	forward_to = [ops.tidy.default.receiver]
}

ops.tidy "default" {
	region     = "eu"
	forward_to = [prometheus.echo.default.receiver]
}

prometheus.echo "default" { }
`,
		"scripts/ops/ticks.lua": `local weir = require "weir"
return weir.source {
  interval = "100ms",
  poll = function(ctx)
    ctx.emit { name = "tick", value = 1 }
  end,
}
`,
	} {
		if err := os.WriteFile(filepath.Join(d.dir, filepath.FromSlash(name)), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	d.weir = d.command("run", "--server.http.listen-addr=127.0.0.1:0", "config.alloy")
	if err := d.weir.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.stop)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		if _, err := fetch(d.storage(), "/-/ready"); err == nil {
			return d
		}
		select {
		case <-tick.C:
		case <-t.Context().Done():
			t.Fatal("weir did not start")
		}
	}
}

func (d *debugs) storage() string { return filepath.Join(d.dir, "data-weir") }

func (d *debugs) command(args ...string) *exec.Cmd {
	cmd := exec.CommandContext(d.t.Context(), "weir", args...)
	cmd.Dir = d.dir
	return cmd
}

func (d *debugs) run(args ...string) {
	d.t.Helper()
	if out, err := d.command(args...).CombinedOutput(); err != nil {
		d.t.Fatalf("weir %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

// stop ends weir.
func (d *debugs) stop() {
	if d.weir.ProcessState == nil {
		_ = d.weir.Process.Signal(syscall.SIGTERM) // it may have ended
		_ = d.weir.Wait()
	}
}

// line returns the number of the first line of the script that contains a text.
func (d *debugs) line(text string) int {
	d.t.Helper()
	b, err := os.ReadFile(d.script)
	if err != nil {
		d.t.Fatal(err)
	}
	i := slices.IndexFunc(strings.Split(string(b), "\n"), func(line string) bool { return strings.Contains(line, text) })
	if i < 0 {
		d.t.Fatalf("no line of %s contains %s", d.script, text)
	}
	return i + 1
}

// start starts a command with its standard input and output.
func (d *debugs) start(args ...string) (cmd *exec.Cmd, in io.WriteCloser, out io.Reader) {
	d.t.Helper()
	cmd = d.command(args...)
	in, err := cmd.StdinPipe()
	if err != nil {
		d.t.Fatal(err)
	}
	out, err = cmd.StdoutPipe()
	if err != nil {
		d.t.Fatal(err)
	}
	cmd.Stderr = &bytes.Buffer{}
	if err := cmd.Start(); err != nil {
		d.t.Fatal(err)
	}
	return cmd, in, out
}

// vscode returns the contents of the files that 'weir new' created for VS Code.
func (d *debugs) vscode() (launch, extension map[string]any) {
	d.t.Helper()
	for _, f := range starter.Debugger("") {
		text, err := os.ReadFile(filepath.Join(d.dir, filepath.FromSlash(f.Path)))
		if err != nil {
			d.t.Fatal(err)
		}
		into := &launch
		if strings.HasSuffix(f.Path, "package.json") {
			into = &extension
		}
		if err := json.Unmarshal(text, into); err != nil {
			d.t.Fatalf("%s: %v", f.Path, err)
		}
	}
	return launch, extension
}

// TestDebugEditor debugs a node as VS Code does with the files that 'weir new' created,
// until weir stops.
func TestDebugEditor(t *testing.T) {
	for _, lang := range starter.Languages() {
		t.Run(lang, func(t *testing.T) { testDebugEditor(t, lang) })
	}
}

func testDebugEditor(t *testing.T, lang string) {
	d := newDebugs(t, lang)
	launch, extension := d.vscode()
	contributes := extension["contributes"].(map[string]any)
	debugger := contributes["debuggers"].([]any)[0].(map[string]any)
	configuration := launch["configurations"].([]any)[0].(map[string]any)
	input := launch["inputs"].([]any)[0].(map[string]any)
	if configuration["type"] != debugger["type"] || debugger["runtime"] != "weir" {
		t.Errorf("%v does not fit %v", configuration, debugger)
	}
	attach := debugger["configurationAttributes"].(map[string]any)[configuration["request"].(string)].(map[string]any)
	properties := attach["properties"].(map[string]any)
	target := reflect.TypeFor[debug.Target]()
	if len(properties) != target.NumField() {
		t.Errorf("the extension has the attributes %v", properties)
	}
	attributes := map[string]any{}
	for i := range target.NumField() {
		name := target.Field(i).Tag.Get("json")
		if properties[name] == nil || configuration[name] == nil {
			t.Errorf("there is no attribute %s in launch.json or in the extension", name)
			continue
		}
		attributes[name] = strings.NewReplacer("${input:"+input["id"].(string)+"}", input["default"].(string), "${workspaceFolder}", d.dir).Replace(configuration[name].(string))
	}
	text, err := json.Marshal(attributes)
	if err != nil {
		t.Fatal(err)
	}

	var args []string
	for _, a := range debugger["runtimeArgs"].([]any) {
		args = append(args, a.(string))
	}
	cmd, in, out := d.start(args...)
	c := debugtest.New(t, out, in)
	c.Initialize()
	for attributes, want := range map[string]string{
		`{"node": "ops.tidi.default", "storagePath": "` + d.storage() + `"}`:                                 "there is no node ops.tidi.default; did you mean",
		`{"node": "prometheus.echo.default", "storagePath": "` + d.storage() + `"}`:                          "prometheus.echo.default is no script",
		`{"node": "ops.ticks.default", "storagePath": "` + d.storage() + `"}`:                                "ops.ticks.default cannot be debugged",
		`{"node": "ops.tidy.default", "where": "1 +", "storagePath": "` + d.storage() + `"}`:                 "where: ",
		`{"node": "ops.tidy.default", "storagePath": "` + filepath.ToSlash(filepath.Join(d.dir, "x")) + `"}`: "x",
		`{}`: `there is no attribute "node"`,
	} {
		if got := c.Refused("attach", &dap.AttachRequest{Arguments: []byte(attributes)}); !strings.Contains(got, want) {
			t.Errorf("%s: got %s, want %s", attributes, got, want)
		}
	}
	line := d.line("labels.region")
	set := c.Attach(string(text), d.script, dap.SourceBreakpoint{Line: line})
	if !set[0].Verified {
		t.Fatalf("got %+v", set)
	}
	c.Stopped()
	if err := d.weir.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	c.Output("the node was removed, or weir stops")
	debugtest.Event[*dap.TerminatedEvent](c)
	c.Closed()
	in.Close()
	if err := cmd.Wait(); err != nil {
		t.Errorf("weir debug: %v\n%s", err, cmd.Stderr)
	}
	if err := d.weir.Wait(); err != nil {
		t.Errorf("weir run: %v", err)
	}
}

var listeningAt = regexp.MustCompile(`127\.0\.0\.1:\d+`)

// TestDebugListen debugs a node over TCP with one client after another.
func TestDebugListen(t *testing.T) {
	d := newDebugs(t, starter.TypeScript)
	cmd := d.command("debug", "ops.tidy.default", "--listen=127.0.0.1:0")
	status, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(status)
	lines.Scan()
	addr := listeningAt.FindString(lines.Text())
	if addr == "" {
		t.Fatalf("got %s", lines.Text())
	}
	dial := func() (*debugtest.Client, net.Conn) {
		t.Helper()
		conn, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		return debugtest.New(t, conn, conn), conn
	}
	for range 2 {
		c, conn := dial()
		c.Start(d.script, dap.SourceBreakpoint{Line: d.line("labels.region")})
		c.Stopped()
		debugtest.Do[*dap.DisconnectResponse](c, "disconnect", &dap.DisconnectRequest{})
		c.Closed()
		conn.Close()
	}
	c, conn := dial()
	defer conn.Close()
	c.Start(d.script, dap.SourceBreakpoint{Line: d.line("labels.region")})
	c.Stopped()
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	c.Closed()
	if _, err := io.Copy(io.Discard, status); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("weir debug: %v", err)
	}
}

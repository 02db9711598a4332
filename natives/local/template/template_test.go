package template_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/component/componenttest"
	"github.com/weir-run/weir/natives/local/template"
	"github.com/weir-run/weir/natives/remote/remotetest"
)

// node is a running local.template that writes dir/out.
type node struct {
	*componenttest.Node
	t    *testing.T
	dir  string
	c    component.Component
	stop func()
}

func arguments(t *testing.T, dir, body string) *template.Arguments {
	t.Helper()
	return componenttest.Arguments[*template.Arguments](t, template.Registration(), fmt.Sprintf("destination = %q\n", filepath.Join(dir, "out"))+strings.ReplaceAll(body, "DIR", dir))
}

func build(t *testing.T, dir, body string) *node {
	t.Helper()
	n := &node{Node: componenttest.New(t, "local.template.x"), t: t, dir: dir}
	n.DataPath = filepath.Join(dir, "data")
	n.c = n.Build(t, template.Registration(), arguments(t, dir, body))
	n.stop = n.Start()
	return n
}

func (n *node) Start() func() { return n.Run(n.t, n.c) }

func (n *node) update(body string) {
	n.t.Helper()
	if err := n.c.(component.Updater).Update(arguments(n.t, n.dir, body)); err != nil {
		n.t.Fatal(err)
	}
}

// settle waits until the current arguments were applied, and returns the error.
func (n *node) settle() (err error) {
	n.t.Helper()
	remotetest.Eventually(n.t, "the template is rendered", func() error {
		var done bool
		if done, err = n.c.(component.Task).Finished(); !done {
			return fmt.Errorf("not yet")
		}
		return nil
	})
	return err
}

func (n *node) want(file, text string) {
	n.t.Helper()
	b, err := os.ReadFile(filepath.Join(n.dir, file))
	if err != nil || string(b) != text {
		n.t.Errorf("%s: got %q, %v, want %q", file, b, err, text)
	}
}

func (n *node) fails(message string) {
	n.t.Helper()
	if err := n.settle(); err == nil || !strings.Contains(err.Error(), message) {
		n.t.Errorf("got error %v, want %q", err, message)
	}
	if h := n.Health(); h.State != component.Unhealthy || !strings.Contains(h.Message, message) {
		n.t.Errorf("got health %+v, want unhealthy: %q", h, message)
	}
}

func TestFunctions(t *testing.T) {
	f := func(text, want string) {
		t.Helper()
		n := build(t, t.TempDir(), fmt.Sprintf("template = %q\n", text)+`
values = {
	"/app/a" = "10.0.1.1:80", "/app/b" = "10.0.0.2:80", "/app/sub/x/y" = "deep", "/app/sub/z" = "2",
	"/json" = "{\"name\": \"n\", \"list\": [1, 2]}", "/array" = "[\"p\", \"q\"]", "/count" = "3", "/top" = "t",
}
data = { hosts = ["h1", "h2"], nested = { deep = "d" }, n = 5 }
env  = { HOME = "/root" }`)
		if err := n.settle(); err != nil {
			t.Errorf("%s: %v", text, err)
		} else {
			n.want("out", want)
		}
		n.stop()
	}
	f(`{{getv "/top"}} {{getv "/none" "default"}} {{exists "/top"}} {{exists "/none"}}`, "t default true false")
	f(`{{with get "/app/a"}}{{.Key}}={{.Value}}{{end}}`, "/app/a=10.0.1.1:80")
	f(`{{range gets "/app/*"}}{{base .Key}}={{.Value}};{{end}}`, "a=10.0.1.1:80;b=10.0.0.2:80;")
	f(`{{range getvs "/app/*"}}{{.}};{{end}}`, "10.0.0.2:80;10.0.1.1:80;")
	f(`{{range ls "/app"}}{{.}};{{end}}|{{range lsdir "/app"}}{{.}};{{end}}|{{range ls "/app/sub"}}{{.}};{{end}}`, "a;b;sub;|sub;|x;z;")
	f(`{{range ls "/top"}}{{.}}{{end}}|{{range ls "/none"}}{{.}}{{end}}|{{range lsdir "/"}}{{.}}{{end}}`, "top||app")
	f(`{{$d := json (getv "/json")}}{{$d.name}} {{range $d.list}}{{.}}{{end}} {{range jsonArray (getv "/array")}}{{.}}{{end}}`, "n 12 pq")
	f(`{{$u := split (getv "/app/a") ":"}}{{index $u 0}} {{join (getvs "/app/*") ","}} {{replace "a-b-c" "-" "_" 1}}`, "10.0.1.1 10.0.0.2:80,10.0.1.1:80 a_b-c")
	f(`{{toUpper "a"}}{{toLower "B"}} {{dir "/a/b"}} {{trimSuffix "a.b" ".b"}} {{contains "abc" "b"}}`, "Ab /a a true")
	f(`{{range seq 1 (atoi (getv "/count"))}}{{.}}{{end}} {{add 1 2}}{{sub 3 1}}{{mul 2 3}}{{div 7 2}}{{mod 7 2}}`, "123 32631")
	f(`{{base64Encode "Value"}} {{base64Decode "VmFsdWU="}} {{parseBool "true"}}`, "VmFsdWU= Value true")
	f(`{{$m := map "a" 1 "b" "x"}}{{index $m "a"}}{{index $m "b"}}`, "1x")
	f(`{{range reverse (getvs "/app/*")}}{{.}};{{end}}{{range sortByLength (split "ccc,a,bb" ",")}}{{.}};{{end}}`, "10.0.1.1:80;10.0.0.2:80;a;bb;ccc;")
	f(`{{range sortKVByLength (gets "/app/*")}}{{.Key}};{{end}}`, "/app/a;/app/b;")
	f(`{{getenv "HOME"}} {{getenv "PATH"}} {{getenv "NONE" "d"}}`, "/root  d")
	f(`{{if gt (len (datetime.Format "2006")) 3}}y{{end}} {{fileExists "/"}} {{fileExists "/none"}} {{range lookupIP "127.0.0.1"}}{{.}}{{end}}`, "y true false 127.0.0.1")
	f(`{{range .hosts}}{{.}};{{end}}{{.nested.deep}} {{.n}} {{"x" | repeat 3}} {{"a" | quote}} {{list 1 2 | len}}`, "h1;h2;d 5 xxx \"a\" 2")
}

func TestErrors(t *testing.T) {
	f := func(text, want string) {
		t.Helper()
		n := build(t, t.TempDir(), fmt.Sprintf("template = %q\nvalues = {\"/a\" = \"1\"}", text))
		n.fails(want)
		if _, err := os.Stat(filepath.Join(n.dir, "out")); err == nil {
			t.Errorf("%s: wrote a file", text)
		}
		n.stop()
	}
	f(`{{getv "/none"}}`, `there is no key "/none"`)
	f(`{{.none}}`, `no entry for key "none"`)
	f(`{{gets "["}}`, "is not a pattern")
	f(`{{div 1 0}}`, "division by zero")
	f(`{{seq 1 1000000000}}`, "more than 100000 numbers")
	f(`{{repeat 1000000000 "x"}}`, "exceeds the limit")
	f(`{{until 1000000000}}`, "exceeds the limit")
	f(`{{indent 1000000000 "x"}}`, "cannot indent")
	f(`{{range until 100000}}{{range until 100000}}xxxxxxxxxx{{end}}{{end}}`, "would have more than")
	f(`{{define "x"}}{{template "x"}}{{end}}{{template "x"}}`, "exceeded maximum template depth")
	f(`{{index (getvs "/*") 7}}`, "out of range")
}

func TestValidate(t *testing.T) {
	f := func(body, want string) {
		t.Helper()
		_, got := componenttest.Decode[*template.Arguments](template.Registration(), body)
		if !strings.Contains(got, want) || want == "" && got != "" {
			t.Errorf("%s: got %q, want %q", body, got, want)
		}
	}
	f(`destination = "/d"`, "exactly one of them must be set")
	f("destination = \"/d\"\ntemplate = \"{{nofunc}}\"", `function "nofunc" not defined`)
	f("destination = \"/d/\"\ntemplate = \"x\"", "must be the path of a file")
	f("destination = \"/d\"\ntemplate = \"x\"\nmode = \"0888\"", "must be octal digits")
	f("destination = \"/d\"\ntemplate = \"x\"\ncheck_command = [\"/usr/sbin/nginx\", \"-t\", \"-c\", \"{{.src}}\"]", `add "/usr/sbin/nginx -t -c *" to exec in the block allow`)
	f("destination = \"/d\"\ntemplate = \"x\"\nreload_command = [\"systemctl\", \"reload\", \"a b\"]", `add "/usr/bin/systemctl reload 'a b'" to exec`)
	f("destination = \"/d\"\ntemplate = \"x\"\nreload_command = [\"/bin/sh\", \"-c\", \"rm\"]\nallow {\nexec = [\"/bin/sh -c true\"]\n}", "which the block does not grant")
	f("destination = \"/d\"\ntemplate = \"x\"\nallow {\nexec = [\"/bin/true\"]\n}", "there is neither check_command nor reload_command")
	f("destination = \"/d\"\ntemplate = \"x\"\nallow {\nexec = [\"true\"]\n}", "exec:")
	f("destination = \"/d\"\ntemplate = \"x\"\ncheck_command = [\"true\", \"{{.src}}\"]\nallow {\nexec = [\"/bin/true\"]\n}", "")
}

// count appends a line to DIR/name each time that it runs.
const count = `
check_command  = ["/bin/sh", "-c", "cat {{.src}} >> DIR/checked && test ! -e DIR/bad"]
reload_command = ["/bin/sh", "-c", "cat {{.dest}} >> DIR/reloaded && test ! -e DIR/worse || { echo it is hunter2; exit 3; }"]
allow {
	exec = ["/bin/sh -c *"]
}
`

func value(v string) string {
	return fmt.Sprintf("template = \"{{getv \\\"/a\\\"}};\"\nvalues = {\"/a\" = %q}\n", v)
}

// TestOncePerChange: each change runs the commands once, and a result that is the
// same runs none.
func TestOncePerChange(t *testing.T) {
	n := build(t, t.TempDir(), value("1")+count)
	for _, v := range []string{"1", "2", "2", "3", "3"} {
		n.update(value(v) + count)
		if err := n.settle(); err != nil {
			t.Fatal(err)
		}
	}
	n.want("out", "3;")
	n.want("checked", "1;2;3;")
	n.want("reloaded", "1;2;3;")
	n.stop()
	n = build(t, n.dir, value("3")+count) // as after a restart
	if err := n.settle(); err != nil {
		t.Fatal(err)
	}
	n.want("reloaded", "1;2;3;")
	left, err := filepath.Glob(filepath.Join(n.dir, ".weir*"))
	if err != nil || len(left) > 0 {
		t.Errorf("files were left: %v", left)
	}
}

func TestCheckFails(t *testing.T) {
	dir := t.TempDir()
	n := build(t, dir, value("1")+count)
	if err := n.settle(); err != nil {
		t.Fatal(err)
	}
	touch(t, filepath.Join(dir, "bad"))
	n.update(value("2") + count)
	n.fails("check_command: /bin/sh ended with code 1")
	n.want("out", "1;")
	n.want("reloaded", "1;")
	if err := os.Remove(filepath.Join(dir, "bad")); err != nil {
		t.Fatal(err)
	}
	n.recovers("2;")
	n.want("reloaded", "1;2;")
}

// recovers waits until a later attempt succeeds.
func (n *node) recovers(text string) {
	n.t.Helper()
	remotetest.Eventually(n.t, "the file is written", func() error {
		n.Clock.Advance(1e9)
		if h := n.Health(); h.State != component.Healthy {
			return fmt.Errorf("the health is %+v", h)
		}
		return nil
	})
	n.want("out", text)
}

func touch(t *testing.T, path string) {
	t.Helper()
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestReloadFails: a reload is repeated until it succeeds, also by the next process.
func TestReloadFails(t *testing.T) {
	dir := t.TempDir()
	touch(t, filepath.Join(dir, "worse"))
	n := build(t, dir, value("1")+count)
	n.fails("reload_command: /bin/sh ended with code 3: it is hunter2")
	n.want("out", "1;")
	n.stop()
	if err := os.Remove(filepath.Join(dir, "worse")); err != nil {
		t.Fatal(err)
	}
	n = build(t, dir, value("1")+count)
	if err := n.settle(); err != nil {
		t.Fatal(err)
	}
	n.want("checked", "1;")
	n.want("reloaded", "1;1;")
	n.stop()
	n = build(t, dir, value("1")+count)
	if err := n.settle(); err != nil {
		t.Fatal(err)
	}
	n.want("reloaded", "1;1;")
}

func TestTimeout(t *testing.T) {
	n := build(t, t.TempDir(), value("1")+"command_timeout = \"200ms\"\nreload_command = [\"/bin/sleep\", \"600\"]\nallow {\nexec = [\"/bin/sleep\"]\n}")
	n.fails("it did not end within 200ms")
}

// TestSecrets: neither errors nor the log contain secrets, and the file is private.
func TestSecrets(t *testing.T) {
	dir := t.TempDir()
	touch(t, filepath.Join(dir, "worse"))
	secret := func(text string) *template.Arguments {
		a := arguments(t, dir, fmt.Sprintf("template = %q", text)+count)
		a.Values = map[string]component.OptionalSecret{"/p": {IsSecret: true, Value: "hunter2"}}
		a.Data = map[string]any{"list": []any{component.Secret("swordfish")}}
		return a
	}
	n := &node{Node: componenttest.New(t, "local.template.x"), t: t, dir: dir}
	n.c = n.Build(t, template.Registration(), secret(`{{getv "/p"}} {{index .list 0}}`))
	n.Start()
	n.fails("ended with code 3: it is (secret)")
	n.want("out", "hunter2 swordfish")
	if fi, err := os.Stat(filepath.Join(dir, "out")); err != nil || fi.Mode().Perm() != 0o600 {
		t.Errorf("got mode %v, %v, want 0600", fi.Mode(), err)
	}
	if err := n.c.(component.Updater).Update(secret(`{{atoi (index .list 0)}}`)); err != nil {
		t.Fatal(err)
	}
	n.fails(`parsing "(secret)"`)
	if log := n.Logs(); strings.Contains(log, "hunter2") || strings.Contains(log, "swordfish") {
		t.Errorf("the log has a secret:\n%s", log)
	}
}

func TestDestination(t *testing.T) {
	dir := t.TempDir()
	real := filepath.Join(dir, "real")
	if err := os.WriteFile(real, []byte("old"), 0o640); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(real, filepath.Join(dir, "out")); err != nil {
		t.Fatal(err)
	}
	n := build(t, dir, value("1"))
	if err := n.settle(); err != nil {
		t.Fatal(err)
	}
	n.want("real", "1;")
	mode := func(want os.FileMode) {
		t.Helper()
		if fi, err := os.Stat(real); err != nil || fi.Mode().Perm() != want {
			t.Errorf("got mode %v, %v, want %v", fi.Mode(), err, want)
		}
	}
	mode(0o640)
	n.update(value("1") + fmt.Sprintf("mode = \"0604\"\nowner = \"%d\"\ngroup = \"%d\"", os.Getuid(), os.Getgid()))
	if err := n.settle(); err != nil {
		t.Fatal(err)
	}
	mode(0o604)
	n.update(value("1") + `owner = "no such user"`)
	n.fails("cannot find the owner")
}

func TestTemplateFile(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "x.tmpl")
	if err := os.WriteFile(file, []byte("a"), 0o600); err != nil {
		t.Fatal(err)
	}
	body := fmt.Sprintf("template_file = %q", file)
	n := build(t, dir, body)
	if err := n.settle(); err != nil {
		t.Fatal(err)
	}
	n.want("out", "a")
	if got := n.c.(component.Sourced).Sourced(); len(got) != 1 || got[0] != file {
		t.Errorf("got sources %v", got)
	}
	if err := os.WriteFile(file, []byte("{{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := n.c.(component.Updater).Update(arguments(t, dir, body)); err == nil || !strings.Contains(err.Error(), "x.tmpl:1") {
		t.Errorf("got error %v, want the position", err)
	}
	n.want("out", "a")
}

func TestStorage(t *testing.T) {
	a := arguments(t, "/var/lib/weir", `template = "x"`)
	if es := a.CheckStorage("/var/lib/weir"); len(es) != 1 {
		t.Errorf("got %v, want an error", es)
	}
	if es := a.CheckStorage("/var/lib/weird"); len(es) != 0 {
		t.Errorf("got %v, want none", es)
	}
}

package node_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/scripting"
	"github.com/weir-run/weir/scripting/egress"
	"github.com/weir-run/weir/scripting/host"
	"github.com/weir-run/weir/scripting/internal/registrytest"
	"github.com/weir-run/weir/scripting/lua"
	"github.com/weir-run/weir/scripting/registry"
	"github.com/weir-run/weir/stdlib"
)

// newOutside returns a node whose scripts have the standard library, and what is
// outside of weir in tests.
func newOutside(t *testing.T, o host.Outside) *harness {
	t.Helper()
	n := newHarness(t)
	var err error
	n.cat, err = registry.NewCatalog(registry.Options{Languages: []scripting.Language{lua.New()}, UserDir: n.f.Dir, Modules: stdlib.Modules(), Outside: o})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// scriptReturning is a script whose hook metrics sets the label said to what body, a
// function body, returns; several values are joined.
func scriptReturning(needs, args, body string) string {
	return `
local json = require "json"
local function said(ctx)
` + body + `
end
return weir.transform { needs = { ` + needs + ` }, args = { ` + args + ` }, metrics = function(batch, ctx)
	local parts = { said(ctx) }
	for i = 1, table.maxn(parts) do parts[i] = tostring(parts[i]) end
	batch:set_label("said", table.concat(parts, " | "))
end }`
}

// runScript saves the script and returns what it says to a batch.
func (n *harness) runScript(src, attrs string) string {
	n.t.Helper()
	n.save(src, attrs)
	got := n.send(text(n.t, batch.NewSource(), "a 1\n")) // of no series that could end
	got, ok := strings.CutPrefix(got, `a{said="`)
	if !ok {
		n.t.Fatalf("it said nothing: %s\n%s", got, n.Logs())
	}
	return strings.NewReplacer(`\"`, `"`, `\n`, "\n", `\\`, `\`).Replace(strings.TrimSuffix(got, "\"} 1\n"))
}

func allow(lines string) string { return "script {\nallow {\n" + lines + "\n}\n}\n" }

func TestHTTP(t *testing.T) {
	server := httpServer(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"method":%q,"uri":%q,"body":%q,"auth":%q,"key":%q,"type":%q,"agent":%q}`,
			r.Method, r.URL.RequestURI(), body, r.Header.Get("Authorization"), r.Header.Get("X-Key"), r.Header.Get("Content-Type"), r.UserAgent())
	})
	n := newOutside(t, host.Outside{})
	f := func(body, want string) {
		t.Helper()
		attrs := "token = \"s3cret\"\n" + allow(`http = ["`+server+`/*"]`)
		got := n.runScript(scriptReturning("http = true", "token = weir.arg.secret{}", strings.ReplaceAll(body, "SERVER", server)), attrs)
		if got = strings.ReplaceAll(got, server, "SERVER"); got != want {
			t.Errorf("%s:\n got %s\nwant %s", body, got, want)
		}
	}
	f(`local r = ctx.http.get("SERVER/a?b=1") return r.status, r.url, r.headers["content-type"], r:json().uri, r:json().agent, tostring(r)`,
		"200 | SERVER/a | application/json | /a?b=1 | weir/test | http.Response(200)")
	f(`return ctx.http:get("SERVER/a", { query = { x = "1&2", n = 3, t = ctx.args.token } }):json().uri`, "/a?n=3&t=s3cret&x=1%262")
	f(`return ctx.http.post("SERVER/a", "text", { headers = { ["Content-Type"] = "text/x" } }).body`,
		`{"method":"POST","uri":"/a","body":"text","auth":"","key":"","type":"text/x","agent":"weir/test"}`)
	f(`local r = ctx.http.request { method = "PUT", url = "SERVER/a", json = { list = json.array {}, null = json.null } }:json() return r.method, r.type, r.body`,
		`PUT | application/json | {"list":[],"null":null}`)
	// Secrets are used by the call, and by nothing else.
	f(`return ctx.http.get("SERVER", { bearer = ctx.args.token }):json().auth`, "Bearer s3cret")
	f(`return ctx.http.get("SERVER", { basic = { username = "u", password = ctx.args.token } }):json().auth`, "Basic dTpzM2NyZXQ=")
	f(`return ctx.http.get("SERVER", { headers = { ["X-Key"] = { "key ", ctx.args.token } } }):json().key`, "key s3cret")
	f(`return ctx.args.token, pcall(function() return "x" .. ctx.args.token end)`, `<secret> | false | scripts/a/b.lua:5: cannot perform concat operation between string and userdata`)
	f(`return ctx.secret("x"), json.encode(ctx.args.token), #tostring(ctx.args.token)`, `<secret> | nil | 8`)
	f(`return pcall(function() ctx.log.info("x", { token = ctx.args.token, list = { ctx.args.token } }) error(ctx.args.token) end)`, `false | <secret>`)
	f(`return pcall(function() ctx.emit { name = "x", value = 1, labels = { t = ctx.args.token } } end)`, `false | scripts/a/b.lua:5: cannot set label "t" to a userdata: it must be a string`)
	f(`return pcall(function() ctx.exec("x", { ctx.args.token }) end)`, "false | scripts/a/b.lua:5: cannot use ctx.exec: the script does not declare it; write needs = { exec = { \"NAME\" } } in its definition, and grant it in the block's script.allow")
	// Mistakes of the call are raised, what goes wrong outside is a result.
	f(`return pcall(function() ctx.http.get("SERVER", { heders = {} }) end)`, `false | scripts/a/b.lua:5: cannot call get: argument options has no key "heders": did you mean headers?`)
	f(`return ctx.http.get("SERVER", { headers = { Host = "x" } })`, "nil | cannot set the header Host: the client does that itself")
	f(`return ctx.http.get("SERVER", { headers = { X = "a\r\nY: b" } })`, "nil | cannot use this value of the header X: it has a line feed or another control character in it")
	f(`return ctx.http.get("SERVER", { headers = { Authorization = "x" }, bearer = "y" })`, "nil | cannot use more than one of basic, bearer and the header Authorization")
	f(`return ctx.http.post("SERVER", "x", { json = 1 })`, "nil | cannot send both body and json")
	f(`return ctx.http.get("SERVER", { max_bytes = 3 })`, "nil | cannot ask SERVER: it is too large: the answer has more than 3 bytes, the limit is max_bytes")
	f(`return ctx.http.get("SERVER", { timeout = "soon" })`, `nil | cannot use "soon" as timeout: write a duration such as "5s"`)
	f(`return ctx.http.get("http://other.example/x")`, "nil | cannot ask http://other.example/x: script.allow.http does not grant it")
	f(`local r = ctx.http.get("SERVER") return pcall(function() r.status = 1 end)`, "false | scripts/a/b.lua:5: cannot look into this value: it can only be passed on")

	if strings.Contains(n.Logs(), "s3cret") {
		t.Errorf("the log has the secret:\n%s", n.Logs())
	}
}

// httpServer returns the URL of a server on loopback.
func httpServer(t *testing.T, h http.HandlerFunc) string {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s.URL
}

func TestEnv(t *testing.T) {
	n := newOutside(t, host.Outside{LookupEnv: func(name string) (string, bool) {
		v, ok := map[string]string{"REGION": "eu", "EMPTY": "", "OTHER": "secret"}[name]
		return v, ok
	}})
	attrs := allow(`env = ["REGION", "E*", "UNSET"]`)
	got := n.runScript(scriptReturning(`env = { "REGION", "EMPTY", "UNSET" }`, "", `return ctx.env.REGION, ctx.env.EMPTY, ctx.env.UNSET, pcall(function() return ctx.env.OTHER end)`), attrs)
	want := `eu |  | nil | false | scripts/a/b.lua:5: there is no ctx.env.OTHER: write needs = { env = { "OTHER" } } in the script's definition, and grant it in script.allow.env`
	same(t, got, want)
	got = n.runScript(scriptReturning(`env = { "REGION" }`, "", `local names = "" for k, v in pairs(ctx.env) do names = names .. k .. "=" .. v end return names, pcall(function() ctx.env.X = 1 end)`), attrs)
	same(t, got, "REGION=eu | false | scripts/a/b.lua:5: cannot assign to ctx.env.X: it is read-only")
}

// TestAbsent holds that what a script does not declare is not there, whatever is
// granted, and says what to write.
func TestAbsent(t *testing.T) {
	n := newOutside(t, host.Outside{})
	for name, need := range map[string]string{"http": "http = true", "env": `env = { "NAME" }`, "read": "read = true", "exec": `exec = { "NAME" }`} {
		got := n.runScript(scriptReturning("", "", "return pcall(function() return ctx."+name+" end)"), allow(`http = ["http://127.0.0.1/*"]`))
		same(t, got, "false | scripts/a/b.lua:5: cannot use ctx."+name+": the script does not declare it; write needs = { "+need+" } in its definition, and grant it in the block's script.allow")
	}
	same(t, n.runScript(scriptReturning("", "", `local names = {} for k in pairs(ctx) do names[#names + 1] = k end table.sort(names) return table.concat(names, " ")`), ""),
		"args attempt batch_id emit health log metrics now reject retry route secret sleep state")
}

func TestRemembered(t *testing.T) {
	n := newOutside(t, host.Outside{})
	n.save(`local kept
	return weir.transform { needs = { http = true },
		series = function(s, ctx) ctx.http.get("http://127.0.0.1/") end,
		metrics = function(batch, ctx) kept = ctx end,
	}`, allow(`http = ["http://127.0.0.1/*"]`))
	n.send(text(t, 1, "a 1\n"))
	want := "cannot use ctx.http in series: its result is cached"
	if h := n.Health(); !strings.Contains(h.Message, want) {
		t.Errorf("got %q, want %q", h.Message, want)
	}
}

func TestRead(t *testing.T) {
	n := newOutside(t, host.Outside{})
	dir := filepath.ToSlash(t.TempDir())
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("map.txt", "one")
	write("token", "s3cret\n")
	write("other.json", "two")
	attrs := allow(fmt.Sprintf("read = [%q]", dir+"/*"))
	f := func(needs, body, want string) {
		t.Helper()
		got := n.runScript(scriptReturning(strings.ReplaceAll(needs, "DIR", dir), "", strings.ReplaceAll(body, "DIR", dir)), attrs)
		if got = strings.ReplaceAll(got, dir, "DIR"); got != want {
			t.Errorf("%s:\n got %s\nwant %s", body, got, want)
		}
	}
	f("read = true", `return ctx.read("DIR/map.txt")`, "one")
	f("read = true", `return ctx.read("DIR/token", { secret = true })`, "<secret>")
	f("read = true", `return ctx.read("DIR/map.txt", { max_bytes = 2 })`, "nil | cannot read map.txt: it is too large: it has more than 2 bytes, the limit is max_bytes")
	f("read = true", `return ctx.read("DIR/missing")`, "nil | cannot read missing: no such file or directory")
	f("read = true", `return ctx.read("/etc/passwd")`, `nil | cannot read "/etc/passwd": script.allow.read of the block does not grant it`)
	f("read = true", `return ctx.read("DIR/../x")`, `nil | cannot read "DIR/../x": write it as `+filepath.ToSlash(filepath.Dir(dir))+`/x: there must be no . or .., no // and no slash at its end`)
	f("read = true", `return ctx.read("map.txt")`, `nil | cannot read "map.txt": it must be an absolute path`)
	f(`read = { "DIR/*.txt" }`, `return ctx.read("DIR/map.txt")`, "one")
	f(`read = { "DIR/*.txt" }`, `return ctx.read("DIR/other.json")`, `nil | cannot read "DIR/other.json": needs.read of the script does not name it`)
}

// TestReadStorage: a script cannot read weir's storage directory, where the token
// of the API and the data of other nodes are, whatever its block grants.
func TestReadStorage(t *testing.T) {
	n := newOutside(t, host.Outside{})
	dir := t.TempDir()
	granted := filepath.Dir(dir) // the node's storage directory is below it as well
	if !strings.HasPrefix(n.StoragePath, granted+string(filepath.Separator)) {
		t.Fatalf("%s is not in %s", n.StoragePath, granted)
	}
	for path, text := range map[string]string{filepath.Join(n.StoragePath, "weir.token"): "secret", filepath.Join(dir, "map.txt"): "one"} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(filepath.Join("..", filepath.Base(n.StoragePath)), filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	attrs := allow(fmt.Sprintf("read = [%q]", filepath.ToSlash(granted)+"/**"))
	f := func(path, want string) {
		t.Helper()
		path = filepath.ToSlash(path)
		if got := n.runScript(scriptReturning("read = true", "", fmt.Sprintf("return ctx.read(%q)", path)), attrs); got != want {
			t.Errorf("%s: got %s, want %s", path, got, want)
		}
	}
	f(filepath.Join(dir, "map.txt"), "one")
	for _, path := range []string{filepath.Join(n.StoragePath, "weir.token"), filepath.Join(dir, "link", "weir.token"), filepath.Join(n.StoragePath, "missing")} {
		f(path, fmt.Sprintf("nil | cannot read %q: it is in weir's storage directory", filepath.ToSlash(path)))
	}
}

// TestReadInSetup: when a file that setup has read changes, the component is
// built again. Other files have no effect.
func TestReadInSetup(t *testing.T) {
	n := newOutside(t, host.Outside{})
	dir := t.TempDir()
	path := filepath.ToSlash(filepath.Join(dir, "map.txt"))
	write := func(path, text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(path+"2", "x")
	write(path+"3", "too large")
	n.save(fmt.Sprintf(`return weir.transform { needs = { read = true },
		setup = function(ctx)
			ctx.log.info("read " .. tostring(ctx.read(%q)))
			ctx.log.info("large " .. tostring(ctx.read(%q, { max_bytes = 3 })))
		end,
		metrics = function(batch, ctx) batch:set_label("later", ctx.read(%q)) end,
	}`, path, path+"3", path+"2"), allow(fmt.Sprintf("read = [%q]", filepath.ToSlash(dir)+"/*")))
	same(t, n.send(text(t, 1, "a 1\n")), "a{later=\"x\"} 1\n") // setup is done by then
	c := n.c.(interface {
		component.Updater
		component.Sourced
	})
	if got := filepath.ToSlash(strings.Join(c.Sourced(), " ")); got != filepath.ToSlash(dir)+"/*" {
		t.Errorf("it watches %s", got)
	}
	args := n.args
	if err := c.Update(args); err != nil {
		t.Errorf("nothing changed: %v", err)
	}
	write(path+"2", "y")
	if err := c.Update(args); err != nil {
		t.Errorf("what setup has not read changed: %v", err)
	}
	same(t, n.send(text(t, 1, "a 1\n")), "a{later=\"y\"} 1\n")
	write(path, "there")
	if err := c.Update(args); !errors.Is(err, component.ErrRebuild) {
		t.Errorf("what setup found missing is there: %v", err)
	}
	if !strings.Contains(n.Logs(), `read nil`) || !strings.Contains(n.Logs(), `large nil`) {
		t.Error(n.Logs())
	}
}

func TestExec(t *testing.T) {
	var got []egress.Command
	var n *harness
	n = newOutside(t, host.Outside{
		LookupEnv: func(name string) (string, bool) { return "/my/bin", name == "PATH" },
		Exec: func(ctx context.Context, c egress.Command) (egress.CommandResult, error) {
			got = append(got, c)
			if c.Args[0] == "hang" {
				<-ctx.Done()
				return egress.CommandResult{}, context.Cause(ctx)
			}
			n.Clock.Advance(1500 * time.Millisecond)
			return egress.CommandResult{Code: 3, Stdout: "out", Stderr: "err"}, nil
		},
	})
	abs := func(s string) string {
		if runtime.GOOS == "windows" {
			return "C:" + s
		}
		return s
	}
	attrs := allow(fmt.Sprintf("exec = [%q, %q, %q]", abs("/bin/tool")+" show *", abs("/bin/tool")+" hang", abs("/sbin/tool2")))
	f := func(body, want string) {
		t.Helper()
		if said := n.runScript(scriptReturning(`exec = { "tool" }`, "", body), attrs); said != want {
			t.Errorf("%s:\n got %s\nwant %s", body, said, want)
		}
	}
	f(`local r = ctx.exec("tool", { "show", "a b" }, { stdin = ctx.secret("in"), max_bytes = 7 }) return r.code, r.stdout, r.stderr, r.seconds`, "3 | out | err | 1.5")
	want := []egress.Command{{Path: filepath.FromSlash(abs("/bin/tool")), Args: []string{"show", "a b"}, Stdin: "in", SearchPath: "/my/bin", MaxOutput: 7}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("what was run (-want +got):\n%s", diff)
	}
	f(`return ctx.exec("tool", { "stop" })`, "nil | cannot run "+filepath.FromSlash(abs("/bin/tool"))+" with these arguments: script.allow.exec grants it with different arguments")
	f(`return ctx.exec("tool2")`, `nil | cannot run "tool2": both needs.exec of the script and script.allow.exec of the block must name it`)
	f(`return ctx.exec("sh", { "-c", "x" })`, `nil | cannot run "sh": both needs.exec of the script and script.allow.exec of the block must name it`)
	// exec = true leaves it to the block.
	if said := n.runScript(scriptReturning("exec = true", "", `return ctx.exec("tool2", { "x" }).stdout`), attrs); said != "out" {
		t.Errorf("a program that only the block names: %s", said)
	}
	f(`return pcall(function() ctx.exec("tool", { "show", 5 }) end)`, "false | scripts/a/b.lua:5: cannot call exec: argument args is wrong at 2: it must be a string, not a number")
	f(`return ctx.exec("tool", { "show", "a\0b" })`, "nil | cannot use an argument with a zero byte in it")
	if n := gathered(t, n.Registry, "weir_script_commands_total"); n != 6 { // all but the raised one
		t.Errorf("%v commands are counted", n)
	}
}

// TestHTTPSeconds: an answer says how long it took.
func TestHTTPSeconds(t *testing.T) {
	n := newOutside(t, host.Outside{})
	server := httpServer(t, func(http.ResponseWriter, *http.Request) { n.Clock.Advance(2500 * time.Millisecond) })
	said := n.runScript(scriptReturning("http = true", "", fmt.Sprintf("return ctx.http.get(%q).seconds", server)), allow(`http = ["`+server+`/*"]`))
	if said != "2.5" {
		t.Errorf("it took %s seconds", said)
	}
}

// TestWaitEnds holds that waiting ends by the option timeout, by
// script.limits.wait and when who sent the batch gives up, and that the hook
// goes on with an error.
func TestWaitEnds(t *testing.T) {
	asked := make(chan struct{})
	server := httpServer(t, func(w http.ResponseWriter, r *http.Request) {
		asked <- struct{}{}
		<-r.Context().Done()
	})
	n := newOutside(t, host.Outside{})
	f := func(options string, end func(cancel context.CancelCauseFunc), want string) {
		t.Helper()
		n.save(scriptReturning("http = true", "", fmt.Sprintf("local _, err = ctx.http.get(%q, %s) ctx.log.info(err)", server, options)), allow(`http = ["`+server+`/*"]`))
		ctx, cancel := context.WithCancelCause(t.Context())
		defer cancel(nil)
		done := make(chan error, 1)
		b := text(t, 1, "a 1\n")
		go func() { done <- n.gate.ConsumeMetrics(ctx, b) }()
		<-asked
		end(cancel)
		<-done // what the sink says to an ended context is not the matter here
		if !strings.Contains(n.Logs(), want) {
			t.Errorf("got %s, want %s", n.Logs(), want)
		}
	}
	ask := "cannot ask " + server + ": "
	f("{ timeout = 2.5 }", func(context.CancelCauseFunc) { n.Clock.Advance(3 * time.Second) }, ask+"timeout: it took longer than 2.5s")
	f("{ timeout = '1h' }", func(context.CancelCauseFunc) { n.Clock.Advance(11 * time.Second) }, ask+"limit exceeded: it waited longer than 10s, the limit is script.limits.wait")
	f("{}", func(cancel context.CancelCauseFunc) { cancel(errors.New("the source gave up")) }, ask+"the source gave up")
	if got := gathered(t, n.Registry, "weir_script_http_requests_total"); got != 3 {
		t.Errorf("%v requests are counted", got)
	}
}

func TestNeeds(t *testing.T) {
	f := func(needs, want string) {
		t.Helper()
		folder := registrytest.NewFolder(t)
		folder.Write("a/b.lua", "local weir = require \"weir\"\nreturn weir.transform {\n  series = function() end,\n  needs = "+needs+",\n}")
		r, _ := folder.Catalog(nil).Lookup("a.b")
		if r.Err == nil || !strings.HasPrefix(r.Err.Error(), "scripts/a/b.lua:4: "+want) {
			t.Errorf("%s: got %v, want %s", needs, r.Err, want)
		}
	}
	f("5", "cannot use 5 as needs: it must be a table such as")
	f("{ htp = true }", `cannot use "htp" in needs: there is http, env, read, exec`)
	f(`{ http = "https://x/*" }`, `cannot use "https://x/*" as needs.http: it must be true, or a list of the URLs`)
	f(`{ http = { "x" } }`, `needs.http: cannot use "x" as a pattern of URLs: it must begin with http:// or https://`)
	f(`{ read = { "x" } }`, `needs.read: cannot use "x" as a pattern of files: it must be an absolute path`)
	f("{ env = true }", `cannot use true as needs.env: it must be a list of names such as { "REGION" }`)
	f(`{ env = { "A*" } }`, `cannot use "A*" in needs.env: write names such as { "REGION" }`)
	f("{ exec = 5 }", `cannot use 5 as needs.exec: it must be a list of names such as { "df" }`)
	f(`{ exec = { "bin/df" } }`, `cannot use "bin/df" in needs.exec: write names such as { "df" }`)
	f("{ listen = true }", "cannot use needs.listen in weir.transform: nothing calls a transform from outside, it gets its data from other blocks")
}

// TestCheckGrants holds that the registration says what is lacking and what is
// granted for nothing, and that without it nothing is built.
func TestCheckGrants(t *testing.T) {
	n := newOutside(t, host.Outside{})
	n.f.Write("a/b.lua", `local weir = require "weir"
return weir.transform { series = function() end,
	needs = { http = { "https://geo.internal/v1/*" }, env = { "REGION", "ZONE" }, exec = { "df" } } }`)
	r, _ := n.cat.Lookup("a.b")
	f := func(attrs string, want ...string) {
		t.Helper()
		args := r.NewArgs()
		if err := registrytest.Decode(args, attrs, n.sink); err != nil {
			t.Fatal(err)
		}
		var got []string
		lacks := false
		for _, e := range r.Check(args, func(string) bool { return true }) {
			s := e.Path + ": " + e.Error()
			if e.Warning {
				s = "warning: " + s
			}
			lacks = lacks || !e.Warning
			got = append(got, strings.TrimSpace(s+"\n"+e.Detail))
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", attrs, diff)
		}
		_, err := r.Build(n.Options(), args, nil)
		if (err != nil) != lacks || err != nil && !strings.Contains(err.Error(), "needs what its block does not grant") {
			t.Errorf("%s: it is built with %v", attrs, err)
		}
		if es := r.Check(args, func(string) bool { return false }); len(es) > 0 {
			t.Errorf("what is not known yet is judged: %v", es[0])
		}
	}
	f("", `script.allow: a.b needs what its block does not grant: http https://geo.internal/v1/*, env REGION, env ZONE, exec df; add to the block:
script {
  allow {
    http = ["https://geo.internal/v1/*"]
    env = ["REGION", "ZONE"]
    exec = ["/usr/bin/df"]
  }
}`)
	f(allow("http = [\"https://geo.internal/*\"]\nenv = [\"REGION\"]\nexec = [\"/bin/df -P *\"]"),
		`script.allow: a.b needs what its block does not grant: env ZONE; add to the block:
script {
  allow {
    env = ["REGION", "ZONE"]
  }
}`)
	f(allow("http = [\"https://geo.internal/*\", \"https://else.internal/*\"]\nenv = [\"REGION\", \"ZON*\", \"HOME\"]\nexec = [\"/bin/df\", \"/bin/sh\"]\nread = [\"/etc/weir/*\"]"),
		`warning: script.allow.http: a.b has no use for http "https://else.internal/*": its needs do not name it`,
		`warning: script.allow.env: a.b has no use for env "HOME": its needs do not name it`,
		`warning: script.allow.read: a.b has no use for read "/etc/weir/*": its needs do not name it`,
		`warning: script.allow.exec: a.b has no use for exec "/bin/sh": its needs do not name it`)
}

// TestWithOutside holds that a test reaches its mocks, without grants, and that
// the catalog it was made of does not.
func TestWithOutside(t *testing.T) {
	n := newOutside(t, host.Outside{})
	catalog := n.cat
	n.cat = registry.WithOutside(catalog, host.Outside{
		GrantAll:  true,
		LookupEnv: func(name string) (string, bool) { return "mocked " + name, true },
		ReadFile:  func(path string, limit int64) ([]byte, error) { return []byte("mocked " + path), nil },
		HTTP: roundTrip(func(r *http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: 200, Header: http.Header{}, Body: io.NopCloser(strings.NewReader("mocked " + r.URL.String()))}, nil
		}),
		Exec: func(_ context.Context, c egress.Command) (egress.CommandResult, error) {
			return egress.CommandResult{Stdout: "mocked " + c.Path}, nil
		},
	})
	needs := `http = true, env = { "REGION" }, read = true, exec = { "df" }`
	same(t, n.runScript(scriptReturning(needs, "", `return ctx.env.REGION, ctx.read("/no/such"), ctx.http.get("https://geo.internal:8443/x").body, ctx.exec("df").stdout`), ""),
		"mocked REGION | mocked /no/such | mocked https://geo.internal:8443/x | mocked "+filepath.FromSlash("/usr/bin/df"))
	r, _ := catalog.Lookup("a.b")
	args := r.NewArgs()
	if err := registrytest.Decode(args, "", n.sink); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Build(n.Options(), args, nil); err == nil {
		t.Error("the real component is built without grants")
	}
}

type roundTrip func(*http.Request) (*http.Response, error)

// RoundTrip answers.
func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

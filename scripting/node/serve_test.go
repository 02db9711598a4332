package node_test

import (
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/scripting/host"
)

// hookNode is a source behind a server, as weir's own passes requests on.
type hookNode struct {
	*harness
	url string
	now atomic.Pointer[component.Component]
}

func newHookNode(t *testing.T) *hookNode {
	n := &hookNode{harness: newOutside(t, host.Outside{})}
	n.url = httpServer(t, func(w http.ResponseWriter, r *http.Request) {
		(*n.now.Load()).(component.HTTPHandler).Handler().ServeHTTP(w, r)
	})
	return n
}

const slow = "script {\nlimits {\ntime = \"10s\"\n}\n}\n"

// serve saves a source whose key http is as given.
func (n *hookNode) serve(routes, attrs string) {
	n.t.Helper()
	if !strings.Contains(attrs, "script {") {
		attrs += slow
	}
	n.save("return weir.source {\n http = {\n"+routes+"\n} }", attrs)
	c := n.c
	n.now.Store(&c)
}

// hook is one route that does what body, a function body, says.
func hook(body string) string { return `["POST /hook"] = function(req, ctx) ` + body + ` end` }

// do makes a request and returns the answer's status, a space, and its body.
func (n *hookNode) do(method, path, body string, headers ...string) string {
	n.t.Helper()
	status, text, _ := n.request(method, path, body, headers...)
	return fmt.Sprintf("%d %s", status, strings.TrimSuffix(text, "\n"))
}

func (n *hookNode) request(method, path, body string, headers ...string) (int, string, http.Header) {
	n.t.Helper()
	r, err := http.NewRequest(method, n.url+path, strings.NewReader(body))
	if err != nil {
		n.t.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Add(headers[i], headers[i+1])
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		n.t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		n.t.Fatal(err)
	}
	return resp.StatusCode, string(text), resp.Header
}

func TestServe(t *testing.T) {
	n := newHookNode(t)
	f := func(body, want string, headers ...string) {
		t.Helper()
		n.serve(hook(body), "")
		same(t, n.do("POST", "/hook?a=1&b=x+y&a=2", "hello\x00\xff", headers...), want)
	}
	// Fields of the request.
	f(`return req.method .. " " .. req.path .. " " .. req.query.a .. req.query.b .. table.concat(req:query_all("a"), "+") .. #req:query_all("c")`, "200 POST /hook 1x y1+20")
	f(`return req.body`, "200 hello\x00\xff")
	f(`return req.headers["x-a"] .. req:header("X-A") .. tostring(req:header("X-B")) .. tostring(req.headers["x-b"])`, "200 1, 21, 2nilnil", "X-A", "1", "x-a", "2")
	f(`return req.remote_address`, "200 127.0.0.1")
	f(`return tostring(req)`, "200 http.Request(POST /hook)")
	f(`local v, err = req:json() return tostring(v) .. " " .. tostring(err ~= nil)`, "200 nil true")
	f(`return (req:form()).x or "none"`, "200 none")
	f(`return req.boby`, "500 the script failed; weir's log says why")
	// Valid responses.
	f(``, "200 ")
	f(`return nil`, "200 ")
	f(`return 204`, "204 ")
	f(`return { status = 201, body = "made" }`, "201 made")
	f(`return { json = { a = { 1, 2 } } }`, `200 {"a":[1,2]}`)
	f(`return { status = 202, headers = { ["X-Id"] = "7" } }`, "202 ")
	if _, _, h := n.request("POST", "/hook", ""); h.Get("X-Id") != "7" || h.Get("X-Content-Type-Options") != "nosniff" {
		t.Errorf("got headers %v", h)
	}
	// Invalid responses.
	failed := func(body, why string) {
		t.Helper()
		f(body, "500 the script failed; weir's log says why")
		if !strings.Contains(n.Health().Message, why) || n.Health().State != component.Unhealthy {
			t.Errorf("got health %+v, want %q in it", n.Health(), why)
		}
	}
	failed(`error("boom")`, "in http: boom")
	failed(`return 99`, "POST /hook: cannot answer with this status: it must be between 200 and 599")
	failed(`return 200.5`, "cannot answer 200.5: a status must be a whole number")
	failed(`return true`, "cannot answer with a bool: return nothing, a string, a status, or a table with status, headers, and body or json")
	failed(`return { "x" }`, "cannot answer with a list")
	failed(`return { stauts = 200 }`, `cannot answer this: the table has no key "stauts": did you mean status?`)
	failed(`return { body = "a", json = "b" }`, "cannot answer both body and json")
	failed(`return { status = 204, body = "a" }`, "cannot answer 204 with a body")
	failed(`return { headers = { ["Content-Length"] = "1" } }`, "cannot set the header Content-Length")
	failed(`return { headers = { a = "b\nc" } }`, "cannot use this value of the header a")
	failed(`return { headers = { ["a b"] = "c" } }`, `cannot use "a b" as the name of a header`)
	f(`return "again"`, "200 again") // and it is well
	if n.Health().State != component.Healthy {
		t.Errorf("got health %+v", n.Health())
	}
}

func TestRoutesOfRequests(t *testing.T) {
	n := newHookNode(t)
	n.serve(`
		["POST /hook/{team}/{id}"] = function(req) return "hook " .. req.params.team .. " " .. req.params.id end,
		["GET /files/{path...}"] = function(req) return "file " .. req.params.path end,
		["/any"] = function(req) return "any " .. req.method end,
		["GET /exact/{$}"] = function(req) return "exact" .. tostring(next(req.params)) end,
	`, "")
	f := func(method, path, want string) {
		t.Helper()
		same(t, n.do(method, path, ""), want)
	}
	f("POST", "/hook/a%2Fb/7", "200 hook a/b 7")
	f("GET", "/files/x/y.txt", "200 file x/y.txt")
	f("HEAD", "/files/x", "200 ")
	f("DELETE", "/any", "200 any DELETE")
	f("GET", "/exact/", "200 exactnil")
	f("GET", "/exact", "404 404 page not found") // and no redirect to somewhere else
	f("GET", "//any", "404 404 page not found")
	f("GET", "/nowhere", "404 404 page not found")
	f("GET", "/hook/a/7", "405 Method Not Allowed")
	if _, _, h := n.request("GET", "/hook/a/7", ""); h.Get("Allow") != "POST" {
		t.Errorf("got Allow %q", h.Get("Allow"))
	}
	f("POST", "/any?x=%zz", "400 cannot read the query of the URL")
	n.harness.save(label, "") // what takes no requests any more
	c := n.c
	n.now.Store(&c)
	f("POST", "/any", "404 404 page not found")
}

func packed(t *testing.T, compress func(io.Writer) io.WriteCloser, text []byte) string {
	t.Helper()
	var b bytes.Buffer
	w := compress(&b)
	if _, err := w.Write(text); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestBodies(t *testing.T) {
	gz := func(w io.Writer) io.WriteCloser { return gzip.NewWriter(w) }
	n := newHookNode(t)
	n.serve(hook(`return tostring(#req.body)`), "script {\nlimits {\ntime = \"10s\"\n}\nrequests {\nmax_body_size = \"10KiB\"\n}\n}\n")
	f := func(body, want string, headers ...string) {
		t.Helper()
		same(t, n.do("POST", "/hook", body, headers...), want)
	}
	full := strings.Repeat("a", 10<<10)
	f(full, "200 10240")
	f(full+"a", "413 the body has more than 10240 bytes, the limit in script.requests.max_body_size")
	f(packed(t, gz, []byte(full)), "200 10240", "Content-Encoding", "gzip")
	f(packed(t, func(w io.Writer) io.WriteCloser { return zlib.NewWriter(w) }, []byte(full)), "200 10240", "Content-Encoding", "Deflate")
	// A bomb: 64 MiB in 64 KiB, of which no more is unpacked than may be.
	f(packed(t, gz, make([]byte, 6<<20)), "413 the body has more than 10240 bytes, the limit in script.requests.max_body_size", "Content-Encoding", "gzip")
	f(packed(t, gz, []byte(full+"a")), "413 the body has more than 10240 bytes, the limit in script.requests.max_body_size", "Content-Encoding", "gzip")
	f("no gzip", "400 cannot read the body: unexpected EOF", "Content-Encoding", "gzip")
	f(packed(t, gz, []byte(full))[:20], "400 cannot read the body: unexpected EOF", "Content-Encoding", "gzip")
	f("x", `415 the encoding "br" is not supported; use gzip or deflate`, "Content-Encoding", "br")
	// One whose length nobody says.
	r, err := http.NewRequest("POST", n.url+"/hook", io.MultiReader(strings.NewReader(full), strings.NewReader("a")))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusRequestEntityTooLarge {
		t.Errorf("got %s", resp.Status)
	}
}

func TestAuthorized(t *testing.T) {
	n := newHookNode(t)
	f := func(by, want string, headers ...string) {
		t.Helper()
		n.harness.save("return weir.source {\n args = { key = weir.arg.secret{} }, http = {\n"+hook("local ok, err = pcall(function() return req:authorized("+by+") end) return tostring(ok) .. \" \" .. tostring(err)")+"\n} }",
			"key = \"s3cret\"\n"+slow)
		c := n.c
		n.now.Store(&c)
		if got := n.do("POST", "/hook", "what do ya want for nothing?", headers...); !strings.Contains(got, want) {
			t.Errorf("authorized(%s) with %q: got %q, want %q", by, headers, got, want)
		}
	}
	f(`{ bearer = ctx.args.key }`, "true true", "Authorization", "Bearer s3cret")
	f(`{ bearer = ctx.args.key }`, "true true", "Authorization", "bearer s3cret")
	f(`{ bearer = ctx.args.key }`, "true false", "Authorization", "Bearer s3cre")
	f(`{ bearer = ctx.args.key }`, "true false", "Authorization", "Basic s3cret")
	f(`{ bearer = ctx.args.key }`, "true false")
	f(`{ basic = { username = "u", password = ctx.args.key } }`, "true true", "Authorization", "Basic dTpzM2NyZXQ=")
	f(`{ basic = { username = "v", password = ctx.args.key } }`, "true false", "Authorization", "Basic dTpzM2NyZXQ=")
	f(`{ basic = { username = "u", password = "other" } }`, "true false", "Authorization", "Basic dTpzM2NyZXQ=")
	// RFC 4231, test case 2.
	const signature = "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"
	f(`{ hmac = { key = "Jefe", header = "x-hub-signature-256", prefix = "sha256=" } }`, "true true", "X-Hub-Signature-256", "sha256="+signature)
	f(`{ hmac = { key = "Jefe", header = "X-Signature" } }`, "true true", "X-Signature", signature)
	f(`{ hmac = { key = "Jefe", header = "X-Signature", encoding = "base64" } }`, "true true", "X-Signature", "W9zBRr9gdU5qBCQmCJV1x1oAPwidJzmDnexYuWTsOEM=")
	f(`{ hmac = { key = ctx.args.key, header = "X-Signature" } }`, "true false", "X-Signature", signature)
	f(`{ hmac = { key = "Jefe", header = "X-Signature", prefix = "sha256=" } }`, "true false", "X-Signature", signature)
	f(`{ hmac = { key = "Jefe", header = "X-Signature", algorithm = "sha1" } }`, "true true", "X-Signature", "effcdf6ae5eb2fa2d27416d5f184df9c259a7c79")
	// Mistakes that would let everybody in, or nobody.
	f(`{}`, "must have bearer, basic or hmac")
	f(`{ bearer = "" }`, "must not be empty")
	f(`{ bearer = "a", basic = { username = "a", password = "b" } }`, "no more than one of them")
	f(`{ hmac = { key = "a", header = "x", algorithm = "md5" } }`, "must be sha256, sha1 or sha512")
	f(`{ hmac = { key = "a", header = "x", encoding = "utf8" } }`, "must be hex or base64")
}

// served asks a node's component, without a network between.
func (n *harness) served(method, path, body string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	n.c.(component.HTTPHandler).Handler().ServeHTTP(w, httptest.NewRequest(method, path, strings.NewReader(body)))
	return w
}

func source(hook string) string { return "return weir.source { http = { " + hook + " } }" }

// A request is answered after its records were accepted. Records that were
// refused are reported and counted.
func TestRequestsAreAccepted(t *testing.T) {
	timed(t, func(t *testing.T, n *harness) {
		f := func(path, body string, want int) {
			t.Helper()
			got := n.served("POST", path, body)
			if got.Code != want || (want == 503) != (got.Header().Get("Retry-After") != "") {
				t.Errorf("POST %s %q: got %d %q with %v, want %d", path, body, got.Code, got.Body, got.Header(), want)
			}
		}
		n.save(source(hook(`for name in req.body:gmatch("%w+") do ctx.emit { name = name, value = 1 } end
			if req.query.fail then error("boom") end
			return 202`)), "")
		start := time.Now()
		f("/hook", "a b", 202)
		same(t, n.emitted(start), "0s: a 1\nb 1\n")
		f("/hook", "", 202) // nothing is to be accepted
		n.sink.Refuse(errors.New("the disk is full"))
		f("/hook", "c", 503)
		if took := time.Since(start); took != 10*time.Second { // script.limits.wait
			t.Errorf("it was answered after %s", took)
		}
		n.sink.Refuse(nil)
		f("/hook?fail=1", "d e f", 500)
		f("/hook", "c", 202)
		same(t, n.emitted(start), "10s: c 1\n")
		if diff := cmp.Diff(map[string]uint64{"refused": 1, "script_error": 3}, n.Stats.Dropped()); diff != "" {
			t.Errorf("dropped (-want +got):\n%s", diff)
		}
		if got := gathered(t, n.Registry, "weir_script_served_requests_total"); got != 5 {
			t.Errorf("served %v requests, want 5", got)
		}
	})
}

// A request waits for a VM, for setup and for what its hook asks, together no
// longer than script.limits.wait.
func TestRequestsWait(t *testing.T) {
	timed(t, func(t *testing.T, n *harness) {
		n.save(source(hook(`local _, err = ctx.sleep(tonumber(req.query.s)) if err then error(err) end return "slept"`)), "script {\nconcurrency = \"single\"\nlimits {\nwait = \"5s\"\n}\n}\n")
		var wg sync.WaitGroup
		f := func(seconds string, want int, after time.Duration) {
			wg.Go(func() {
				start := time.Now()
				got := n.served("POST", "/hook?s="+seconds, "")
				if took := time.Since(start); got.Code != want || took != after {
					t.Errorf("sleep %s: got %d %q after %s, want %d after %s", seconds, got.Code, got.Body, took, want, after)
				}
			})
			synctest.Wait()
		}
		f("3", 200, 3*time.Second)
		f("1", 200, 4*time.Second) // there is one VM
		f("2", 503, 5*time.Second)
		wg.Wait()
		f("6", 503, 5*time.Second)
		wg.Wait()

		n.save("local up = false return weir.source { setup = function(ctx) if ctx.now() % 2000000 > 0 then ctx.sleep(3) up = true end end, http = { "+hook(`return tostring(up)`)+" } }", "")
		f("", 200, 3*time.Second)
		wg.Wait()
	})
}

// There are no more requests at a time than script.requests.max_requests.
func TestRequestsAreBounded(t *testing.T) {
	timed(t, func(t *testing.T, n *harness) {
		n.save(source(hook(`ctx.sleep(1) ctx.emit { name = "n", value = 1 } return "done"`)), "script {\nrequests {\nmax_requests = 7\n}\n}\n")
		var wg sync.WaitGroup
		var done, refused, other atomic.Int64
		for range 1000 {
			wg.Go(func() {
				switch n.served("POST", "/hook", "").Code {
				case 200:
					done.Add(1)
				case 503:
					refused.Add(1)
				default:
					other.Add(1)
				}
			})
		}
		wg.Wait()
		if done.Load() != 7 || refused.Load() != 993 || other.Load() != 0 {
			t.Errorf("got %d done, %d refused, %d other", done.Load(), refused.Load(), other.Load())
		}
		records := 0
		for _, b := range n.sink.Batches() {
			records += b.Len()
		}
		if records != 7 {
			t.Errorf("got %d records of 7 requests", records)
		}
	})
}

// A request whose client is gone waits no more.
func TestClientIsGone(t *testing.T) {
	timed(t, func(t *testing.T, n *harness) {
		n.save(source(hook(`local _, err = ctx.sleep(8) error(err)`)), "")
		ctx, cancel := context.WithCancel(t.Context())
		start := time.Now()
		time.AfterFunc(time.Second, cancel)
		w := httptest.NewRecorder()
		n.c.(component.HTTPHandler).Handler().ServeHTTP(w, httptest.NewRequestWithContext(ctx, "POST", "/hook", nil))
		if took := time.Since(start); w.Code != 503 || took != time.Second {
			t.Errorf("got %d after %s", w.Code, took)
		}
	})
}

// Records of requests that arrive while a batch is being sent are joined into
// one batch.
func TestShipmentsAreJoined(t *testing.T) {
	timed(t, func(t *testing.T, n *harness) {
		n.save(source(hook(`ctx.emit { name = "n", labels = { i = req.body }, value = 1 }`)), "")
		n.sink.Refuse(errors.New("busy"))
		var wg sync.WaitGroup
		var ok atomic.Int64
		for i := range 50 {
			wg.Go(func() {
				if n.served("POST", "/hook", fmt.Sprint(i)).Code == 200 {
					ok.Add(1)
				}
			})
		}
		synctest.Wait()
		n.sink.Refuse(nil)
		wg.Wait()
		records := 0
		bs := n.sink.Batches()
		for _, b := range bs {
			records += b.Len()
			if b.Source != bs[0].Source {
				t.Error("the batches have several Sources: their order is nobody's")
			}
		}
		if ok.Load() != 50 || records != 50 || len(bs) > 2 {
			t.Errorf("got %d answers, %d records in %d batches", ok.Load(), records, len(bs))
		}
	})
}

// A save takes over while requests come: every one is answered, by the old or
// the new version, and nothing of what they emit is lost.
func TestSaveWhileRequestsCome(t *testing.T) {
	f := func(t *testing.T, concurrency string) {
		n := newHookNode(t)
		save := func(version int) {
			n.serve(hook(fmt.Sprintf(`ctx.emit { name = "n", labels = { i = req.body }, value = %d } return "v%d"`, version, version)),
				"script {\nconcurrency = \""+concurrency+"\"\nlimits {\ntime = \"10s\"\nwait = \"1m\"\n}\n}\n")
		}
		save(0)
		var wg sync.WaitGroup
		var asked atomic.Int64
		stop := make(chan struct{})
		for range 8 {
			wg.Go(func() {
				for {
					select {
					case <-stop:
						return
					default:
					}
					i := asked.Add(1)
					if got := n.do("POST", "/hook", fmt.Sprint(i)); !strings.HasPrefix(got, "200 v") {
						t.Errorf("got %q", got)
					}
				}
			})
		}
		for v := range 5 {
			for from := asked.Load(); asked.Load() < from+20; {
				runtime.Gosched()
			}
			save(v + 1)
		}
		close(stop)
		wg.Wait()
		got := map[string]bool{}
		for _, b := range n.sink.Batches() {
			for _, s := range b.Series {
				got[s.Label("i")] = true
			}
		}
		if len(got) != int(asked.Load()) {
			t.Errorf("%d requests were answered 200, of which %d were accepted", asked.Load(), len(got))
		}
		same(t, n.do("POST", "/hook", "last"), "200 v5")
	}
	for _, concurrency := range []string{"ordered", "single"} {
		t.Run(concurrency, func(t *testing.T) { f(t, concurrency) })
	}
}

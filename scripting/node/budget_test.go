package node_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/scripting"
	"github.com/weir-run/weir/scripting/host"
	"github.com/weir-run/weir/scripting/hostiletest"
	"github.com/weir-run/weir/scripting/js"
	"github.com/weir-run/weir/scripting/lua"
	"github.com/weir-run/weir/scripting/registry"
	"github.com/weir-run/weir/stdlib"
)

// excess is a body of a hook that makes too much of something: want is in what it
// fails with, and names the limit. An empty want is of what is cut without an error.
type excess struct{ name, lua, js, want string }

// big is 7 MiB, many a list of it 3,000 times, each a map of it by 3,000 names.
const (
	bigLua = `local big = ("x"):rep(7 * 1024 * 1024)
local function many() local t = {} for i = 1, 3000 do t[i] = big end return t end
local function each() local t = {} for i = 1, 3000 do t["k" .. i] = big end return t end
`
	bigJS = `const big = "x".repeat(7 * 1024 * 1024)
const many = () => Array(3000).fill(big)
const each = () => Object.fromEntries(many().map((x, i) => ["k" + i, x]))
`
)

// ofMetrics are bodies of the hook metrics, ofHTTP of the hook http.
var (
	ofMetrics = []excess{
		{"headers", `ctx.http.get("http://h/", { headers = each() })`, `await ctx.http.get("http://h/", { headers: each() })`, "cannot use headers of more than 65536 bytes"},
		{"a header of parts", `ctx.http.get("http://h/", { headers = { a = many() } })`, `await ctx.http.get("http://h/", { headers: { a: many() } })`, "cannot use headers of more than 65536 bytes"},
		{"a query", `ctx.http.get("http://h/", { query = each() })`, `await ctx.http.get("http://h/", { query: each() })`, "cannot use a query of more than 65536 bytes"},
		{"a body of JSON", `ctx.http.post("http://h/", nil, { json = many() })`, `await ctx.http.post("http://h/", undefined, { json: many() })`, "longer than 8388608 bytes"},
		{"an answer", `ctx.http.get("http://h/zeros")`, `await ctx.http.get("http://h/zeros")`, "the limit is max_bytes"},
		{"a packed answer", `ctx.http.get("http://h/packed")`, `await ctx.http.get("http://h/packed")`, "the limit is max_bytes"},
		{"arguments", `ctx.exec("prog", many())`, `await ctx.exec("prog", many())`, "cannot use arguments of more than 131072 bytes"},
		{"a command line", `ctx.exec("prog", { big })`, `await ctx.exec("prog", [big])`, "cannot use arguments of more than 131072 bytes"},
		{"repeat", `return nil, tostring(select(2, pcall(string.rep, big, 3000)))`, `big.repeat(3000)`, "cannot make a string of"},
		{"concat", `return nil, tostring(select(2, pcall(table.concat, many())))`, `many().join("")`, ""},
		{"pad", `text.pad_left("a", 1e9)`, `text.padLeft("a", 1e9)`, "longer than 8388608 bytes"},
		{"template", `text.template(("{k1}"):rep(3000), each())`, `text.template("{k1}".repeat(3000), each())`, "longer than 8388608 bytes"},
		{"replace", `text.replace(big, "x", "yyy")`, `text.replace(big, "x", "yyy")`, "longer than 8388608 bytes"},
		{"re", `re.replace("x", big:sub(1, 5e6), "yyy")`, `re.replace("x", big.slice(0, 5e6), "yyy")`, "8388608"},
		{"csv", `csv.encode({ many() })`, `csv.encode([many()])`, "longer than 8388608 bytes"},
		{"json", `json.encode(each())`, `json.encode(each())`, "longer than 8388608 bytes"},
		{"yaml", `yaml.encode(each())`, `yaml.encode(each())`, "longer than 8388608 bytes"},
		{"logfmt", `logfmt.encode(each())`, `logfmt.encode(each())`, "longer than 8388608 bytes"},
		{"url", `url.encode_query(each())`, `url.encodeQuery(each())`, "longer than 8388608 bytes"},
		{"base64", `base64.encode(big)`, `base64.encode(big)`, "longer than 8388608 bytes"},
		{"fields of the log", `local t = {} for i = 1, 100000 do t["k" .. i] = big end ctx.log.info(big, t)`,
			`const t = {}; for (let i = 0; i < 100000; i++) t["k" + i] = big; ctx.log.info(big, t)`, ""},
		{"emitted labels", `for i = 1, 3000 do ctx.emit { name = "a", labels = { b = big:sub(1, 60000) .. i }, value = 1 } end`,
			`for (let i = 0; i < 3000; i++) ctx.emit({ name: "a", labels: { b: big.slice(0, 60000) + i }, value: 1 })`, "script.limits.output"},
		{"emitted records", `for i = 1, 1e6 do ctx.emit { name = "a", value = i } end`, `for (let i = 0; i < 1e6; i++) ctx.emit({ name: "a", value: i })`, "script.limits.emit"},
	}
	ofHTTP = []excess{
		{"exported targets", `local t = {} for i = 1, 3000 do t[i] = { __address__ = big } end ctx.export { targets = t }`,
			`ctx.export({ targets: many().map((x) => ({ __address__: x })) })`, "script.limits.output"},
		{"headers of an answer", `return { headers = each() }`, `return { headers: each() }`, "cannot use headers of more than 65536 bytes"},
		{"an answer of JSON", `return { json = many() }`, `return { json: many() }`, "longer than 8388608 bytes"},
	}
)

// TestBudget lets scripts make too much of all that a call can make in the host:
// each fails with an error that names the limit, and the process stays small.
func TestBudget(t *testing.T) {
	if testing.Short() || raceDetector {
		t.Skip("it takes half a minute, and with the race detector its scripts exceed their time limit first")
	}
	child := hostiletest.NewChild(t, "TestBudgetInChild")
	for _, lang := range []string{"lua", "js"} {
		for _, hook := range []string{"metrics", "http"} {
			for i, e := range map[string][]excess{"metrics": ofMetrics, "http": ofHTTP}[hook] {
				t.Run(lang+"/"+e.name, func(t *testing.T) {
					data, err := json.Marshal([]any{lang, hook, i})
					if err != nil {
						t.Fatal(err)
					}
					child.Run(t, data)
				})
			}
		}
	}
}

func TestBudgetInChild(t *testing.T) {
	hostiletest.Serve(t, func(t testing.TB) func([]byte) error {
		return func(data []byte) error {
			var lang, hook string
			var i int
			if err := json.Unmarshal(data, &[]any{&lang, &hook, &i}); err != nil {
				return err
			}
			e := map[string][]excess{"metrics": ofMetrics, "http": ofHTTP}[hook][i]
			return exceed(t, lang, hook, e)
		}
	})
}

// exceed runs a body, and returns what is wrong with how that went.
func exceed(t testing.TB, lang, hook string, e excess) error {
	n := newHarness(t)
	var err error
	n.cat, err = registry.NewCatalog(registry.Options{
		Languages: []scripting.Language{lua.New(), js.New()}, UserDir: n.f.Dir, Modules: stdlib.Modules(),
		Outside: host.Outside{GrantAll: true, HTTP: floods{}},
	})
	if err != nil {
		return err
	}
	path := n.f.Write("a/b."+lang, budgetScript(lang, hook, e))
	n.cat.Refresh([]string{path})
	r, _ := n.cat.Lookup("a.b")
	if r.Err != nil {
		return r.Err
	}
	n.swap(r, "")
	defer n.stop()
	if hook == "http" {
		if got := n.served("POST", "/x", ""); got.Code != http.StatusInternalServerError {
			return fmt.Errorf("it answers %d", got.Code)
		}
	} else {
		n.send(text(t, batch.NewSource(), "a 1\n"))
	}
	if h := n.Health(); !strings.Contains(h.Message, e.want) {
		return fmt.Errorf("got health %+.2000v, want %q", h, e.want)
	}
	if size := len(n.Logs()); size > 200_000 {
		return fmt.Errorf("the log has %d bytes", size)
	}
	return nil
}

func budgetScript(lang, hook string, e excess) string {
	modules := []string{"text", "re", "csv", "json", "yaml", "logfmt", "url", "base64"}
	var b strings.Builder
	const needsLua, needsJS = `needs = { http = true, exec = { "prog" } }`, `needs: { http: true, exec: ["prog"] }`
	if lang == "lua" {
		b.WriteString("local weir = require \"weir\"\n")
		for _, m := range modules {
			fmt.Fprintf(&b, "local %s = require %q\n", m, m)
		}
		b.WriteString(bigLua)
		if hook == "http" {
			fmt.Fprintf(&b, "return weir.source { exports = { targets = weir.arg.targets {} }, http = { [\"POST /x\"] = function(req, ctx)\n%s\nend } }\n", e.lua)
		} else {
			// A function returns nil and its error; assert raises it.
			last := strings.TrimPrefix(e.lua, "return ")
			if !strings.Contains(last, "for i") {
				last = "assert(" + strings.TrimPrefix(last, "nil, ") + ")"
				if strings.Contains(e.lua, "return nil") {
					last = strings.Replace(last, "assert(", "error(", 1)
				}
			}
			fmt.Fprintf(&b, "return weir.transform { %s, metrics = function(batch, ctx)\n%s\nend }\n", needsLua, last)
		}
		return b.String()
	}
	b.WriteString("import { arg, defineSource, defineTransform } from \"weir\"\n")
	for _, m := range modules {
		fmt.Fprintf(&b, "import %s from \"weir/%s\"\n", m, m)
	}
	b.WriteString(bigJS)
	if hook == "http" {
		fmt.Fprintf(&b, "export default defineSource({ exports: { targets: arg.targets({}) }, http: { \"POST /x\": (req, ctx) => {\n%s\n} } })\n", e.js)
	} else {
		fmt.Fprintf(&b, "export default defineTransform({ %s, async metrics(batch, ctx) {\n%s\n} })\n", needsJS, e.js)
	}
	return b.String()
}

// floods answers with 1 GiB, /packed with what unpacks to it.
type floods struct{}

func (floods) RoundTrip(r *http.Request) (*http.Response, error) {
	resp := &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Request: r, ContentLength: -1, Body: io.NopCloser(io.LimitReader(zeros{}, 1<<30))}
	if r.URL.Path == "/packed" {
		// Members of a gzip file that stand behind each other are one.
		var member bytes.Buffer
		z := gzip.NewWriter(&member)
		_, _ = io.Copy(z, io.LimitReader(zeros{}, 1<<20))
		_ = z.Close()
		var all []io.Reader
		for range 1 << 10 {
			all = append(all, bytes.NewReader(member.Bytes()))
		}
		resp.Header.Set("Content-Encoding", "gzip")
		resp.Body = io.NopCloser(io.MultiReader(all...))
	}
	return resp, nil
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

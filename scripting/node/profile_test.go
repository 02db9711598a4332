package node_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http/httptest"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/pprof/profile"

	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/scripting"
	"github.com/weir-run/weir/scripting/internal/registrytest"
	"github.com/weir-run/weir/scripting/js"
	"github.com/weir-run/weir/scripting/lua"
	"github.com/weir-run/weir/scripting/node"
	"github.com/weir-run/weir/scripting/registry"
	"github.com/weir-run/weir/stdlib"
)

// askProfile asks the node for a profile.
func askProfile(ctx context.Context, n *harness, query string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	n.c.(component.Controller).Control().ServeHTTP(w, httptest.NewRequestWithContext(ctx, "GET", "/profile"+query, nil))
	return w
}

// newProfiled returns a node that runs a script of any language.
func newProfiled(t *testing.T, file, script string) *harness {
	n := newHarness(t)
	var err error
	n.cat, err = registry.NewCatalog(registry.Options{
		Languages: []scripting.Language{lua.New(), js.New()}, UserDir: n.f.Dir, Modules: stdlib.Modules(),
	})
	if err != nil {
		t.Fatal(err)
	}
	n.cat.Refresh([]string{n.f.Write(file, script)})
	r, _ := n.cat.Lookup("a.b")
	if r.Err != nil {
		t.Fatal(r.Err)
	}
	n.swap(r, registrytest.Patient(""))
	return n
}

// TestProfile: the line in which a script spends most of its time is at the top
// of its profile.
func TestProfile(t *testing.T) {
	f := func(name, file, script string) {
		t.Helper()
		t.Run(name, func(t *testing.T) {
			n := newProfiled(t, file, script)
			defer n.stop()
			done := make(chan *httptest.ResponseRecorder)
			go func() { done <- askProfile(t.Context(), n, "?seconds=1") }()
			var answer *httptest.ResponseRecorder
			for answer == nil {
				n.send(text(t, 1, "a 1\n"))
				select {
				case answer = <-done:
				default:
				}
			}
			p, err := profile.Parse(answer.Body)
			if err != nil {
				t.Fatalf("status %d: %v", answer.Code, err)
			}
			want := checkTop(t, p, path.Base(file), script)
			if name == "Lua" && !testing.Short() {
				checkPprof(t, p, want)
			}
		})
	}

	// A loop.
	f("Lua", "a/b.lua", `local weir = require "weir"
local function slow(n)
	local x = 0
	for i = 1, n do
		x = x + i * i * i * i * i * i * i * i * i * i * i * i -- in slow
	end
	return x
end
return weir.transform {
	metrics = function(batch)
		local x = slow(20000)
		return x
	end,
}`)
	f("Lua coroutine", "a/b.lua", `local weir = require "weir"
return weir.transform {
	metrics = function()
		local co = coroutine.wrap(function()
			local function slow()
				for i = 1, 20000 do local x = i * i * i * i end -- in slow
			end
			slow()
			return 1
		end)
		co()
	end,
}`)
	f("JavaScript", "a/b.js", `import { defineTransform } from "weir";
function slow(n) {
	let x = 0;
	for (let i = 0; i < n; i++) {
		x += i * i * i * i * i * i * i * i * i * i * i * i * i; // in slow
	}
	return x;
}
export default defineTransform({
	metrics(batch) {
		const x = slow(20000);
		if (x < 0) batch.drop();
	},
});`)
	f("TypeScript", "a/b.ts", `import { defineTransform } from "weir";
interface Point {
	x: number;
	y: number;
}
type Points = Array<Point>;

export default defineTransform({
	metrics(batch): void {
		const all: Points = [];
		const slow = (p: Point): number => {
			let x: number = p.x;
			for (let i = 0; i < 20000; i++) {
				x += i * i * i * i * i * i * i * i * i * i * i * i * i; // in slow
			}
			return x;
		};
		all.push({ x: slow({ x: 1, y: 2 }), y: 1 });
	},
});`)

	// A function of the library, in a line of its own between other lines.
	f("Lua library", "a/b.lua", `local weir = require "weir"
local function quick(n) for i = 1, n do local x = i * i end end
return weir.transform {
	metrics = function()
		quick(20)
		string.rep("x", 4000000) -- in metrics
		quick(20)
	end,
}`)
	f("JavaScript library", "a/b.js", `import { defineTransform } from "weir";
const text = "[" + "1,".repeat(20000) + "1]";
export default defineTransform({
	metrics(batch) {
		let x = 0;
		JSON.parse(text); // in metrics
		for (let i = 0; i < 20; i++) x += i;
	},
});`)

	// Most samples have no outermost frame: the code runs after an await, or the
	// stack is too deep.
	f("JavaScript await", "a/b.js", `import { defineTransform } from "weir";
export default defineTransform({
	async metrics(batch) {
		let x = await Promise.resolve(0);
		for (let i = 0; i < 20000; i++) x += i * i * i * i; // in metrics
		if (x < 0) batch.drop();
	},
});`)
	f("JavaScript recursion", "a/b.js", `import { defineTransform } from "weir";
function deep(n) {
	if (n > 0) return deep(n - 1) + 1;
	let x = 0;
	for (let i = 0; i < 20000; i++) x += i * i * i * i; // in deep
	return x;
}
export default defineTransform({
	metrics(batch) {
		if (deep(100) < 0) batch.drop();
	},
});`)
}

// checkPprof checks that go tool pprof shows a line at the top.
func checkPprof(t *testing.T, p *profile.Profile, want string) {
	t.Helper()
	name := filepath.Join(t.TempDir(), "profile.pb.gz")
	out, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(p.Write(out), out.Close()); err != nil {
		t.Fatal(err)
	}
	text, err := exec.Command("go", "tool", "pprof", "-top", "-lines", name).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	_, table, _ := strings.Cut(string(text), "cum%\n")
	first, _, _ := strings.Cut(table, "\n")
	fn, at, _ := strings.Cut(want, " ")
	if !strings.Contains(first, fn+" ") || !strings.HasSuffix(first, at) {
		t.Errorf("the first line is not %s:\n%s", want, text)
	}
}

// checkTop checks that the line with a comment "in FUNCTION" has the most samples,
// and returns it.
func checkTop(t *testing.T, p *profile.Profile, file, script string) (want string) {
	t.Helper()
	for i, line := range strings.Split(script, "\n") {
		for _, comment := range []string{"-- in ", "// in "} {
			if _, fn, ok := strings.Cut(line, comment); ok {
				want = fmt.Sprintf("%s %s:%d", fn, file, i+1)
			}
		}
	}
	lines, top, total := map[string]int64{}, "", int64(0)
	for _, s := range p.Sample {
		l := s.Location[0].Line[0]
		at := fmt.Sprintf("%s %s:%d", l.Function.Name, path.Base(l.Function.Filename), l.Line)
		if lines[at] += s.Value[0]; lines[at] > lines[top] {
			top = at
		}
		total += s.Value[0]
		if got := s.Label["node"]; len(got) != 1 || got[0] != "a.b.default" {
			t.Errorf("the label node of a sample is %q", got)
		}
		if got := s.Label["component"]; len(got) != 1 || got[0] != "a.b" {
			t.Errorf("the label component of a sample is %q", got)
		}
		if s.Value[1] != s.Value[0]*int64(scripting.ProfilePeriod) {
			t.Errorf("%d samples are %d ns", s.Value[0], s.Value[1])
		}
	}
	t.Logf("%d samples: %v", total, lines)
	if top != want || lines[top]*10 < total*6 {
		t.Errorf("the top line is %q with %d of %d samples, want %q with most of them", top, lines[top], total, want)
	}
	return want
}

// TestLineProfile: with format=json, a profile has the time of each line, with and without
// the functions that the line calls.
func TestLineProfile(t *testing.T) {
	n := newProfiled(t, "a/b.lua", `local weir = require "weir"
local function slow(n)
	local x = 0
	for i = 1, n do
		x = x + i * i * i * i * i * i * i * i * i * i * i * i
	end
	return x
end
return weir.transform {
	metrics = function(batch)
		local x = slow(20000)
		return x
	end,
}`)
	defer n.stop()
	done := make(chan *httptest.ResponseRecorder)
	go func() { done <- askProfile(t.Context(), n, "?seconds=1&format=json") }()
	var answer *httptest.ResponseRecorder
	for answer == nil {
		n.send(text(t, 1, "a 1\n"))
		select {
		case answer = <-done:
		default:
		}
	}
	var p node.LineProfile
	if err := json.Unmarshal(answer.Body.Bytes(), &p); err != nil {
		t.Fatalf("status %d: %v", answer.Code, err)
	}
	lines, self := map[int]node.ProfiledLine{}, 0.0
	for _, l := range p.Lines {
		if path.Base(l.File) != "b.lua" || l.Self > l.Total {
			t.Errorf("got %+v", l)
		}
		lines[l.Line] = l
		self += l.Self
	}
	const rounding = 1e-6
	if p.Seconds < 1 || p.Busy <= 0 || math.Abs(self-p.Busy) > rounding {
		t.Errorf("%v s of %v s, the lines have %v s", p.Busy, p.Seconds, self)
	}
	if l := lines[5]; l.Self <= p.Busy/2 {
		t.Errorf("the loop has %+v of %v s", l, p.Busy)
	}
	if l := lines[11]; l.Total < lines[5].Total || l.Self >= l.Total {
		t.Errorf("the call has %+v, the loop %+v", l, lines[5])
	}
	if want := n.c.(*node.Component).Version(); p.Version != want {
		t.Errorf("got version %q, want %q", p.Version, want)
	}
}

// TestProfileRefused: there is one profile of a node at a time, of a limited
// duration.
func TestProfileRefused(t *testing.T) {
	n := newHarness(t)
	n.save(`return weir.transform { metrics = function() end }`, "")
	defer n.stop()
	f := func(query string, status int, want string) {
		t.Helper()
		w := askProfile(t.Context(), n, query)
		if w.Code != status || !strings.Contains(w.Body.String(), want) {
			t.Errorf("%s: got status %d, %s", query, w.Code, w.Body)
		}
	}
	f("?seconds=0", 400, "seconds must be a number from 1 to 300")
	f("?seconds=301", 400, "from 1 to 300")
	f("?seconds=x", 400, `not "x"`)
	f("?format=html", 400, `format must be pprof or json, not "html"`)

	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan int)
	// The profile ends with its client.
	for range 2 {
		go func() { done <- askProfile(ctx, n, "").Code }()
	}
	if got := <-done; got != 409 {
		t.Errorf("the second profile has status %d, want 409", got)
	}
	f("", 409, "somebody else profiles "+n.ID)
	cancel()
	if got := <-done; got != 200 {
		t.Errorf("the first profile has status %d, want 200", got)
	}
}

// TestProfilesOfJavaScript: goja has one profiler for all nodes, but a profile has
// the samples of its node only, also if profiles of several nodes overlap.
func TestProfilesOfJavaScript(t *testing.T) {
	const script = `import { defineTransform } from "weir";
function %s() {
	let x = 0;
	for (let i = 0; i < 20000; i++) x += i * i * i * i;
	return x;
}
export default defineTransform({
	metrics(batch) {
		if (%s() < 0) batch.drop();
	},
});`
	names := []string{"one", "two", "three"} // the last one is not profiled
	var nodes []*harness
	for _, name := range names {
		n := newProfiled(t, "a/b.js", fmt.Sprintf(script, name, name))
		defer n.stop()
		nodes = append(nodes, n)
	}
	profiles := make([]*profile.Profile, 2)
	var wg sync.WaitGroup
	for i := range profiles {
		wg.Go(func() {
			for profiles[i] == nil || len(profiles[i].Sample) == 0 { // on a busy machine, no node may run for a second
				answer := askProfile(t.Context(), nodes[i], fmt.Sprintf("?seconds=%d", i+1))
				p, err := profile.Parse(answer.Body)
				if err != nil {
					t.Errorf("status %d: %v", answer.Code, err)
					return
				}
				profiles[i] = p
			}
		})
	}
	done := make(chan struct{})
	go func() {
		wg.Wait()
		close(done)
	}()
	for running := true; running; {
		for _, n := range nodes {
			n.send(text(t, 1, "a 1\n"))
		}
		select {
		case <-done:
			running = false
		default:
		}
	}
	for i, p := range profiles {
		for _, f := range p.Function {
			if f.Name != names[i] && f.Name != "metrics" {
				t.Errorf("the profile of node %s has the function %s", names[i], f.Name)
			}
		}
	}
}

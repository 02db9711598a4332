package lua

import (
	"fmt"
	"log/slog"
	"math"
	"slices"
	"testing"
	"time"

	lua "github.com/yuin/gopher-lua"

	"github.com/weir-run/weir/scripting"
)

const logLine = `2024-05-06T07:08:09.123Z level=warn component=http method=GET path=/users/42/orders/7 status=503 duration=1.234s ` +
	`trace=4bf92f3577b34da6a3ce929d0e0e4736 user="joe bloggs" msg="upstream is slow, giving up after 3 attempts"`

// libraryCalls are statements that are about one function of the libraries that
// are our own.
var libraryCalls = []struct{ name, stmt string }{
	{"find plain", `find(s, "status=", 1, true)`},
	{"find literal", `find(s, "status=")`},
	{"find pattern", `find(s, "status=%d+")`},
	{"find class", `find(s, "%d%d%d%d%-%d%d")`},
	{"find none", `find(s, "nothing=%d+")`},
	{"match one", `match(s, "level=(%w+)")`},
	{"match three", `match(s, "method=(%u+) path=(%S+) status=(%d+)")`},
	{"match lazy", `match(s, 'user="(.-)"')`},
	{"gmatch", `for k, v in gmatch(s, "(%w+)=(%w+)") do end`},
	{"gsub string", `gsub(s, "/%d+", "/:id")`},
	{"gsub function", `gsub(s, "%d+", id)`},
	{"gsub table", `gsub(s, "%w+", names)`},
	{"gsub none", `gsub(s, "nothing", "")`},
	{"format %d", `format("%d", 42)`},
	{"format %s", `format("%s=%s", "a", "b")`},
	{"format %5.2f", `format("%5.2f ms", 3.14159)`},
	{"rep", `rep("ab", 50)`},
	{"sub", `sub(s, 5, 20)`},
	{"byte", `byte(s, 5)`},
	{"char", `char(65, 66, 67)`},
	{"upper", `upper(s)`},
	{"lower", `lower(s)`},
	{"len", `len(s)`},
	{"reverse", `reverse(s)`},
	{"concat", `concat(words, ",")`},
	{"sort", `local t = { 5, 3, 8, 1, 9, 2, 7, 4, 6, 0 } sort(t)`},
	{"sort function", `local t = { 5, 3, 8, 1, 9, 2, 7, 4, 6, 0 } sort(t, more)`},
	{"insert, remove", `insert(words, "x") remove(words)`},
	{"tostring", `tostring(12.5)`},
	{"tonumber", `tonumber("12.5")`},
	{"ipairs", `for i, x in ipairs(words) do end`},
	{"pairs", `for k, x in pairs(names) do end`},
	{"unpack", `unpack(words)`},
	{"..", `local x = s .. "x" .. 1`},
	{"pcall", `pcall(id, 1)`},
}

const callsALoop = 200

func libraryChunk(stmt string) string {
	return `local s = ...
		local find, match, gmatch, gsub, format, rep, sub = string.find, string.match, string.gmatch, string.gsub, string.format, string.rep, string.sub
		local byte, char, upper, lower, len, reverse = string.byte, string.char, string.upper, string.lower, string.len, string.reverse
		local concat, sort, insert, remove = table.concat, table.sort, table.insert, table.remove
		local words, names = { "a", "bb", "ccc", "dddd", "eeeee" }, { GET = "get", http = "web", warn = "w" }
		local function id(x) return x end
		local function more(a, b) return a > b end
		return function() for i = 1, ` + fmt.Sprint(callsALoop) + ` do ` + stmt + ` end end`
}

// ourLoop and stockLoop return what runs a statement callsALoop times, in a VM
// of ours and in gopher-lua's with the same instruction hook.
func ourLoop(t testing.TB, stmt string) func() {
	p, err := read(scripting.File{Name: "bench.lua", Text: libraryChunk(stmt)}, scripting.Env{}, plainFile)
	if err != nil {
		t.Fatal(err)
	}
	p.def = &scripting.Definition{}
	v := p.newVM(scripting.Host{Log: func(slog.Level, string, string, []any) {}})
	t.Cleanup(v.L.Close)
	v.budget.start(time.Hour, 0)
	v.budget.strings.left = math.MaxInt64
	return loop(t, v.L, v.L.NewFunctionFromProto(p.main.proto))
}

func stockLoop(t testing.TB, stmt string) func() {
	L := lua.NewState()
	t.Cleanup(L.Close)
	b := &budget{}
	b.start(time.Hour, 0)
	L.SetContext(b)
	fn, err := L.LoadString(libraryChunk(stmt))
	if err != nil {
		t.Fatal(err)
	}
	return loop(t, L, fn)
}

func loop(t testing.TB, L *lua.LState, chunk *lua.LFunction) func() {
	L.Push(chunk)
	L.Push(lua.LString(logLine))
	L.Call(1, 1)
	fn := L.Get(-1)
	return func() {
		L.Push(fn)
		if err := L.PCall(0, 0, nil); err != nil {
			t.Fatal(err)
		}
	}
}

// BenchmarkLibrary runs what is our own of the libraries and what is
// gopher-lua's in turn, and reports both and how many times as fast ours is.
func BenchmarkLibrary(b *testing.B) {
	New()
	for _, c := range libraryCalls {
		b.Run(c.name, func(b *testing.B) {
			ours, stock := ourLoop(b, c.stmt), stockLoop(b, c.stmt)
			var took [2][]time.Duration
			for b.Loop() {
				for i, f := range []func(){ours, stock} {
					started := time.Now()
					f()
					took[i] = append(took[i], time.Since(started))
				}
			}
			median := func(ds []time.Duration) float64 {
				slices.Sort(ds)
				return float64(ds[len(ds)/2].Nanoseconds()) / callsALoop
			}
			m, s := median(took[0]), median(took[1])
			b.ReportMetric(m, "ours-ns")
			b.ReportMetric(s, "stock-ns")
			b.ReportMetric(s/m, "times")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// TestLibraryCalls keeps the statements of the benchmark from failing.
func TestLibraryCalls(t *testing.T) {
	New()
	for _, c := range libraryCalls {
		ourLoop(t, c.stmt)()
		stockLoop(t, c.stmt)()
	}
}

package js_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-run/weir/engine/component"
)

// TestLanguageFunctions holds that functions of the language that weir bounds do
// what the standard says, also with unusual arguments. Each row is an expression
// and its result as a string, of an object its JSON; an error is its name and
// message.
func TestLanguageFunctions(t *testing.T) {
	var body strings.Builder
	var exprs, want []string
	f := func(expr, result string) {
		body.WriteString("row(() => " + expr + ");\n")
		exprs, want = append(exprs, expr), append(want, result)
	}
	// String.prototype
	f(`"a".padStart(3)`, "  a")
	f(`"a".padStart(5, "xy")`, "xyxya")
	f(`"a".padEnd(4, "xy")`, "axyx")
	f(`"abc".padEnd(2, "x") + "abc".padStart(3)`, "abcabc")
	f(`"a".padStart(3, "")`, "a")
	f(`"a".padStart(NaN) + "a".padEnd(-1)`, "aa")
	f(`"a".padStart({ valueOf() { return 3 } }, { toString() { return "-" } })`, "--a")
	f(`String.prototype.padStart.call(12, 4, 0)`, "0012")
	f(`String.prototype.padStart.call(null, 4)`, "TypeError")
	f(`"ab".repeat(3) + "x".repeat(0)`, "ababab")
	f(`"ab".repeat(-1)`, "RangeError")
	f(`"".repeat(1e9)`, "")
	f(`"e\u0301".normalize() === "\u00e9"`, "true")
	f(`"\u00e9".normalize("NFD").length`, "2")
	f(`"ﬁ".normalize("NFKC")`, "fi")
	f(`"a".normalize("NFX")`, "RangeError: The normalization form should be one of NFC, NFD, NFKC, NFKD")
	f("String.raw`a\\n${1}b${[2, 3]}`", `a\n1b2,3`)
	f("String.raw({ raw: ['a', 'b', 'c'] }, 1, 2, 3)", "a1b2c")
	f("String.raw({ raw: 'xyz' }, '-', '+')", "x-y+z")
	f("String.raw({ raw: { length: 2, 0: 'a', 1: 'b' } })", "ab")
	f("String.raw({ raw: [] }, 1)", "")
	f(`"a-b-c".replaceAll("-", "$&$&")`, "a--b--c")
	f(`"abc".replace("b", "[$`+"`"+`|$'|$$]")`, "a[a|c|$]c")
	f(`"abc".replaceAll("", "-")`, "-a-b-c-")
	f(`"aXbX".replaceAll(/x/gi, (m, at) => m + at)`, "aX1bX3")
	f(`"a".replaceAll(/a/, "b")`, "TypeError")
	f(`"a,b,,c".split(",", 3)`, `["a","b",""]`)
	f(`"abc".split("")`, `["a","b","c"]`)
	f(`"".split("") + "|" + "".split(",").length`, "|1")
	f(`"a1b2".split(/(\d)/)`, `["a","1","b","2",""]`)
	f(`"ab".split(undefined, 0)`, "[]")
	f(`"x".concat(1, null, [2])`, "x1null2")
	f(`"İ".toLowerCase().length + "ß".toUpperCase()`, "2SS")
	f(`"\ud83c\udf9b".at(0).length + [..."\ud83c\udf9b"].length`, "2")
	// RegExp
	f(`"2024-05-06".match(/(?<y>\d+)-(?<m>\d+)/).groups.m`, "05")
	f(`[..."a1b2".matchAll(/[a-z](\d)/g)].map((m) => m[1] + m.index)`, `["10","22"]`)
	f(`"x".match(/y/g)`, "null")
	f(`/a/y.test("ba")`, "false")
	f(`(() => { const r = /a/g; r.test("aa"); return r.lastIndex })()`, "1")
	f(`/(a)|(b)/.exec("b").map(String)`, `["b","undefined","b"]`)
	f(`new RegExp("").source + new RegExp(/a\/b/).test("a/b")`, `(?:)true`)
	f(`new RegExp(/a/g, "i").flags`, "i")
	f(`"aBc".search(/[A-Z]/)`, "1")
	f(`"x".replace(/(?<n>x)/, "<$<n>>")`, "<x>")
	f(`/(?<=\$)\d+/.exec("a $12")[0]`, "12")
	f(`/^(?!b)./.test("b")`, "false")
	f(`new RegExp("(")`, "SyntaxError")
	// Array.prototype
	f(`[1, [2, [3, [4]]]].flat()`, "[1,2,[3,[4]]]")
	f(`[1, [2, [3]]].flat(Infinity)`, "[1,2,3]")
	f(`[1, 2].flatMap((x) => [x, [x]])`, "[1,[1],2,[2]]")
	f(`[3, 1, 10, 2].sort()`, "[1,10,2,3]")
	f(`[3, 1, 10, 2].sort((a, b) => a - b)`, "[1,2,3,10]")
	f(`[undefined, 3, , 1].sort().length + JSON.stringify([undefined, "b", "a"].sort())`, `4["a","b",null]`)
	f(`[1, 2].sort("x")`, "TypeError: The comparison function must be either a function or undefined")
	f(`(() => { const a = Array.from({ length: 3000 }, (_, i) => String(2999 - i)); a.sort(); return [a[0], a[1], a[2999]] })()`, `["0","1","999"]`)
	f(`(() => { const a = Array.from({ length: 3000 }, (_, i) => i % 2); a.sort((x, y) => x - y); return [a[1499], a[1500]] })()`, "[0,1]")
	f(`[1, null, undefined, [2, 3]].join("-")`, "1---2,3")
	f(`[1, 2].join(undefined) + [].join("x")`, "1,2")
	f(`(() => { const a = [1]; a.push(a); return a.join() })()`, "1,")
	f(`[1].concat([2], 3, [[4]])`, "[1,2,3,[4]]")
	f(`[1].concat({ length: 1, 0: "x", [Symbol.isConcatSpreadable]: true })`, `[1,"x"]`)
	f(`[1, 2, 3, 4].copyWithin(0, 2)`, "[3,4,3,4]")
	f(`[1, 2, 3, 4, 5].splice(1, 3, "a")`, "[2,3,4]")
	f(`[1, 2, 3].fill(0, 1)`, "[1,0,0]")
	f(`[1, 2, 3].lastIndexOf(3, -2) + [NaN].indexOf(NaN) + Number([NaN].includes(NaN))`, "-1")
	f(`[1, 2, 3].at(-1) + [1, 2, 3].findLast((x) => x < 3)`, "5")
	f(`[1, 2, 3].reduceRight((a, b) => a + "-" + b)`, "3-2-1")
	f(`[].reduce((a, b) => a)`, "TypeError")
	f(`Array.prototype.map.call({ length: 2, 0: 1, 1: 2 }, (x) => x * 2)`, "[2,4]")
	f(`(() => { const seen = []; [1, 2].forEach((x, i, all) => seen.push(x, i, all.length)); return seen })()`, "[1,0,2,2,1,2]")
	f(`[3, 2, 1].toSorted?.() ?? "not there"`, "[1,2,3]")
	f(`Array.from("añ🎛")`, `["a","ñ","🎛"]`)
	f(`Array.from({ length: 2 }, function (_, i) { return i + this.n }, { n: 1 })`, "[1,2]")
	f(`Array.from(new Map([["a", 1]]))`, `[["a",1]]`)
	f(`Array.of(7, 8)`, "[7,8]")
	f(`Object.fromEntries(Object.entries({ a: 1, b: 2 }).map(([k, v]) => [v, k]))`, `{"1":"a","2":"b"}`)
	// JSON
	f(`JSON.stringify({ b: 1, a: [undefined, () => 1, NaN], u: undefined })`, `{"b":1,"a":[null,null,null]}`)
	f(`JSON.stringify({ a: 1, b: { a: 2, c: 3 } }, ["a", "b"])`, `{"a":1,"b":{"a":2}}`)
	f(`JSON.stringify({ a: 1, b: "x" }, (k, v) => typeof v === "number" ? v + 1 : v)`, `{"a":2,"b":"x"}`)
	f(`JSON.stringify([1, { a: 2 }], null, 2)`, "[\n  1,\n  {\n    \"a\": 2\n  }\n]")
	f(`JSON.stringify([1], null, "--")`, "[\n--1\n]")
	f(`JSON.stringify({ toJSON() { return "j" } }) + JSON.stringify(new Date(0))`, `"j""1970-01-01T00:00:00.000Z"`)
	f(`String(JSON.stringify(undefined))`, "undefined")
	f(`JSON.stringify("\u2028\ud800é")`, "\"\u2028\\ud800é\"")
	f(`JSON.stringify(1n)`, "TypeError: Do not know how to serialize a BigInt")
	f(`(() => { const o = {}; o.o = o; JSON.stringify(o) })()`, "TypeError: Converting circular structure to JSON")
	f(`JSON.parse('{"a":[1,{"b":null}]}', (k, v) => Array.isArray(v) ? v.length : v)`, `{"a":2}`)
	f(`JSON.parse('"\\u00e9\\n"')`, "é\n")
	f(`JSON.parse("{'a':1}")`, "SyntaxError")
	f(`JSON.parse("[1,]")`, "SyntaxError")
	f(`Object.keys(JSON.parse('{"__proto__":1}'))`, `["__proto__"]`)
	// BigInt, Number, Math, typed arrays
	f(`BigInt("0x10") + BigInt(2)`, "18")
	f(`BigInt(1.5)`, "RangeError: Cannot convert 1.5 to a BigInt")
	f(`BigInt("1x")`, "SyntaxError: Cannot convert 1x to a BigInt")
	f(`BigInt.asUintN(8, 257n) + BigInt.asIntN(8, 255n)`, "0")
	f(`(255).toString(16) + (0.1).toFixed(3) + (1e21).toLocaleString?.call(1)`, "ff0.1001")
	f(`new Uint8Array([1, 300, -1])`, `{"0":1,"1":44,"2":255}`)
	f(`Array.from(new Float64Array(2).fill(1.5))`, "[1.5,1.5]")
	f(`new Uint8Array(-1)`, "RangeError")
	f(`Array.from(Uint8Array.from(["1", 2]))`, "[1,2]")
	f(`Math.max(...[1, 3, 2]) + Math.hypot(3, 4)`, "8")
	f(`Math.random()`, "Error: there is no randomness in a script: the same input gives the same output")
	// Map, Set, Date, Symbol, Proxy
	f(`[...new Set([3, 1, 3])].join() + new Map([[NaN, 1]]).get(NaN)`, "3,11")
	f(`new Date(Date.UTC(2024, 1, 29)).toISOString()`, "2024-02-29T00:00:00.000Z")
	f(`new Date("nonsense").getTime()`, "NaN")
	f(`Symbol("x").toString() + typeof Symbol.iterator`, "Symbol(x)symbol")
	f("`${Symbol('x')}`", "TypeError: Cannot convert a Symbol value to a string")
	f(`Reflect.ownKeys(new Proxy({ a: 1 }, { ownKeys: () => ["a", "b"] }))`, `["a","b"]`)
	// what is frozen
	f(`(Array.prototype.x = 1)`, "TypeError: Cannot add property x, object is not extensible")
	f(`delete Math.abs`, "TypeError: Cannot delete property 'abs' of [object Math]")
	f(`(Object.defineProperty({}, "toString", { value: () => "own" }) + "")`, "own")
	f(`Object.assign({}, { toString: () => "own" }) + ""`, "own")
	f(`eval("1")`, "ReferenceError: eval is not defined")
	f(`new Function("return 1")`, "TypeError")

	fx := build(t, metrics(`const row = (fn: () => any) => {
		let out: string
		try {
			const x = fn()
			out = x !== null && typeof x === "object" ? JSON.stringify(x) : String(x)
		} catch (e: any) { out = e.name + ": " + e.message }
		ctx.emit({ name: "row", labels: { out }, value: 0 })
	};
	`+body.String()), "script {\nlimits {\nemit = 1000\ntime = \"10s\"\n}\n}")
	fx.send(t, "a 1\n")
	if h := fx.Health(); h.State != component.Healthy {
		t.Fatal(h.Message)
	}
	var got []string
	for _, b := range fx.sink.Batches() {
		for _, s := range b.Series {
			if s.Name() == "row" {
				got = append(got, s.Label("out"))
			}
		}
	}
	if len(got) != len(want) {
		t.Fatalf("got %d results, want %d", len(got), len(want))
	}
	for i := range got {
		if diff := cmp.Diff(want[i], got[i]); diff != "" && !(strings.HasSuffix(want[i], "Error") && strings.HasPrefix(got[i], want[i]+": ")) {
			t.Errorf("%s: got %q, want %q", exprs[i], got[i], want[i])
		}
	}
}

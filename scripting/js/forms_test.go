package js_test

import (
	"strings"
	"testing"
)

// TestForms checks what is said of the first things that newcomers write, before
// the script runs and when it does.
func TestForms(t *testing.T) {
	f := func(body, want, hint string) {
		t.Helper()
		found := lint(t, lintHead+"export default defineTransform({ metrics(batch, ctx) {\n"+body+"\n} })")
		if !strings.Contains(found, want) || !strings.Contains(found, hint) {
			t.Errorf("%s: the linter says %q, want %q and %q", body, found, want, hint)
		}
		if e := failure(t, body); !strings.Contains(e.Error(), hint) {
			t.Errorf("%s: got %q, want %q", body, e.Error(), hint)
		}
	}
	const loop = "write for (const r of batch) { … } or batch.each((r) => { … }); [...batch] is an array of its records"
	f(`batch.forEach((r) => { r.value = 1; })`, `a batch has no "forEach": there is length, dropWhere()`, loop)
	f(`batch.map((r) => r.value)`, `a batch has no "map"`, loop)
	f(`if (batch.size > 1) {}`, `a batch has no "size"`, "write batch.length")
	f(`for (const [_, r] of batch.records()) r.value = 1`, "cannot destructure a record as an array", "write for (const r of …) { … }")
	f(`for (const r of batch.records) r.value = 1`, "cannot go over batch.records: it is a function, which must be called", "write for (const r of batch.records(…)) { … }")
	f(`for (const x of batch[0]) {}`, "a record is not iterable", "write for (const [name, value] of Object.entries(record.labels)) { … } for its labels")
	f(`batch.records().forEach((r) => {})`, `an iterator has no "forEach"`, "[...iterator].forEach")
	f(`ctx.log("x")`, "cannot call ctx.log: it is not a function", "write ctx.log.info(…); there is also debug, warn and error")
	f(`batch()`, "cannot call batch: it is not a function", "batch")
	f(`const x = Math.random()`, "cannot call Math.random: there is no randomness in a script", `import hash from "weir/hash" and write hash.bucket(`)
	f(`setTimeout(() => {}, 1)`, "setTimeout is not defined", "use every in the definition")
	f(`fetch("http://a/")`, "fetch is not defined", "await ctx.http.get(url)")
	f(`console.table([])`, "there is no console.table", "console")
}

// TestFormsThatAreRight has scripts that look like those of TestForms and work.
func TestFormsThatAreRight(t *testing.T) {
	for _, body := range []string{
		`for (const r of batch) r.value = 1`,
		`for (const r of batch.records()) r.value = 1`,
		`for (const [group, name] of batch.groupBy(["name"])) group[0].labels.of = name + group.length`,
		`for (const [i, v] of batch.rows("value")) batch.set(i, "value", v)`,
		`[...batch].forEach((r) => { r.value = 1; }); Array.from(batch.records()).map((r) => r.name)`,
		`const it = batch.records(); it.next()`,
		`for (const [k, v] of Object.entries(batch[0].labels)) { k + v }`,
		`const { info } = ctx.log; info("x"); console.log("x")`,
		`const n = batch[0].name.toUpperCase(); batch.length.toFixed()`,
		`const Math = { random: () => 4 }; Math.random()`,
	} {
		for line := range strings.Lines(lint(t, lintHead+"export default defineTransform({ metrics(batch, ctx) {\n"+body+"\n} })")) {
			if !strings.HasPrefix(line, "warning: ") {
				t.Errorf("%s: the linter says %s", body, line)
			}
		}
	}
}

// goja's messages about undefined say which expression it was.
func TestNamedErrors(t *testing.T) {
	f := func(body, want string) {
		t.Helper()
		if got := failure(t, "const o: any = { a: null };\n"+body).Err.Error(); got != want {
			t.Errorf("%s:\ngot  %s\nwant %s", body, got, want)
		}
	}
	const object = "TypeError: Cannot convert undefined or null to object: "
	f(`Object.keys(o.limits)`, object+"o.limits is undefined or null")
	f(`Object.entries(o.a)`, object+"o.a is undefined or null")
	f(`const all = Object.assign({}, ...o.parts)`, object+"o.parts is undefined or null")
	f(`const { max } = o.limits`, object+"o.limits is undefined or null")
	f(`let max; ({ max } = o.limits)`, object+"o.limits is undefined or null")
	f(`const f = ({ max }: any) => max; f(o.limits)`, object+"there is nothing to take { max } from")
	f(`for (const x of o.items) {}`, object+"o.items is undefined or null")
	f(`const [x] = o.items`, object+"o.items is undefined or null")
	f(`const y = [...o.items]`, object+"o.items is undefined or null")
	f(`o.limits.max`, "TypeError: Cannot read property 'max' of undefined: o.limits is undefined or null")
	f(`o.limits.max.x`, "TypeError: Cannot read property 'max' of undefined: o.limits is undefined or null")
	f(`o.a.x`, "TypeError: Cannot read property 'x' of undefined: o.a is undefined or null")
	f(`o.a.x = 1`, object+"o.a is undefined or null")
	f(`"x" in o.limits`, "TypeError: Value is not an object: o.limits is undefined or null")
	f(`new o.Thing()`, "TypeError: Value is not an object: o.Thing is undefined or null")
	f(`o.run()`, "TypeError: o.run is not a function")
	f(`o.list.get("x")`, "TypeError: Cannot read property 'get' of undefined or null: o.list is undefined or null")
	// A message of the script's own stays.
	f(`throw new TypeError("Cannot convert undefined or null to object!")`, "TypeError: Cannot convert undefined or null to object!")
}

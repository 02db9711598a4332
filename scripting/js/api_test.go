package js_test

import (
	"strings"
	"testing"

	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/scripting/hostiletest"
)

// checked wraps statements, which may say assert, into the hook metrics.
func checked(body string) string { return asserting + metrics(body) }

const asserting = "function assert(ok: unknown, why?: unknown) { if (!ok) throw new Error(\"not so: \" + why) }\n" +
	"function fails(fn: () => void, text: string) { try { fn() } catch (e: any) { assert(String(e).includes(text), e); return } assert(false, \"no error: \" + text) }\n"

// TestBatchOperations runs the body of a metrics hook on a batch.
func TestBatchOperations(t *testing.T) {
	const in = `
		# TYPE a counter
		a{job="x",path="/1"} 1
		a{job="y",path="/2"} 2
		b{job="x"} 3
		gone{job="x"} stale
		`
	f := func(name, body, want string) {
		t.Helper()
		t.Run(name, func(t *testing.T) {
			t.Helper()
			fx := build(t, checked(body), "")
			equal(t, fx.send(t, in), want)
			if h := fx.Health(); h.State != component.Healthy {
				t.Errorf("got %s: %s", h.State, h.Message)
			}
		})
	}
	const unchanged = in

	f("nothing", ``, unchanged)
	f("dropWhere", `batch.dropWhere("labels.job == 'x' && value > 1")`, `
		# TYPE a counter
		a{job="x",path="/1"} 1
		a{job="y",path="/2"} 2
		`)
	f("keepWhere", `batch.keepWhere("name == 'a'")`, `
		# TYPE a counter
		a{job="x",path="/1"} 1
		a{job="y",path="/2"} 2
		`)
	f("setLabel", `batch.setLabel("site", "s"); batch.dropWhere("name == 'a'")`, `
		b{job="x",site="s"} 3
		gone{job="x",site="s"} stale
		`)
	f("dropLabel", `batch.dropLabel("job"); batch.dropWhere("name == 'a'")`, "b 3\ngone stale\n")
	f("keepLabels", `batch.keepLabels(["job", "zone"]); batch.dropWhere("name == 'a'")`, `
		b{job="x"} 3
		gone{job="x"} stale
		`)
	f("setLabel to nothing", `batch.setLabel("job", undefined); batch.dropWhere("name == 'a'")`, "b 3\ngone stale\n")
	f("renameLabel", `batch.renameLabel("job", "service"); batch.dropWhere("name == 'a'")`, `
		b{service="x"} 3
		gone{service="x"} stale
		`)
	f("scale", `batch.scale("name == 'a'", 10); batch.scale(null, 2)`, `
		# TYPE a counter
		a{job="x",path="/1"} 20
		a{job="y",path="/2"} 40
		b{job="x"} 6
		gone{job="x"} stale
		`)
	f("setValue", `batch.setValue("value > 1", "value + 0.5")`, `
		# TYPE a counter
		a{job="x",path="/1"} 1
		a{job="y",path="/2"} 2.5
		b{job="x"} 3.5
		gone{job="x"} stale
		`)
	f("mapLabel", `batch.mapLabel("path", (p: string) => p === "/1" ? "one" : undefined)`, `
		# TYPE a counter
		a{job="x",path="one"} 1
		a{job="y",path="/2"} 2
		b{job="x"} 3
		gone{job="x"} stale
		`)
	f("mapLabel with a library function", `batch.mapLabel("job", Function.prototype.call.bind(String.prototype.toUpperCase)); batch.keepWhere("name == 'b'")`, "b{job=\"X\"} 3\n")
	f("mapValue", `batch.mapValue((v: number) => v < 3 ? v * 100 : undefined)`, `
		# TYPE a counter
		a{job="x",path="/1"} 100
		a{job="y",path="/2"} 200
		b{job="x"} 3
		gone{job="x"} stale
		`)
	f("filter", `batch.filter(["job", "value"], (job: string, v: number) => !(job === "x" && v > 1))`, `
		# TYPE a counter
		a{job="x",path="/1"} 1
		a{job="y",path="/2"} 2
		gone{job="x"} stale
		`)
	f("filter on labels sees stale records", `batch.filter(["name"], (n: string) => n === "a")`, `
		# TYPE a counter
		a{job="x",path="/1"} 1
		a{job="y",path="/2"} 2
		`)
	f("rows and set", `
		for (const [i, name, job, v, t] of batch.rows("name", "job", "value", "time")) {
			assert(t === 1700000000000)
			if (name === "a" && job === "x") {
				batch.set(i, "value", v + 41)
				batch.set(i, { name: "c", job: "z", "labels.type": "odd", time: t + 1, path: undefined })
			} else if (name === "a") batch.drop(i)
		}`, `
		# TYPE c counter
		c{job="z",type="odd"} 42 1700000000001
		b{job="x"} 3
		gone{job="x"} stale
		`)
	f("rows of a marker", `
		for (const [i, v, stale, type] of batch.rows("value", "stale", "type")) {
			if (stale) { assert(Number.isNaN(v)); batch.set(i, "value", 1) }
			assert(i < 2 ? type === "counter" : type !== "counter", i + type)
		}`, unchanged)
	f("rows are arrays", `
		const all = [...batch.rows("name", "job")]
		assert(all.length === 4 && all[0][0] === 0 && all[3][0] === 3 && all[2][1] === "b" && all[0].length === 3 && Array.isArray(all[0]), all)
		assert(all.map(([i, name]) => i + name).join() === "0a,1a,2b,3gone" && JSON.stringify(all[2]) === '[2,"b","x"]')
		const [[i, ...rest], other] = all
		assert(i === 0 && rest.join() === "a,x" && other[1] === "a" && all[0].slice(1).length === 2)
		const one = all[0], [p, q = [...one].length] = one
		assert(p === 0 && q === "a")
		const its = [one[Symbol.iterator](), one[Symbol.iterator]()]
		its[0].next()
		assert(its[0].next().value === "a" && its[1].next().value === 0, "two at once")
		fails(() => { one[1] = "mine" }, "cannot assign to a row: batch.set sets the fields of its record")
		fails(() => one.push(1), "cannot assign to a row")
		assert(one[1] === "a" && [...one].push(1) === 4)`, unchanged)
	f("each", `
		batch.each((m: any) => {
			if (m.name === "a") { m.value = m.value * 2; delete m.labels.path; m.labels.n = 7 }
			if (m.stale) m.drop()
		})`, `
		# TYPE a counter
		a{job="x",n="7"} 2
		a{job="y",n="7"} 4
		b{job="x"} 3
		`)
	f("value edits of a marker do nothing", `batch.each((m: any) => { m.value += 0 })`, unchanged)
	f("stale can be set", `batch.each((m: any) => { if (m.name === "b") m.stale = true; if (m.name === "gone") { m.stale = false; m.value = 9 } })`, `
		# TYPE a counter
		a{job="x",path="/1"} 1
		a{job="y",path="/2"} 2
		b{job="x"} stale
		gone{job="x"} 9
		`)
	f("records", `
		let n = 0
		for (const m of batch.records()) { n++; if (m.type === "counter") m.name = "r" + n }
		assert(n === 4)
		for (const m of batch) { n--; if (n > 2) continue; break }
		assert(n === 2)`, `
		# TYPE r1 counter
		r1{job="x",path="/1"} 1
		# TYPE r2 counter
		r2{job="y",path="/2"} 2
		b{job="x"} 3
		gone{job="x"} stale
		`)
	f("length and index", `
		assert(batch.length === 4)
		let best
		for (let i = 0; i < batch.length; i++) {
			const m = batch[i]
			if (!m.stale && (!best || m.value > best.value)) best = m
		}
		assert(best.name === "b" && batch[-1] === undefined && batch[4] === undefined)
		batch[0].drop()
		assert(batch.length === 4 && batch[0] === undefined && batch["1"].name === "a")
		best.name = "best"`, `
		# TYPE a counter
		a{job="y",path="/2"} 2
		best{job="x"} 3
		gone{job="x"} stale
		`)
	f("labels", `
		const m = batch[0], seen = []
		for (const k in m.labels) seen.push(k + "=" + m.labels[k])
		assert(seen.join() === "job=x,path=/1", seen)
		assert(Object.keys(m.labels).join() === "job,path" && Object.entries(m.labels)[1][1] === "/1" && JSON.stringify(m.labels) === '{"job":"x","path":"/1"}')
		assert("job" in m.labels && !("nope" in m.labels) && Object.hasOwn(m.labels, "path") && !("toString" in m.labels))
		assert(m.labels.nope === undefined && m.labels.__name__ === undefined && m.labels.constructor === undefined && m.labels.__proto__ === undefined)
		const { job, none = "default", ...rest } = m.labels
		assert(job === "x" && none === "default" && rest.path === "/1" && !("job" in rest))
		m.labels.constructor = "c"
		assert(m.labels.constructor === "c" && m.labels === m.labels)
		m.labels.path = null
		m.labels = { ...m.labels, only: "this", n: 1.5, yes: true, no: undefined, big: 9007199254740993n }
		delete m.labels.job
		batch.keepWhere("labels.only == 'this'")`, `
		# TYPE a counter
		a{big="9007199254740993",constructor="c",n="1.5",only="this",yes="true"} 1
		`)
	f("labels of another record", `batch[2].labels = batch[0].labels; batch.keepWhere("name == 'b'")`, "b{job=\"x\",path=\"/1\"} 3\n")
	f("records are objects", `
		const m = batch[0]
		assert(Object.keys(m).includes("labels") && "value" in m && "drop" in m && !("nope" in m) && m.toJSON === undefined && m.hasOwnProperty("name"))
		assert(JSON.stringify(m) === '{"name":"a","type":"counter","value":1,"labels":{"job":"x","path":"/1"},"time":1700000000000,"stale":false,"help":"","unit":""}', JSON.stringify(m))
		const { name, labels: { job }, value } = m
		assert(name === "a" && job === "x" && value === 1 && { ...m }.name === "a")
		assert(m === m && batch[0] !== batch[1] && typeof m === "object")
		const seen = new Map([[m, 1]]), weak = new WeakSet([m])
		assert(seen.get(m) === 1 && weak.has(m) && !weak.has(batch[0]))`, unchanged)
	f("groups", `
		const got = []
		for (const [group, job, name] of batch.groupBy(["job", "name"])) {
			got.push([job, name, group.length, group[0].name, group[9]].join("/"))
			for (const m of group) m.labels.g = job
			for (const m of group.records()) m.labels.n = group.length
			if (name === "gone" || job === "y") group.drop()
		}
		assert(got.join() === "x/a/1/a/,y/a/1/a/,x/b/1/b/,x/gone/1/gone/", got)
		assert([...batch.groupBy(["none", "value"])].length === 2, "by value")`, `
		# TYPE a counter
		a{g="x",job="x",n="1",path="/1"} 1
		b{g="x",job="x",n="1"} 3
		`)
	f("text", `
		const text = batch.text()
		assert(text.includes('a{job="x",path="/1"} 1 1700000000000'), text)
		assert(text.includes('gone{job="x"} stale'), text)`, unchanged)
	f("emit", `
		ctx.emit({ name: "n", labels: { k: "v" }, value: 2, type: "gauge", help: "Help." })
		ctx.emit({ name: "m", value: 3, time: 1, labels: undefined })
		const c = batch[0].copy()
		c.name = "copy"; c.value = 7; c.labels.path = "p"
		ctx.emit(c)
		ctx.emit(batch[2])
		ctx.emit({ ...batch[0], name: "spread" })
		batch.dropWhere("true")`, `
		# TYPE n gauge
		# HELP n Help.
		n{k="v"} 2
		m 3 1
		# TYPE copy counter
		copy{job="x",path="p"} 7
		b{job="x"} 3
		# TYPE spread counter
		spread{job="x",path="/1"} 1
		`)
	f("copies", `
		const c = batch[1].copy(), d = batch[3].copy()
		c.labels = { z: "1" }; c.type = "gauge"; c.help = "h"; c.unit = "s"; c.time += 1; c.stale = false
		assert(c.type + c.help + c.unit + c.time + c.stale === "gaugehs1700000000001false" && Number.isNaN(d.value) && d.stale)
		assert(String(c) === "record a" && Object.keys(c.labels).join() === "z" && String(c.labels) === '{z="1"}')
		batch[1].drop()`, `
		# TYPE a counter
		a{job="x",path="/1"} 1
		b{job="x"} 3
		gone{job="x"} stale
		`)
	f("text forms", `
		assert(String(batch) === "batch of 4 records")
		assert(String(batch[0]) === 'a{job="x",path="/1"} 1 1700000000000', String(batch[0]))
		assert(`+"`${batch[0].labels}`"+` === '{job="x",path="/1"}')
		for (const [g] of batch.groupBy(["job"])) { assert(String(g) === "group of 3 records"); break }`, unchanged)
	f("each after an error", `
		let n = 0
		batch.each((m: any) => { n++ ; m.labels.n = n })
		assert(n === 4)
		batch.dropLabel("n")`, unchanged)
}

// TestUntouched checks that data which a script does not change passes unchanged.
func TestUntouched(t *testing.T) {
	const in = `
		# TYPE h histogram
		h{a="1"} {count:3,sum:1.5,schema:3,positive_spans:[0:2],positive_buckets:[1,2]} 1700000000001
		c{a="1"} NaN(0x7ff8000000000123) st@1600000000000 # {trace_id="t"} 1 1699999999000
		d{a="1"} stale
		e{a="1"} -0
		`
	for _, body := range []string{
		``,
		`batch.each(() => {})`,
		`batch.each((m: any) => [m.name, m.value, m.time, m.labels.a, m.type, m.stale, m.help, m.unit, m.histogram, m.exemplars, JSON.stringify(m)])`,
		`for (const [i, v, n] of batch.rows("value", "name")) {}`,
		`batch.filter(["a", "value"], () => true)`,
		`batch.mapValue(() => {})`,
		`batch.mapLabel("a", () => undefined)`,
		`for (const m of batch.records()) m.labels.a = m.labels.a`,
		`batch.each(() => { throw new Error("undone") })`,
		`batch.each((m: any) => { m.name = "x"; m.labels.a = "2"; m.time = 5; m.stale = true; ctx.emit(m); throw new Error("undone") })`,
	} {
		equal(t, build(t, metrics(body), "").send(t, in), in)
	}
}

func TestSeries(t *testing.T) {
	f := build(t, asserting+`
		import { defineTransform } from "weir"
		let calls = 0
		export default defineTransform({
			series(s, ctx) {
				calls++
				if (s.name === "dropped") return s.drop()
				if (s.type === "counter") s.name += "_total"
				s.labels.n = String(calls)
				for (const k in s.labels) assert(k !== "__name__")
				assert(JSON.stringify(s).startsWith('{"name":"') && "labels" in s && s.help === "" && s.unit === "", JSON.stringify(s))
			},
		})`, "")
	b := parse(t, `
		# TYPE a counter
		a{job="x"} 1
		b 2
		dropped 3
	`)
	want := `
		# TYPE a_total counter
		a_total{job="x",n="1"} 1
		b{n="2"} 2
		`
	equal(t, f.sendBatch(t, b), want)
	first := f.sink.Last().Series[0]
	equal(t, f.sendBatch(t, b), want) // remembered: the hook was not asked again
	if got := f.sink.Last().Series[0]; got != first {
		t.Error("the same series and the same result are two handles")
	}
	if got := f.Stats.Dropped()["script"]; got != 2 {
		t.Errorf("got %d dropped, want 2", got)
	}
}

// The series hook sees what its answer may depend on and nothing else.
func TestSeriesIsPure(t *testing.T) {
	f := func(expr, want string) {
		t.Helper()
		fx := build(t, "import { defineTransform } from \"weir\"\nexport default defineTransform({ series(s: any, ctx: any) {\n"+expr+"\n} })", "")
		fx.send(t, "a 1\n")
		if got := fx.Health().Message; !strings.Contains(got, want) || !strings.Contains(got, "embedded/test/script.ts:3") {
			t.Errorf("%s: got %q, want %q in line 3", expr, got, want)
		}
	}
	f(`ctx.emit({})`, `cannot use ctx.emit in series`)
	f(`s.value`, `cannot read value in series: the hook sees labels only`)
	f(`s.time`, `cannot read time in series`)
	f(`s.labls`, `a series has no "labls": did you mean labels?`)
	f(`s.value = 1`, `cannot set "value" of a series`)
	f(`s.name = 1`, `cannot set name to a number: it must be a string`)
	f(`s.labels = 1`, `cannot set labels to a number: it must be an object`)
	f(`delete s.name`, `cannot delete name of a series`)
}

// TestErrorsOfData: what goes wrong says where and what to do.
func TestErrorsOfData(t *testing.T) {
	f := func(body, want string) {
		t.Helper()
		fx := build(t, "import { defineTransform } from \"weir\"\nexport default defineTransform({ sends: [\"metrics\"], metrics(batch: any, ctx: any) {\n"+body+"\n} })", "")
		equal(t, fx.send(t, "a{job=\"x\"} 1\nb 2\n"), "a{job=\"x\"} 1\nb 2\n")
		if got := fx.Health().Message; !strings.Contains(got, want) || !strings.Contains(got, "embedded/test/script.ts:3") {
			t.Errorf("%s: got %q, want %q in line 3", body, got, want)
		}
	}
	f(`batch.dropWher("true")`, `a batch has no "dropWher": did you mean dropWhere?`)
	f(`batch.forEach(() => {})`, `a batch has no "forEach": there is length, dropWhere(), keepWhere()`)
	f(`batch[1.5]`, `a batch has no "1.5"`)
	f(`batch.dropWhere()`, `cannot call dropWhere: argument where is missing; it is a string`)
	f(`batch.dropWhere(5)`, `cannot call dropWhere: argument where must be a string, not a number`)
	f(`batch.scale("true", "x")`, `cannot call scale: argument factor must be a number, not a string`)
	f(`batch.filter("job", () => true)`, `cannot call filter: argument fields must be an array of strings, not a string`)
	f(`batch.filter(["job"], 1)`, `cannot call filter: argument fn must be a function, not a number`)
	f(`batch.filter([1], () => true)`, `cannot use a number as a field: it must be a string`)
	f(`batch.filter([], () => true)`, `cannot read 0 fields: name between 1 and 32`)
	f(`batch.filter(["job"], () => {})`, `cannot filter by undefined: the function must return true to keep or false to drop`)
	f(`batch.filter(["job"], async () => true)`, `cannot filter by a promise`)
	f(`batch.rows()`, `cannot read 0 fields`)
	f(`batch.set(2, "value", 1)`, `cannot find record 2: the batch has 2, counted from 0`)
	f(`batch.set(0.5, "value", 1)`, `cannot find record 0.5: its number is a whole number`)
	f(`batch.set(0, "type", "gauge")`, `cannot set "type" of a record: what can be set is name, value, labels, time and stale`)
	f(`batch.set(0, 5)`, `cannot call set: argument field must be a string or an object of fields and values, not a number`)
	f(`batch.set(0, [1])`, `cannot set fields to an array: it must be an object`)
	f(`batch.mapValue(() => "x")`, `cannot use a string as a value: mapValue takes a function that returns a number`)
	f(`batch.mapLabel("job", () => ({}))`, `cannot set label "job" to an object: it must be a string`)
	f(`batch[0] = 1`, `cannot assign to a batch: set the fields of its records`)
	f(`batch.length = 0`, `cannot assign to a batch`)
	f(`batch[0].value = "1"`, `cannot set value to a string: it must be a number`)
	f(`batch[0].value = undefined`, `cannot set value to undefined: it must be a number`)
	f(`batch[0].time = 1.5`, `cannot set time to a number: it must be a whole number of milliseconds`)
	f(`batch[0].nope`, `a record has no "nope": there is name, type, value`)
	f(`batch[0].vlaue`, `a record has no "vlaue": did you mean value?`)
	f(`batch[0].nope = 1`, `cannot set "nope" of a record`)
	f(`delete batch[0].value`, `cannot delete value of a record`)
	f(`batch[0].labels.x = {}`, `cannot set label "x" to an object: it must be a string`)
	f(`batch[0].labels.__name__ = "x"`, `cannot use __name__ as a label`)
	f(`batch[0].labels = []`, `cannot set labels to an array: it must be an object`)
	f(`batch[0].copy().histogram = 1`, `cannot set "histogram" of a copy of a record`)
	f(`const { drop } = batch[0]; drop()`, `cannot use undefined as a record: call a method on what it belongs to`)
	f(`const { dropWhere } = batch; dropWhere("true")`, `cannot use undefined as a batch: call methods as batch.method()`)
	f(`for (const [g] of batch.groupBy(["job"])) g.nope`, `a group has no "nope": there is length, records() and drop()`)
	f(`for (const [g] of batch.groupBy(["job"])) g[0] = 1`, `cannot assign to a group`)
	f(`ctx.emit({ name: "x" })`, `cannot emit a record without a value, or a line if it is a log record`)
	f(`ctx.emit(5)`, `cannot emit a number: it must be an object or a record`)
	f(`ctx.emit(batch)`, `cannot emit an array: it must be an object or a record`)
	f(`ctx.emit(batch[0].labels)`, `cannot emit an object: it must be an object or a record`)
	f(`ctx.emit({ name: "x", value: 1, nope: 1 })`, `cannot set "nope" of a copy of a record`)
	f(`ctx.emit({ line: "x" })`, `cannot emit log records: the script does not send logs; add sends: ["metrics", "logs"]`)
	f(`ctx.route("nope", batch[0])`, `nope`)
	f(`batch.each((m: any) => batch.each(() => {}))`, `cannot use each inside of each`)
	f(`batch.each(async (m: any) => {})`, `cannot wait in each`)
	f(`throw new Error("own")`, `own`)
}

// An error in each costs its record and what was emitted for it; the others go
// on.
func TestErrorsInEach(t *testing.T) {
	body := `batch.each((m: any) => {
		m.labels.seen = "1"; m.value += 10; ctx.emit({ name: "of_" + m.name, value: m.value })
		if (m.name === "bad") throw new Error("no " + m.name)
	})`
	fx := build(t, metrics(body), "")
	equal(t, fx.send(t, "a 1\nbad{x=\"y\"} 2\nc 3\n"), "a{seen=\"1\"} 11\nbad{x=\"y\"} 2\nc{seen=\"1\"} 13\nof_a 11\nof_c 13\n")
	if got := fx.Health().Message; !strings.Contains(got, "in each: no bad") || !strings.Contains(got, `bad{seen="1",x="y"} 12`) && !strings.Contains(got, `bad{x="y"} 2`) {
		t.Errorf("got %q", got)
	}
	fx = build(t, metrics(body), `script { on_error = "drop" }`)
	equal(t, fx.send(t, "a 1\nbad{x=\"y\"} 2\nc 3\n"), "a{seen=\"1\"} 11\nc{seen=\"1\"} 13\nof_a 11\nof_c 13\n")
}

// TestLateRecords: handles die with their hook.
func TestLateRecords(t *testing.T) {
	fx := build(t, asserting+`import { defineTransform } from "weir"
		const kept: any = {}
		export default defineTransform({ metrics(batch: any, ctx: any) {
			if (kept.m) {
				fails(() => kept.m.value, "cannot use a record after its hook returned: keep record.copy() instead")
				fails(() => kept.labels.job, "cannot use a record after its hook returned")
				fails(() => { kept.m.value = 1 }, "cannot use a record after its hook returned")
				fails(() => kept.m.drop(), "cannot use a record after its hook returned")
				fails(() => kept.group[0], "cannot use a group after its hook returned")
				fails(() => kept.rows.next(), "cannot use rows after its hook returned")
				fails(() => kept.groups.next(), "cannot use groups after its hook returned")
				assert(kept.copy.labels.job === "x" && kept.row[1] === "x" && kept.job === "x")
				ctx.emit(kept.copy)
			}
			const groups = batch.groupBy(["job"])
			Object.assign(kept, { m: batch[0], labels: batch[0].labels, copy: batch[0].copy(), rows: batch.rows("job"), row: [...batch.rows("job")][0], job: batch[0].labels.job, groups })
			kept.group = groups.next().value[0]
		} })`, "")
	fx.send(t, "a{job=\"x\"} 1\n")
	equal(t, fx.send(t, "b{job=\"y\"} 2\n"), "b{job=\"y\"} 2\na{job=\"x\"} 1\n")
	if h := fx.Health(); h.State != component.Healthy {
		t.Error(h.Message)
	}
}

// TestHistogramsAndExemplars: both can be read, of a record and of a copy.
func TestHistogramsAndExemplars(t *testing.T) {
	fx := build(t, checked(`for (const r of batch.records()) for (const m of [r, r.copy()]) {
		if (m.name === "h") {
			const h = m.histogram
			assert(h.count === 3 && h.sum === 1.5 && h.schema === 0 && h.zeroCount === 0 && h.zeroThreshold === 0 && h.buckets.length === 2)
			assert(h.buckets[1].lower === 1 && h.buckets[1].upper === 2 && h.buckets[1].count === 2)
			assert(m.exemplars === undefined && m.value === undefined)
			fails(() => { m.histogram = undefined }, "cannot set \"histogram\"")
		} else {
			const e = m.exemplars
			assert(m.histogram === undefined && e.length === 2 && e[0].labels.trace === "t" && e[0].value === 0.5 && e[0].time === 7 && e[1].time === undefined)
		}
	}`), "")
	const in = "h {count:3,sum:1.5,positive_spans:[0:2],positive_buckets:[1,2]}\nc 1 # {trace=\"t\"} 0.5 7 # {} 2\n"
	equal(t, fx.send(t, in), in)
	if h := fx.Health(); h.State != component.Healthy {
		t.Error(h.Message)
	}
}

// Texts that are not ASCII and numbers of all kinds come through.
func TestTextsAndNumbers(t *testing.T) {
	fx := build(t, checked(`
		const m = batch[0], { v } = m.labels
		assert(v.length === 7 && v === "grün 𝒳")
		m.labels.größe = v + "!"
		assert(m.labels.größe === "grün 𝒳!" && Object.keys(m.labels).includes("größe"))
		delete m.labels["größe"]
		m.labels.v = v + "!"
		const long = m.labels.long
		assert(long.length === 300 && long.startsWith("ää"))
		m.labels.long = long.slice(0, 3)
		const values = [...batch.rows("value")].map(([, v]: any) => v)
		assert(Object.is(values[1], -0) && values[2] === Infinity && values[3] === 1e300 && values[4] === 1023 && values[5] === 1024 && values[6] === 2 ** 53 && values[7] === 0.1 && values[8] === -5 && values[9] === 300)
		for (const [i, v] of batch.rows("value")) batch.set(i, "value", v)
		assert(values[5] + 1 === 1025 && values[9] % 7 === 6 && [10, 20][values[8] + 5] === 10 && 1 / values[1] === -Infinity)`), "")
	in := "m{long=\"" + strings.Repeat("ä", 300) + "\",v=\"grün 𝒳\"} 1\na -0\nb +Inf\nc 1e+300\nd 1023\ne 1024\nf 9.007199254740992e+15\ng 0.1\nh -5\ni 300\n"
	equal(t, fx.send(t, in), strings.NewReplacer(strings.Repeat("ä", 300), "äää", "𝒳", "𝒳!").Replace(in))
	if h := fx.Health(); h.State != component.Healthy {
		t.Error(h.Message)
	}
}

// TestHoardingData keeps what scripts get of batches outside of the hooks, call by
// call, until the VM is thrown away.
func TestHoardingData(t *testing.T) {
	if hostiletest.RaceDetector && testing.Short() {
		t.Skip("it fills the memory of VMs, which takes minutes")
	}
	f := func(keep string) {
		t.Helper()
		t.Run(keep, func(t *testing.T) {
			src := strings.Replace(metrics("for (const m of batch) for (let i = 0; i < 30; i++) kept.push("+keep+")"), "export default", "const kept: any[] = []\nexport default", 1)
			fx := build(t, src, "script {\nlimits {\ntime = \"1m\"\nmemory = \"4MiB\"\n}\n}")
			in := strings.Repeat("a{long=\""+strings.Repeat("x", 1000)+"\"} 1\n", 20)
			for i := 0; fx.Health().State != component.Unhealthy; i++ {
				fx.send(t, in)
				if i > 2000 {
					t.Fatal("it holds more and more")
				}
			}
			if h := fx.Health(); !strings.Contains(h.Message, "holds more than 4 MiB") {
				t.Error(h.Message)
			}
			fx.send(t, in)
			if h := fx.Health(); h.State != component.Healthy {
				t.Errorf("after the VM was thrown away: %s", h.Message)
			}
		})
	}
	f(`m`)
	f(`m.labels`)
	f(`m.copy()`)
	f(`[...batch.rows("long")][0]`)
	f(`[...batch.groupBy(["none"])][0]`)
	f(`batch.groupBy(["none"])`)
}

package js_test

import "testing"

// TestRecordsAreObjects: records, copies, labels and batches behave as objects and
// arrays do, wherever a script passes them.
func TestRecordsAreObjects(t *testing.T) {
	const fields = `["name","value","time","type","help","unit","stale","labels","histogram","exemplars"]`
	var e exprs
	f := e.add
	// A record.
	f(`typeof m`, "object")
	f(`Array.isArray(m)`, "false")
	f(`Object.keys(m).sort().join() === `+fields+`.sort().join()`, "true")
	f(`"name" in m && "labels" in m && "drop" in m`, "true")
	f(`"nope" in m`, "false")
	f(`m === batch[0]`, "false")
	f(`m.labels === m.labels`, "true")
	f(`new Set([m, batch[1], m]).size`, "2")
	f(`new Map([[m, "found"]]).get(m)`, "found")
	f(`({ ...m }).name`, "up")
	f(`Object.entries(m).find(([k]) => k === "value")[1]`, "1")
	f(`(({ name, labels: { job } }) => name + job)(m)`, "upa")
	f(`JSON.parse(JSON.stringify(m)).labels.job`, "a")
	f(`String(m)`, `up{instance="h:1",job="a"} 1 1700000000000`)
	f("`${batch[1]}`", `load{job="b"} 0.5 1700000000000`)
	f(`m + ""`, `up{instance="h:1",job="a"} 1 1700000000000`)
	f(`Object.getPrototypeOf(m) === Object.getPrototypeOf(batch[1])`, "true")
	f(`delete m.name`, "Error: cannot delete name of a record: set what can be set, or drop the record")
	f(`Object.defineProperty(m, "x", { value: 1 })`, `Error: cannot set "x" of a record: what can be set is name, value, labels, time and stale`)
	f(`m.type = "x"`, `Error: cannot set "type" of a record: what can be set is name, value, labels, time and stale`)
	f(`m.toString.call(batch[1])`, `load{job="b"} 0.5 1700000000000`)
	f(`m.drop.call({})`, "Error: cannot use an object as a record: call a method on what it belongs to")
	// Its labels.
	f(`Object.keys(m.labels)`, `["instance","job"]`)
	f(`Object.values(m.labels)`, `["h:1","a"]`)
	f(`m.labels`, `{"instance":"h:1","job":"a"}`)
	f(`({ ...m.labels, job: "z" })`, `{"instance":"h:1","job":"z"}`)
	f(`(({ job, ...rest }) => rest)(m.labels)`, `{"instance":"h:1"}`)
	f(`"job" in m.labels`, "true")
	f(`"nope" in m.labels`, "false")
	f(`m.labels.nope`, "undefined")
	f(`m.labels.nope ?? "none"`, "none")
	f(`Object.hasOwn(m.labels, "job")`, "true")
	f(`m.labels.hasOwnProperty === undefined`, "true")
	f(`(() => { const ks = []; for (const k in m.labels) ks.push(k); return ks })()`, `["instance","job"]`)
	f(`Object.fromEntries(Object.entries(m.labels).map(([k, v]) => [k.toUpperCase(), v]))`, `{"INSTANCE":"h:1","JOB":"a"}`)
	f(`String(m.labels)`, `{instance="h:1",job="a"}`)
	f("`${batch[1].labels}`", `{job="b"}`)
	f(`(() => { const c = m.copy(); c.labels.x = "1"; return [c.labels.x, m.labels.x === undefined] })()`, `["1",true]`)
	f(`(() => { const c = m.copy(); delete c.labels.job; return Object.keys(c.labels) })()`, `["instance"]`)
	f(`(() => { const c = m.copy(); c.labels = batch[1].labels; return c.labels })()`, `{"job":"b"}`)
	f(`(() => { const c = m.copy(); c.labels = {}; return c.labels })()`, `{}`)
	f(`(() => { const c = m.copy(); c.labels.job = ""; return c.labels.job })()`, "undefined")
	// A copy.
	f(`(() => { const c = m.copy(); c.name = "other"; c.value = 7; c.time = 5; return [c.name, c.value, c.time, m.name, m.value] })()`, `["other",7,5,"up",1]`)
	f(`(() => { const c = m.copy(); c.help = "h"; c.unit = "s"; c.type = "gauge"; return [c.help, c.unit, c.type] })()`, `["h","s","gauge"]`)
	f(`(() => { const c = m.copy(); c.stale = true; return [c.stale, Number.isNaN(c.value)] })()`, "[true,true]")
	f(`(() => { const c = m.copy(); c.stale = true; c.value = 3; return [c.stale, c.value] })()`, "[true,null]")
	f(`(() => { const c = m.copy(); c.stale = true; c.stale = false; c.value = 3; return [c.stale, c.value] })()`, "[false,3]")
	f(`delete m.copy().value`, "Error: cannot delete value of a record: set what can be set")
	f(`"emit" in m.copy()`, "false")
	f(`m.copy() === m.copy()`, "false")
	f(`String(m.copy())`, "record up")
	// The batch.
	f(`batch.length`, "3")
	f(`Array.isArray(batch)`, "true")
	f(`batch[3]`, "undefined")
	f(`batch[-1]`, "undefined")
	f(`[...batch].map((r) => r.name)`, `["up","load","gone"]`)
	f(`Array.from(batch, (r) => r.value)`, "[1,0.5,null]")
	f(`(([first, ...rest]) => first.name + rest.length)(batch)`, "up2")
	f(`[...batch.records()].length`, "3")
	f(`[...batch.rows("name", "job")]`, `[[0,"up","a"],[1,"load","b"],[2,"gone",null]]`)
	f(`[...batch.groupBy(["job"])].map(([g, job]) => [job, g.length])`, `[["a",1],["b",1],[null,1]]`)
	f(`batch.text().split("\n").length`, "4")
	f(`Object.keys(batch)`, `["0","1","2"]`)
	f(`1 in batch && !(3 in batch)`, "true")
	f(`(() => { try { batch.push(1) } catch (e) { return e.message.slice(0, 23) } })()`, `a batch has no "push": `)
	e.run(t, "up{instance=\"h:1\",job=\"a\"} 1\nload{job=\"b\"} 0.5\ngone stale\n", "")
}

// TestBoxedValues: values of modules are objects that a script passes on.
func TestBoxedValues(t *testing.T) {
	var e exprs
	f := e.add
	f(`String(p)`, `a(b+)`)
	f(`typeof p`, "object")
	f(`p === p && p !== re.compile("a(b+)")`, "true")
	f(`Object.keys(p)`, "[]")
	f(`p.nope`, `Error: re.Pattern has no method "nope"`)
	f(`p.nope()`, `Error: re.Pattern has no method "nope"`)
	f(`p.then`, "undefined")
	f(`Promise.resolve(p).then((x) => x === p)`, "true")
	f(`p.match("xabbx")`, "true")
	f(`p.match.call({}, "x")`, "Error: cannot use an object as re.Pattern")
	f(`p.match.call(time, "x")`, "Error: cannot use an object as re.Pattern")
	f(`p.x = 1`, "TypeError")
	f(`new Map([[p, 1]]).get(p)`, "1")
	f(`[p].includes(p)`, "true")
	f(`p instanceof Object`, "true")
	e.run(t, "a 1\n", `const p = re.compile("a(b+)")`)
}

package js_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// operationsOfBatch is the list of a batch's operations in a finding: it grows.
var operationsOfBatch = regexp.MustCompile(`(: there is length), .*`)

// findingsIn checks what the linter says of a definition whose body begins in line
// 3. Each finding is a line.
func findingsIn(t *testing.T, open, body, end string, want ...string) {
	t.Helper()
	text := strings.Join(want, "\n")
	if text != "" {
		text += "\n"
	}
	src := "import { defineTransform, defineSource, defineSink, arg, state } from \"weir\"\nexport default " + open + "\n" + body + "\n" + end
	if diff := cmp.Diff(text, operationsOfBatch.ReplaceAllString(lint(t, src), "$1, …")); diff != "" {
		t.Errorf("%s %s (-want +got):\n%s", open, body, diff)
	}
}

// TestLintBySignal: a hook's first parameter is what the hook gets, and the linter
// knows what that has.
func TestLintBySignal(t *testing.T) {
	logs := func(body string, want ...string) {
		t.Helper()
		findingsIn(t, "defineTransform({ logs(batch, ctx) {", body, "} })", want...)
	}
	logs("batch.each((r) => { r.line = r.line.trim(); r.labels.x = '1'; r.metadata.y = '2' })")
	logs("batch.each((r) => { r.value = 1 })", `3:23: cannot set "value" of a log record: what can be set is line, labels, metadata, time and ts`)
	logs("batch.each((r) => { r.lien })", `3:23: a log record has no "lien": did you mean line?`)
	logs("batch.scale(null, 2)", `3:7: a batch of log lines has no "scale": there is length, …`)
	logs("for (const r of batch.records()) r.nope", `3:36: a log record has no "nope": there is line, labels, metadata, time, ts, json(), contains(), match(), drop() and copy()`)
	series := func(body string, want ...string) {
		t.Helper()
		findingsIn(t, "defineTransform({ series(s, ctx) {", body, "} })", want...)
	}
	series("s.labels.x = s.name; if (s.type === 'counter') s.drop()")
	series("s.labls", `3:3: a series has no "labls": did you mean labels?`)
	series("s.value", `3:3: cannot read value in series: the hook can read only labels because its result is cached; use metrics`)
	series("ctx.emit({ name: 'x', value: 1 })", `3:5: cannot use ctx.emit in series: its result is cached and may depend only on labels and ctx.args; use metrics`)
	stream := func(body string, want ...string) {
		t.Helper()
		findingsIn(t, "defineTransform({ stream(s, ctx) {", body, "} })", want...)
	}
	stream("s.labels.x = '1'")
	stream("s.line", `3:3: a stream has no "line": there is labels and drop()`)
	sink := func(body string, want ...string) {
		t.Helper()
		findingsIn(t, "defineSink({ needs: { http: true }, async send(batch, ctx) {", body, "}, teardown(ctx) { ctx.http } })", want...)
	}
	sink("await ctx.http.post(ctx.args.url, { body: batch.text() })", `3:30: there is no argument "url": declare it in args`)
	sink("if (batch.length > 1) return ctx.retry({ after: '1s' })")
	sink("ctx.emit({ name: 'x', value: 1 })")
	source := func(body string, want ...string) {
		t.Helper()
		findingsIn(t, "defineSource({ sends: ['metrics'], interval: '1m', poll(ctx) {", body, "} })", want...)
	}
	source("ctx.emit({ name: 'x', value: 1 })")
	source("ctx.emmit({ name: 'x', value: 1 })", `3:5: ctx has no "emmit": did you mean emit?`)
	source("ctx.route('x', {})", `3:11: cannot route to "x": the definition has no outputs; write outputs: ["x"]`)
}

// TestLintFollowsValues: what is known of a value goes along with it.
func TestLintFollowsValues(t *testing.T) {
	f := func(body string, want ...string) {
		t.Helper()
		findingsIn(t, "defineTransform({ metrics(batch, ctx) {", body, "} })", want...)
	}
	const no = `a record has no "nope": there is name, type, value, labels, time, stale, help, unit, histogram, exemplars, drop() and copy()`
	f("const b = batch; const c = b; c[0].nope", `3:36: `+no)
	f("let r = batch[0]; r.nope", `3:21: `+no)
	f("const { length, nope } = batch; length", `3:17: a batch has no "nope": there is length, …`)
	f("const r = batch[0]; { const r = {}; r.nope }")
	f("batch[0].labels.nope; batch[0]['value']")
	f("batch[0]['nope']", `3:10: `+no)
	f("batch[0]?.nope", `3:11: `+no)
	f("(batch[0] as any).nope", `3:19: `+no)
	f("const c = batch[0].copy(); c.copy().nope", `3:30: a copy of a record has no "copy": there is name, type, value, labels, time, stale, help, unit, histogram and exemplars`)
	// Where a value may be another one, nothing is said.
	f("const [first] = batch; first.nope")
	f("const [...all] = batch; all[0].nope")
	f("const all = [...batch]; all[0].nope")
	f("for (const r of [...batch]) r.nope")
	f("[...batch].map((r) => r.nope)")
	f("[...batch].filter((r) => r.value > 1).forEach((r) => r.nope)")
	f("const pick = (r) => r; pick(batch[0]).nope")
	f("function help(r) { r.nope } help(batch[0])")
	f("const r = batch.length > 1 ? batch[0] : batch[1]; r.nope")
	f("const r = batch[0] ?? batch[1]; r.nope")
	f("const n = 'nope'; batch[0][n]")
	f("if (true) { var r = batch[0] } r.nope")
	f("batch.records().next().value.nope")
}

// TestLintCalls: calls that cannot work, by their arguments.
func TestLintCalls(t *testing.T) {
	f := func(body string, want ...string) {
		t.Helper()
		findingsIn(t, "defineTransform({ outputs: ['other'], metrics(batch, ctx) {", body, "} })", want...)
	}
	f("batch.setLabel('a', 'b', 'c')", `warning: 3:7: cannot call batch.setLabel: it takes 2 arguments, not 3`)
	f("batch.setLabel()", `3:7: cannot call batch.setLabel: argument name is missing; it is a string`)
	f("batch.dropWhere(`value > ${1}`)")
	f("ctx.route('other', batch[0])")
	f("ctx.route('ohter', batch[0])", `3:11: cannot route to "ohter": there is other; did you mean other?`)
	f("ctx.sleep('1s')", `3:11: cannot call ctx.sleep: argument seconds must be a number, not a string`)
	f("batch.each(5)", `3:12: cannot call batch.each: argument fn must be a function, not a number`)
	f("batch.groupBy('job')", `3:15: cannot call batch.groupBy: argument fields must be a list, not a string`)
}

package js_test

import (
	"strings"
	"testing"

	"github.com/weir-run/weir/engine/component"
)

// exprs are expressions that are evaluated in a hook, where batch and ctx are the
// hook's, m is the first record, and tests may declare more. Of each, the result is
// known as a string: of an object its JSON, of an error its name and message, or its
// name alone where goja chooses the message.
type exprs struct{ exprs, want []string }

func (e *exprs) add(expr, want string) {
	e.exprs, e.want = append(e.exprs, expr), append(e.want, want)
}

// run evaluates the expressions with a batch, after the statements of head.
func (e *exprs) run(t *testing.T, in, head string) {
	t.Helper()
	var body strings.Builder
	for _, expr := range e.exprs {
		body.WriteString("await row(() => " + expr + ");\n")
	}
	fx := build(t, `import { defineTransform } from "weir"
import re from "weir/re"
import time from "weir/time"
import json from "weir/json"
export default defineTransform({ async metrics(batch: any, ctx: any) {
	const m = batch[0]
	const row = async (fn: () => any) => {
		let out: string
		try {
			const x = await fn()
			out = x !== null && typeof x === "object" ? JSON.stringify(x) : Object.is(x, -0) ? "-0" : String(x)
		} catch (e: any) { out = e instanceof Error ? e.name + ": " + e.message : "thrown: " + String(e) }
		ctx.emit({ name: "row", labels: { out: "=" + out }, value: 0 })
	}
	`+head+"\n"+body.String()+"} })\n", "script {\nlimits {\nemit = 1000\ntime = \"10s\"\n}\n}")
	fx.send(t, in)
	if h := fx.Health(); h.State != component.Healthy {
		t.Fatal(h.Message)
	}
	var got []string
	for _, b := range fx.sink.Batches() {
		for _, s := range b.Series {
			if s.Name() == "row" {
				got = append(got, strings.TrimPrefix(s.Label("out"), "="))
			}
		}
	}
	if len(got) != len(e.want) {
		t.Fatalf("got %d results, want %d", len(got), len(e.want))
	}
	for i := range got {
		if got[i] != e.want[i] && !(strings.HasSuffix(e.want[i], "Error") && strings.HasPrefix(got[i], e.want[i]+": ")) {
			t.Errorf("%s: got %q, want %q", e.exprs[i], got[i], e.want[i])
		}
	}
}

package js_test

import (
	"strings"
	"testing"
)

// TestRuntimeWords holds that what ctx refuses is worded as JavaScript writes it.
func TestRuntimeWords(t *testing.T) {
	holds(t, "", "", `
    throws(() => ctx.route("errors", batch[0]), 'write outputs: ["errors"]')
    throws(() => ctx.http.get("http://a"), "write needs: { http: true } in its definition")
    throws(() => ctx.read("a"), "write needs: { read: true }")
    throws(() => ctx.exec("a"), 'write needs: { exec: ["NAME"] }')
    throws(() => ctx.export({}), "only a defineSource")
    throws(() => ctx.flush(), "only the hook run of a defineSource can use it")
`)
}

func TestClock(t *testing.T) {
	holds(t, "", "", `
    same(Date.now(), ctx.now())
    same(new Date().getTime(), ctx.now())
    same(String(new Date(0).toISOString()), "1970-01-01T00:00:00.000Z")
    throws(() => Math.random(), "there is no randomness in a script")
`)
	e := scriptErr(t, load(t, "const at = Date.now()\n"+metrics("batch.setLabel('at', at)")).Err)
	if want := "there is no clock here"; !strings.Contains(e.Error(), want) || e.Line != 1 {
		t.Errorf("got %v, want %q in line 1", e, want)
	}
	f := build(t, `import { defineTransform } from "weir"
export default defineTransform({ series(s) { s.labels.at = String(Date.now()) } })`, "")
	f.send(t, "a 1\n")
	if want := "in series"; !strings.Contains(f.Logs(), want) || !strings.Contains(f.Logs(), "the clock") {
		t.Errorf("got %s, want %q", f.Logs(), want)
	}
}

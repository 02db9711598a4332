package node_test

import (
	"testing"
	"time"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/scripting"
	"github.com/weir-run/weir/scripting/host"
	"github.com/weir-run/weir/scripting/js"
	"github.com/weir-run/weir/scripting/registry"
	"github.com/weir-run/weir/stdlib"
)

// A sink in TypeScript does as one in Lua.
func TestSinkInTypeScript(t *testing.T) {
	onSink(t, func(t *testing.T, n *sinkNode) {
		path := n.f.Write("a/b.ts", `
import { defineSink } from "weir";

export default defineSink({
	needs: { http: ["https://hook.example/*"] },
	batch: { maxRecords: 3 },
	async send(batch, ctx) {
		for (const m of batch) {
			if (m.name === "bad") ctx.reject(m, "it is bad");
		}
		const answer = await ctx.http.post("https://hook.example/v1", batch.text(), { headers: { "Idempotency-Key": ctx.batchId() } });
		if (answer.status >= 500) return ctx.retry({ after: "2s", reason: answer.body });
		if (answer.status >= 400) throw new Error("status " + answer.status);
	},
});`)
		var err error
		n.cat, err = registry.NewCatalog(registry.Options{
			Languages: []scripting.Language{js.New()}, UserDir: n.f.Dir, Modules: stdlib.Modules(), Outside: host.Outside{HTTP: n.e},
		})
		if err != nil {
			t.Fatal(err)
		}
		n.cat.Refresh([]string{path})
		r, _ := n.cat.Lookup("a.b")
		if r.Err != nil {
			t.Fatal(r.Err)
		}
		n.swap(r, sinkAttrs)
		n.e.set(status(503))
		n.accept(text(t, batch.NewSource(), "a 1 1\nbad 1 1\nc 1 1\nd 1 1\n"))
		equal(t, n.after(0), []string{"a 1 1\nbad 1 1\nc 1 1\n"})
		n.e.set(status(400))
		equal(t, n.after(3 * time.Second)[0], "a 1 1\nc 1 1\n")
		n.e.set(nil)
		equal(t, n.after(time.Minute), []string{"a 1 1\n", "c 1 1\n", "d 1 1\n"})
		equal(t, lost(t, n), map[string]float64{"rejected": 1})
		equal(t, figures(t, n.harness, "weir_script_sink_records_sent_total"), map[string]float64{"": 3})
	})
}

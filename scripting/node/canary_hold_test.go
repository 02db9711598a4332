package node_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/weir-run/weir/engine/batch"
)

// picky returns a script that counts the records of a batch and marks them. It fails on a
// batch that has a record with the value fails.
func picky(mark string, fails int, more string) string {
	return fmt.Sprintf(`return weir.transform {
		%[3]s state = { n = weir.state.counter{} },
		metrics = function(batch, ctx)
			batch:each(function(r) if r.value == %[2]d then error("no") end end)
			batch:each(function(r) ctx.state.n:add("all", 1) r.labels.v = "%[1]s" end)
		end,
	}`, mark, fails, more)
}

// holdShare returns a batch that n holds, because a canary and the running version 1 have
// failed on the share of the canary, whose records have the value 1. sent gets the error of
// the batch.
func holdShare(t *testing.T, n *harness, attrs string) (b *batch.Metrics, share int, sent chan error) {
	t.Helper()
	n.save(picky("1", 1, ""), attrs)
	b = many(t, 1, heldRows)
	b.V = make([]float64, heldRows)
	c := n.try(picky("share", -1, ""), attrs)
	n.send(b)
	marks := versionsOf(n.sink.Last())
	control(t, n.c, "POST", "/canary/rollback", 200)
	<-c.done
	next := at(b, 2000)
	next.V = make([]float64, heldRows)
	for i, s := range next.Series {
		if marks[s.Label("i")] == "share" {
			next.V[i] = 1
			share++
		}
	}
	c = n.try(picky("2", 1, ""), attrs)
	n.sink.Forget()
	sent = make(chan error, 1)
	go func() { sent <- n.gate.ConsumeMetrics(context.Background(), next) }()
	synctest.Wait()
	c.wantRefused("calls failed")
	if len(sent) > 0 {
		t.Fatal("the batch is not held")
	}
	return b, share, sent
}

const heldRows = 1000

// A batch whose share of the canary is held is processed once, also if the running version
// is replaced after it has processed the other share.
func TestHeldShareOfReplacedVersion(t *testing.T) {
	for _, mode := range []string{`concurrency = "ordered"`, `concurrency = "parallel"`, `concurrency = "single"`, "concurrency = \"partition\"\nby = [\"i\"]"} {
		timed(t, func(t *testing.T, n *harness) {
			attrs := canaryAttrs(half, mode+"\non_error = \"hold\"")
			b, share, sent := holdShare(t, n, attrs)
			n.save(picky("3", -1, ""), attrs)
			if err := <-sent; err != nil {
				t.Fatal(err)
			}
			if out := n.sink.Batches(); len(out) != 1 {
				t.Fatalf("%s: %d batches left, want 1", mode, len(out))
			}
			out, byThird := n.sink.Last(), 0
			for i, s := range out.Series {
				if batch.IsStale(out.V[i]) {
					continue
				}
				if s.Label("v") == "3" {
					byThird++
				}
				if held := out.V[i] == 1; held != (s.Label("v") == "3") {
					t.Fatalf("%s: %s with the value %v was processed by the wrong version", mode, s, out.V[i])
				}
			}
			if got := versionsOf(out); len(got) != heldRows || byThird != share {
				t.Errorf("%s: %d records left, %d by version 3, want %d and %d", mode, len(got), byThird, heldRows, share)
			}
			if got, want := control(t, n.c, "GET", "/state/n?key=all", 200), fmt.Sprintf("%d\n", 2*heldRows); got != want {
				t.Errorf("%s: the versions have processed %s records, want %s", mode, got, want)
			}
			if stale := strings.Count(n.send(at(b, 3000)), " stale\n"); stale != heldRows-share {
				t.Errorf("%s: %d series of version 1 ended, want %d", mode, stale, heldRows-share)
			}
		})
	}
}

// If the results of both versions cannot be joined, the next version gets the whole batch.
func TestHeldShareOfOtherOutputs(t *testing.T) {
	timed(t, func(t *testing.T, n *harness) {
		attrs := canaryAttrs(half, "on_error = \"hold\"")
		_, _, sent := holdShare(t, n, attrs)
		n.save(picky("3", -1, `outputs = { "x" },`), attrs+"\nroutes {\n x = []\n}")
		if err := <-sent; err != nil {
			t.Fatal(err)
		}
		for i, v := range versionsOf(n.sink.Last()) {
			if v != "3" {
				t.Fatalf("record %s was processed by version %s", i, v)
			}
		}
	})
}
